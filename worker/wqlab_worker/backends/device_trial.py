"""Device trial: try how a new machine is reached, by labgrid's drivers against its addresses, before any file exists.

    python -m wqlab_worker.backends.device_trial

reads one `TrialRequest` on standard input and writes `TrialMessage`s, one a line. It needs no coordinator, no exporter
and no place. The end of standard input stops it: the machine is switched off first.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

import structlog
from labgrid import Target, target_factory
from labgrid.driver import SerialDriver
from serial import SerialException  # type: ignore[import-untyped]

from wqlab_contracts import logs
from wqlab_contracts.enums import Arm, ArtifactKind, DeviceStep, Outcome, StepOutcome
from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages import BootKey, DeviceFacts, RunEvent
from wqlab_contracts.new_devices.description import DebugCable, NewDevice, Pdu
from wqlab_contracts.new_devices.trial import (
    CONSOLE_LIMIT,
    DISKS_LIMIT,
    TEXT_LIMIT,
    TRIAL_MESSAGES,
    TrialDoing,
    TrialEnded,
    TrialMessage,
    TrialRequest,
    TrialResult,
    TrialStep,
    TrialStepEnded,
    TrialStepResult,
)
from wqlab_contracts.specs import BootMethod, Topology

from ..claims.server import sha256_of
from ..measure.device_interface import DeviceFailure
from ..measure.device_text import printable
from . import answering_system, declare_topology, probe, trial_advice
from .cancellation import Stop, canceled
from .console_tap import ConsoleTap, Wakeup
from .device_access import CONNECT_TIMEOUT_S
from .kexec import KexecStrategy, Status
from .own_system import OwnSystemStrategy
from .power import POWER_TIMEOUT_S, time_limit
from .send_image import VariantImage
from .ssh import public_key_blob
from .trial_target import StepFailed, check_files, make_resources

log = structlog.get_logger()

FIRST_BYTE_S = 180.0
"""Longest time from power on to the first byte; firmware of a server may be silent for two minutes."""
ECHO_S = 10.0
SILENT_S = 5.0
"""A machine without power answers nothing for this long."""
SHORT_ANSWER_S = 60.0
_KEPT_BYTES = 64 << 10
_NOT_MEASURED = Topology(sockets=1, l3_per_socket=1, cores_per_l3=1, threads_per_core=1)
_DISKS = "ls -1 /dev/disk/by-id 2>/dev/null; cat /proc/sys/kernel/random/boot_id > /dev/null"
_MACHINE = "cat /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name /proc/device-tree/model 2>/dev/null; true"
_NOTHING_TO_DO = {
    TrialStep.ECHO: "nothing can be typed on netconsole",
    TrialStep.KEXEC: "no kernel was given to start: the device check starts one",
}
_PARTITION = LinearPattern(r"-part[0-9]+$")


class _Console:
    """`EventSink` that keeps the end of the console and drops everything else."""

    def __init__(self) -> None:
        self.tail = b""

    def event(self, event: RunEvent) -> None:
        """Findings do not matter here."""

    def console(self, boot: BootKey, offset: int, data: bytes) -> None:
        self.tail = (self.tail + data)[-_KEPT_BYTES:]

    def artifact(self, kind: ArtifactKind, name: str, data: bytes) -> None:
        """A trial has no files."""


class Trial:
    """One trial of one machine. `say` gets each message as it comes."""

    def __init__(self, request: TrialRequest, say: Callable[[TrialMessage], None], stop: Stop, wakeup: Wakeup) -> None:
        self._request, self._device, self._say = request, request.device, say
        self._target = Target(self._device.name)
        make_resources(self._target, self._device)
        self._serial = SerialDriver(self._target, None)
        target_factory.make_driver(self._target, "DeviceSSHDriver", None, {"keyfile": str(request.ssh_key)})
        self._console = _Console()
        self._tap = ConsoleTap(self._serial, self._console, wakeup)
        kind = "OwnSystemStrategy" if self._device.own_system else "KexecStrategy"
        strategy: KexecStrategy = target_factory.make_driver(self._target, kind, None, {})
        strategy.device, strategy.tap, strategy.wakeup, strategy.cancel = _facts(self._device), self._tap, wakeup, stop
        strategy.public_key = public_key_blob(request.ssh_key.with_name(f"{request.ssh_key.name}.pub"))
        self._strategy = strategy
        self._boots = 0
        self._since = "power on"
        self._switched = False
        self._boot_id = ""
        self._topology: Topology | None = None
        self._disks: list[str] = []

    def run(self) -> TrialResult:
        """Try each step until one fails; the others are skipped. The machine is off at the end."""
        steps: list[TrialStepResult] = []
        actions: dict[TrialStep, Callable[[], str | None]] = {
            TrialStep.CONSOLE: self._open_console,
            TrialStep.POWER_OFF: self._switch_off,
            TrialStep.POWER_ON: self._switch_on,
            TrialStep.GOLDEN: self._await_golden,
            TrialStep.ECHO: self._check_echo,
            TrialStep.SSH: self._connect,
            TrialStep.MACHINE: self._read_machine,
            TrialStep.KEXEC: self._start_kernel,
            TrialStep.RESET: self._reset,
        }
        failed: TrialStep | None = None
        try:
            for step, action in actions.items():
                result = _skipped(step, f"needs {_words(failed)}") if failed else self._try(step, action)
                if result.outcome is StepOutcome.FAILED:
                    failed = step
                steps.append(result)
                self._say(TrialStepEnded(result=result))
        finally:
            self._leave()
        stopped = self._strategy.cancel.is_set()
        return TrialResult(
            outcome=Outcome.CANCELED if stopped else Outcome.FAILED if failed else Outcome.PASSED,
            steps=steps,
            topology=self._topology,
            disks=self._disks[:DISKS_LIMIT],
        )

    def _try(self, step: TrialStep, action: Callable[[], str | None]) -> TrialStepResult:
        try:
            text = action()
        except StepFailed as error:
            text, fix = str(error), error.fix
        except DeviceFailure as error:
            text, fix = error.failure.summary, self._fix(step, error)
        else:
            if text is None:
                return _skipped(step, _NOTHING_TO_DO[step])
            return TrialStepResult(step=step, outcome=StepOutcome.OK, text=text[:TEXT_LIMIT])
        return TrialStepResult(
            step=step,
            outcome=StepOutcome.FAILED,
            text=text[:TEXT_LIMIT],
            fix=fix[:TEXT_LIMIT],
            console=printable(self._console.tail.decode(errors="replace"))[-CONSOLE_LIMIT:],
        )

    def _fix(self, step: TrialStep, error: DeviceFailure) -> str:
        """Return the advice for a failure that the drivers report."""
        said = error.failure.summary
        if self._strategy.cancel.is_set():
            return ""
        if error.stage is DeviceStep.GOLDEN and error.failure.advice:
            return error.failure.advice
        if step in {TrialStep.POWER_OFF, TrialStep.POWER_ON} or "power could not be switched" in said:
            return trial_advice.power(self._device, said)
        if step is TrialStep.KEXEC:
            return trial_advice.no_kexec(f"{said} {error.failure.excerpt}")
        return error.failure.advice or trial_advice.no_golden(self._device, self._console.tail)

    # --- steps ------------------------------------------------------------------------------------------------------

    def _open_console(self) -> str:
        self._doing("opening the console")
        address = f"{self._device.console.host}:{self._device.console.port}"
        try:
            with time_limit(POWER_TIMEOUT_S, "the console could not be opened", DeviceStep.CONSOLE):
                self._target.activate(self._serial)
        except (OSError, SerialException) as error:
            raise StepFailed(
                f"{address} cannot be opened: {error}", trial_advice.console_port(self._device, str(error))
            ) from error
        self._tap.start()
        return f"{address} is open"

    def _switch_off(self) -> str:
        self._doing("switching the power off")
        check_files(self._device)
        if isinstance(self._strategy, OwnSystemStrategy):
            self._switched = True
            self._doing("waiting for the machine's own system by SSH, to shut it down: minutes; then switching off")
            self._strategy.shut_down()
        started = time.monotonic()
        self._strategy.cut_power()
        self._switched = True
        return f"the switch answered in {time.monotonic() - started:.1f} s"

    def _switch_on(self) -> str:
        """Switch on and wait for the first byte."""
        boot = self._device.boot
        self._doing(f"waiting {boot.power_off_s:g} s without power, then switching on")
        self._strategy.wait(lambda: False, boot.power_off_s)
        self._boots += 1
        self._console.tail = b""
        key = BootKey(block=0, position=self._boots, arm=Arm.BASELINE, attempt=0)
        self._tap.begin_boot(key)
        self._on_at = time.monotonic()
        self._strategy.restore_power()
        self._since = "power on"
        if isinstance(self._strategy, OwnSystemStrategy):
            self._doing("waiting for the machine's own system by SSH, to restart it")
            self._on_at = self._strategy.restart_into_golden(key)
            self._since = "the restart of its own system"
        # On netconsole firmware and boot loader are silent too.
        longest = float(boot.golden_timeout_s)
        limit = longest if self._device.netconsole is not None else min(FIRST_BYTE_S, longest)
        self._doing(f"waiting for text on the console, at most {limit:.0f} s")
        if not self._strategy.wait(lambda: self._tap.offset > 0, limit):
            self._raise_if_own_system()
            raise StepFailed(
                f"the switch answered, and the console stayed silent for {limit:.0f} s",
                trial_advice.silence(self._device),
            )
        return f"first text on the console {time.monotonic() - self._on_at:.1f} s after {self._since}"

    def _await_golden(self) -> str:
        limit = self._device.boot.golden_timeout_s
        self._doing(f"waiting for the golden system, at most {limit} s")
        left = limit - (time.monotonic() - self._on_at)
        self._strategy.wait(lambda: self._tap.ready is not None or self._tap.fatal is not None, max(left, 5.0))
        if self._tap.fatal:
            title = f"the golden system failed: {self._tap.fatal.title}"
            raise StepFailed(title, trial_advice.no_golden(self._device, self._console.tail))
        if self._tap.ready is None:
            self._raise_if_own_system()
            raise StepFailed(
                f"no ready line in {limit} s, though {self._tap.offset} bytes came on the console",
                trial_advice.no_golden(self._device, self._console.tail),
            )
        self._strategy.status = Status.golden
        return f"up {time.monotonic() - self._on_at:.1f} s after {self._since}"

    def _raise_if_own_system(self) -> None:
        """Raise DeviceFailure if the machine's own system came in place of the golden system."""
        strategy = self._strategy
        if self._device.choose_golden is None:
            return
        if strategy.ssh.connect(strategy.wakeup, strategy.interrupted, CONNECT_TIMEOUT_S) is None:
            since = time.monotonic() - self._on_at
            answering_system.still_runs(strategy.command(answering_system.READ_SYSTEM, SHORT_ANSWER_S), since)

    def _check_echo(self) -> str | None:
        if self._device.netconsole is not None:
            return None
        self._doing("writing to the console")
        self._strategy.wait(lambda: time.monotonic() - self._tap.last_output > 1.0, SILENT_S)
        if not self._echoes(ECHO_S):
            raise StepFailed(f"the console did not answer in {ECHO_S:.0f} s", trial_advice.no_echo(self._device))
        return "the console answers to a line feed"

    def _echoes(self, timeout_s: float) -> bool:
        before = self._tap.offset
        self._serial.write(b"\n")
        return self._strategy.wait(lambda: self._tap.offset > before, timeout_s)

    def _connect(self) -> str:
        self._doing("connecting by SSH")
        strategy = self._strategy
        address = f"{self._device.ssh.host}:{self._device.ssh.port}"
        reason = strategy.ssh.connect(strategy.wakeup, strategy.cancel.is_set, CONNECT_TIMEOUT_S)
        if reason is not None:
            fix = trial_advice.no_ssh(self._device, reason, self._console.tail)
            raise StepFailed(f"{address} does not answer by SSH: {reason}", fix)
        self._boot_id = strategy.command("cat /proc/sys/kernel/random/boot_id", SHORT_ANSWER_S).text.strip()
        ready = self._tap.ready
        if ready is not None and ready.boot_id and ready.boot_id != self._boot_id:
            raise StepFailed(
                f"the system at {address} is not the one on the console: its boot id is {self._boot_id}, the ready line"
                f" has {ready.boot_id}",
                "Console and SSH address belong to different machines: correct one of them.",
            )
        strategy.golden_boot_id = self._boot_id
        return f"root may log in at {address}, and it is the machine on the console"

    def _read_machine(self) -> str:
        self._doing("reading CPUs and disks")
        strategy = self._strategy
        try:
            found = probe.parse(strategy.command(probe.COMMAND, SHORT_ANSWER_S).stdout)
        except probe.ProbeError as error:
            raise StepFailed(f"the machine cannot be read: {error}", "Serve the lab's own golden system.") from error
        names = strategy.command(_DISKS, SHORT_ANSWER_S).text.split("\n")
        self._disks = sorted(name for name in names if name and not _PARTITION.search(name))
        model = " ".join(strategy.command(_MACHINE, SHORT_ANSWER_S).text.replace("\0", " ").split())
        self._topology = declare_topology.declare(found.topology)
        if self._topology is None:
            measured = found.topology
            raise StepFailed(
                f"no symmetric topology: {measured.cpus} CPUs, {len(set(measured.l3))} {measured.last_level} domains",
                "A device type describes equal cores, or clusters whose cores have consecutive numbers and no SMT. See"
                " `topology` in docs/hardware.",
            )
        missing = [name for name in self._device.scratch if name not in self._disks]
        if missing:
            raise StepFailed(
                f"no disk {', '.join(missing)}", f"Correct scratch; there are: {', '.join(self._disks) or 'no disks'}."
            )
        seen = declare_topology.describe(self._topology)
        machine = f"{model}: " if model else ""
        return f"{machine}{seen}; {len(self._disks)} disk names in /dev/disk/by-id"

    def _start_kernel(self) -> str | None:
        kernel = self._request.kernel
        if kernel is None:
            return None
        self._doing("starting a kernel by kexec")
        strategy, started = self._strategy, time.monotonic()
        try:
            strategy.transition(Status.variant, image=VariantImage(kernel, sha256_of(kernel)))
        except DeviceFailure:
            ready = self._tap.ready
            if strategy.cancel.is_set() or ready is None or ready.token != strategy.token or self._tap.fatal:
                raise
            return (
                f"the kernel started {time.monotonic() - started:.1f} s after the upload began; it does not"
                " answer by SSH, so it may lack the network card's driver. The device check builds its own kernel."
            )
        return f"the kernel was up {strategy.times.kexec:.1f} s after `kexec -l`, and answers by SSH"

    def _reset(self) -> str:
        """Cut the power, see that the machine is silent, and see it come back as another boot."""
        self._doing("cutting the power of the running machine")
        strategy = self._strategy
        strategy.cut_power()
        strategy.wait(lambda: False, self._device.boot.power_off_s)
        self._tap.begin_boot(BootKey(block=0, position=self._boots, arm=Arm.BASELINE, attempt=1))
        if (alive := self._alive()) is not None:
            power = self._device.power
            outlet = "outlet" if isinstance(power, Pdu) else "cable" if isinstance(power, DebugCable) else "BMC"
            raise StepFailed(
                f"the power is off, and the {alive} still answers: the switch acts on something else",
                f"Find the power switch of this machine: this {outlet} is another machine's. With a battery or a"
                " second power supply, switch both.",
            )
        came = f"silent without power; {self._switch_on()}"
        self._await_golden()
        ready = self._tap.ready
        if ready is not None and ready.boot_id == self._boot_id:
            raise StepFailed("the same boot came back: the power was never off", trial_advice.silence(self._device))
        return f"{came}, another boot up {time.monotonic() - self._on_at:.1f} s after {self._since}"

    def _alive(self) -> str | None:
        """Return what still answers of a machine whose power is off, or None."""
        if self._device.netconsole is None:
            return "console" if self._echoes(SILENT_S) and self._echoes(SILENT_S) else None
        return "machine's SSH" if self._strategy.ssh.greets(SILENT_S) else None

    # --- end ----------------------------------------------------------------------------------------------------

    def _leave(self) -> None:
        """Switch the machine off or leave it to its own system, also after a cancellation, and close everything."""
        own = self._device.choose_golden is not None
        try:
            if self._switched:
                self._doing("leaving the machine to its own system" if own else "switching the power off")
                self._strategy.transition(Status.off)
        except DeviceFailure as error:
            log.error("power off failed", error=error.failure.summary)
        finally:
            self._tap.stop()
            self._target.cleanup()

    def _doing(self, text: str) -> None:
        self._say(TrialDoing(text=text))


def _facts(device: NewDevice) -> DeviceFacts:
    return DeviceFacts(
        name=device.name,
        device_type=device.device_type,
        lab=device.lab,
        arch=device.arch,
        topology=_NOT_MEASURED,
        boot=BootMethod(**device.boot.model_dump()),
        emulated=device.rehearsal,
        netconsole=device.netconsole,
        own_system=device.own_system,
    )


def _skipped(step: TrialStep, text: str) -> TrialStepResult:
    return TrialStepResult(step=step, outcome=StepOutcome.SKIPPED, text=text)


def _words(step: TrialStep | None) -> str:
    known = {
        TrialStep.GOLDEN: "the golden system",
        TrialStep.ECHO: "a console that answers",
        TrialStep.MACHINE: "CPUs and disks as described",
    }
    return "" if step is None else known.get(step, step.value.replace("_", " "))


def follow_input(descriptor: int, stop: Stop, wakeup: Wakeup) -> None:
    """Stop the trial when standard input ends: the process that started it has ended, or stops it."""
    # Not through a buffer, whose lock this thread would hold at the end of the process.
    while os.read(descriptor, 4096):
        continue
    stop.request(canceled("the trial was stopped"))
    wakeup.notify()


def main() -> None:
    # Libraries print to standard output; only messages may reach the reader.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    logs.configure(sys.stderr)

    def say(message: TrialMessage) -> None:
        out.write(TRIAL_MESSAGES.dump_json(message) + b"\n")
        out.flush()

    request = TrialRequest.model_validate_json(sys.stdin.buffer.readline())
    stop, wakeup = Stop(), Wakeup()
    threading.Thread(target=follow_input, args=(sys.stdin.fileno(), stop, wakeup), daemon=True).start()
    say(TrialEnded(result=Trial(request, say, stop, wakeup).run()))


if __name__ == "__main__":
    main()
