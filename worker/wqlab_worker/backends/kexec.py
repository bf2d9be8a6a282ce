"""Boot a labgrid device into a variant: off -> golden system -> variant, each state reached through the one before.

Each state waits for events: the ready line on the console, a fatal report, the end of a command, a cancellation. A
timeout ends only a wait that no event ended.
"""

from __future__ import annotations

import enum
import secrets
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass

import attr
from labgrid import target_factory
from labgrid.strategy import Strategy

from wqlab_contracts.consoles.detect import Report
from wqlab_contracts.enums import DeviceStep, FindingKind
from wqlab_contracts.excerpts import shorten
from wqlab_contracts.messages import BootKey, DeviceFacts
from wqlab_contracts.specs import console_arguments

from ..measure.device_interface import DeviceFailure
from . import answering_system, diagnose_boot
from .console_tap import ConsoleTap, Wakeup
from .interface import Cancel, kexec_options
from .power import power_errors, power_time_limit
from .send_image import IMAGE_ON_DEVICE, VariantImage, send_image
from .ssh import CommandResult
from .verify_boot import infrastructure_failure, kernel_failure

CONNECT_TIMEOUT_S = 30.0
"""Longest time from the ready line to an SSH connection."""
QUIET_S = 10.0
"""After this much silence on the console, try SSH: the ready line may have been garbled."""
CONSOLE_ACTIVE_S = 30.0
SLOW_BOOT_FACTOR = 3
"""A boot with console output in the last CONSOLE_ACTIVE_S may take its timeout times this factor."""
SETTLE_S = 3.0
"""After this time without power nothing is left to print: buffers of a BMC and console server are empty."""
REOPEN_S = 120.0
"""Longest time to open a console again whose connection broke; a BMC restarts in a minute or two."""
UPTIME_SLACK_S = 5.0
"""Largest difference between the device's clock and the worker's during a boot."""
LOAD_TIMEOUT_S = 120.0
REPORT_GRACE_S = 5.0
"""Longest time for a kernel report to be printed to its end."""
PLACE_LOST_ADVICE = (
    "No fault of the device was found. If the labgrid coordinator is not running, start it. Otherwise run "
    "`labgrid-client who` to see who took the place. Quarantine a device before anyone works on it manually."
)
_GOLDEN, _VARIANT = "the golden system", "the variant"


class Status(enum.Enum):
    """State of the device, in the order in which a boot passes them."""

    unknown = 0
    off = 1
    """Without power; a device with an operating system of its own: left to that (`own_system.py`)."""
    golden = 2
    variant = 3


@dataclass
class BootTimes:
    """Seconds that each phase of a boot took."""

    golden: float = 0.0
    upload: float = 0.0
    kexec: float = 0.0


@target_factory.reg_driver
@attr.s(eq=False)
class KexecStrategy(Strategy):  # type: ignore[misc]
    """labgrid strategy for one device.

    Set `device`, `tap`, `wakeup`, `cancel` and `place_lost` before the first transition.
    """

    bindings = {"power": "PowerProtocol", "console": "ConsoleProtocol", "ssh": "DeviceSSHDriver"}
    device: DeviceFacts = attr.ib(default=None)
    tap: ConsoleTap = attr.ib(default=None)
    wakeup: Wakeup = attr.ib(default=None)
    cancel: Cancel = attr.ib(default=None)
    public_key: str = attr.ib(default="")
    """The lab's ed25519 public key blob, in base64."""
    place_lost: Callable[[], str | None] = attr.ib(default=lambda: None)
    """Return why this session no longer holds the labgrid place, or None while it does."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.status = Status.unknown
        self.times = BootTimes()
        self.token = ""
        self.golden_boot_id = ""
        self.jumped = False
        """True once the golden system was told to start the kernel under test in this boot."""
        self.stage = DeviceStep.POWER
        """Step of the boot in progress; names the step that failed in a health check."""

    def transition(self, to: Status, *, key: BootKey | None = None, image: VariantImage | None = None) -> None:
        """Bring the device to state `to`, through the states below it.

        `golden` needs `key`; `variant` needs `key` and `image`. Raises DeviceFailure if a state is not reached or the
        run is interrupted, ValueError if an argument is missing.
        """
        if to is Status.off:
            self._switch_off()
        elif to is Status.golden:
            if key is None:
                raise ValueError("a boot needs its key")
            started = self._start_boot()
            if self.status is not Status.off:
                self.transition(Status.off)
            self._boot_golden(key, started)
        elif to is Status.variant:
            if image is None:
                raise ValueError("a variant needs its image")
            if self.status is not Status.golden:
                self.transition(Status.golden, key=key)
            self._upload(image)
            self._boot_variant()
        else:
            raise ValueError(f"cannot go to {to.name}")
        self.status = to

    # --- off ----------------------------------------------------------------------------------------------------

    def _switch_off(self) -> None:
        self.cut_power()

    def cut_power(self) -> None:
        """End SSH and the boot, and switch the power off. Raises DeviceFailure."""
        self.ssh.close()
        self.target.activate(self.power)
        with power_time_limit("off"), power_errors("off"):
            self.power.off()
        self.tap.end_boot()

    def restore_power(self) -> None:
        """Switch the power on. Raises DeviceFailure."""
        self.target.activate(self.power)
        with power_time_limit("on"), power_errors("on"):
            self.power.on()

    # --- golden system ------------------------------------------------------------------------------------------

    def _start_boot(self) -> float:
        """Reset times and stage; return the start time (monotonic seconds)."""
        self.times = BootTimes()
        self.jumped = False
        self.stage = DeviceStep.POWER
        if self.tap.read_error:
            self.tap.reopen(self.cancel.is_set, REOPEN_S)
        return time.monotonic()

    def _boot_golden(self, key: BootKey, started: float) -> None:
        """Boot the device, which is in state `off`, into the golden system. The boot began at `started` (monotonic).

        The power is switched on with the console already open.
        """
        # The device must stay off this long to be cold; no event reports a discharged capacitor.
        self.wait(lambda: False, min(SETTLE_S, self.device.boot.power_off_s))
        self.tap.count_while_off()
        self.wait(lambda: False, max(0.0, self.device.boot.power_off_s - SETTLE_S))
        self.status = Status.unknown
        self.tap.begin_boot(key)
        power_on_time = time.monotonic()
        self.restore_power()
        self.stage = DeviceStep.GOLDEN
        self._await_golden(power_on_time)
        self.times.golden = time.monotonic() - started

    def _await_golden(self, power_on_time: float) -> None:
        """Wait for the golden system's ready line and connect by SSH. `power_on_time` is in monotonic seconds."""
        started, timeout_s = time.monotonic(), self.device.boot.golden_timeout_s
        ssh_said: str | None = None
        while (left := self._time_left(started, timeout_s)) > 0:
            self.wait(lambda: self.tap.ready is not None or self.tap.fatal is not None, min(left, QUIET_S))
            self._raise_if_fatal(_GOLDEN)
            if self.tap.ready:
                self._connect(_GOLDEN)
                self.golden_boot_id = self.tap.ready.boot_id
                return
            if time.monotonic() - self.tap.last_output >= QUIET_S:
                ssh_said = self.ssh.connect(self.wakeup, self.interrupted, min(5.0, left))
                if ssh_said is None and (found := self._check_cold_boot(time.monotonic() - power_on_time)):
                    self.golden_boot_id = found
                    return
            self.raise_if_interrupted()
        raise diagnose_boot.golden_not_up(self.tap, timeout_s, ssh_said)

    def _check_cold_boot(self, since_power_on_s: float) -> str | None:
        """Return the boot id of a golden system that printed no ready line; None if the own system still shuts down.

        Raises DeviceFailure if the system has been up for longer than the power: then the power switch does not act on
        this device.
        """
        answer = self.command(answering_system.READ_SYSTEM, 10)
        if self.device.own_system and answering_system.still_runs(answer, since_power_on_s):
            return None
        found = answering_system.read_system(answer)
        if found is None:
            raise infrastructure_failure(
                "the golden system answers by SSH, but its uptime is unreadable",
                excerpt=(answer.text + answer.stderr_text)[-2000:],
                suspect=True,
            )
        if found.up_s > since_power_on_s + UPTIME_SLACK_S or found.is_variant:
            raise diagnose_boot.never_off(found.up_s, since_power_on_s, found.command_line)
        return found.boot_id

    # --- variant ------------------------------------------------------------------------------------------------

    def _boot_variant(self) -> None:
        """Load the uploaded image with `kexec -l`, jump into it and wait for its ready line."""
        started = time.monotonic()
        self.token = secrets.token_hex(8)
        boot = self.device.boot
        answer = self.command(
            shlex.join(
                [
                    *("kexec", "-l", IMAGE_ON_DEVICE, f"--initrd={boot.rootfs}"),
                    *(f"--command-line={self.command_line()}", *kexec_options(self.device)),
                ]
            ),
            LOAD_TIMEOUT_S,
        )
        if answer.status:
            raise infrastructure_failure(
                f"kexec did not load the image (exit status {answer.status})",
                excerpt=(answer.stderr_text + answer.text)[-4000:],
                suspect=answer.transport_lost,
                of_variant=not answer.transport_lost,
            )
        self._jump()
        self._await_variant(boot.variant_timeout_s)
        self.times.kexec = time.monotonic() - started

    def command_line(self) -> str:
        """Return the variant's kernel command line. The device type's arguments come last and take precedence."""
        boot = self.device.boot
        words = [
            console_arguments(boot, self.device.netconsole),
            "panic=0",  # stop after a panic: a golden boot must not follow its report
            f"wqlab.token={self.token}",
            f"wqlab.ssh={self.public_key}",
            boot.kernel_arguments,
        ]
        return " ".join(word for word in words if word)

    def _upload(self, image: VariantImage) -> None:
        self.stage = DeviceStep.KEXEC
        started = time.monotonic()
        send_image(self.command, self.device, image, of_variant=False)
        self.times.upload = time.monotonic() - started

    def _jump(self) -> None:
        """Start `kexec -e` without waiting for it, since the command cuts its own connection.

        The network goes down first: a network card that is not reset at shutdown would go on writing into the next
        kernel's memory.
        """
        self.tap.begin_variant()
        self.jumped = True
        self.ssh.start(
            f"echo '<5>{diagnose_boot.KEXEC_MARKER}' > /dev/kmsg; "
            "setsid sh -c 'for n in /sys/class/net/*; do ip link set ${n##*/} down; done; exec kexec -e' "
            "< /dev/null > /dev/null 2>&1 &",
            self.wakeup,
        )

    def _await_variant(self, timeout_s: float) -> None:
        """Wait for the variant's ready line and connect by SSH.

        Raises DeviceFailure if the kernel reports a fatal error, reboots or does not come up in time.
        """
        offset = self.tap.offset
        started = time.monotonic()
        try:
            while (left := self._time_left(started, timeout_s)) > 0:
                self.wait(lambda: self.tap.ready is not None or self.tap.fatal is not None, min(left, QUIET_S))
                self._raise_if_fatal(_VARIANT)
                if self.tap.ready:
                    self.ssh.close()
                    self._check_ready(self.tap.ready.token)
                    self._connect(_VARIANT)
                    return
                if time.monotonic() - self.tap.last_output >= QUIET_S and self._is_variant_up(min(5.0, left)):
                    return
                self.raise_if_interrupted()
        except DeviceFailure:
            self.ssh.close()
            raise
        # On netconsole the line of the jump cannot come: the network goes down before it.
        if self.device.netconsole is None and (hung := diagnose_boot.hung_before_jump(self.tap, timeout_s)):
            raise hung
        silence = "" if self.tap.offset > offset else "; not one byte came on the console after the jump"
        title = f"the variant did not come up in {timeout_s} s{silence}"
        raise kernel_failure(self.tap.add_finding(FindingKind.HANG, title, self._report_excerpts()))

    def _time_left(self, started: float, timeout_s: float) -> float:
        """Return the seconds left for a boot. A device with recent console output (such as an emulated one on a busy
        host) gets SLOW_BOOT_FACTOR times its timeout."""
        now = time.monotonic()
        active = now - self.tap.last_output < CONSOLE_ACTIVE_S
        return started + timeout_s * (SLOW_BOOT_FACTOR if active else 1) - now

    def _check_ready(self, token: str) -> None:
        """Raise DeviceFailure if the ready line is not the variant's: the device rebooted."""
        if token != self.token:
            title = "the variant rebooted by itself before its userland was ready"
            raise kernel_failure(self.tap.add_finding(FindingKind.HANG, title, self._report_excerpts()))

    def _is_variant_up(self, timeout_s: float) -> bool:
        """Return True if the variant answers by SSH. The golden system may still answer in its place."""
        if self.ssh.connect(self.wakeup, self.interrupted, timeout_s) is not None:
            return False
        answer = self.command("cat /proc/cmdline", 10)
        if f"wqlab.token={self.token}" in answer.text.split():
            return True
        self.ssh.close()
        if self.device.own_system and answer.text.strip() and "wqlab.ssh=" not in answer.text:
            self._check_ready("")
        return False

    def _report_excerpts(self) -> str:
        return shorten("\n".join(report.excerpt for report in self.tap.reports), 8000)

    # --- waiting ------------------------------------------------------------------------------------------------

    def command(self, command: str, timeout_s: float, stdin: bytes | None = None) -> CommandResult:
        """Run a short command on the device.

        Raises DeviceFailure if it does not end in time or prints too much, or if the run is interrupted.
        """
        running = self.ssh.start(command, self.wakeup, stdin)
        try:
            self.wait(lambda: running.done, timeout_s)
        finally:
            if not running.done:
                running.kill()
        if running.answer is None:
            raise infrastructure_failure(
                f"the device did not answer `{command[:60]}` in {timeout_s:.0f} s",
                suspect=True,
                of_variant=self.jumped,
            )
        answer: CommandResult = running.answer
        if answer.output_excess:
            raise infrastructure_failure(
                f"the device answered `{command[:60]}` with {answer.output_excess}",
                suspect=True,
                of_variant=self.jumped,
            )
        return answer

    def _connect(self, system: str) -> None:
        reason = self.ssh.connect(
            self.wakeup, lambda: self.interrupted() or self.tap.fatal is not None, CONNECT_TIMEOUT_S
        )
        if reason is not None:
            self.raise_if_interrupted()
            self._raise_if_fatal(system)
            raise diagnose_boot.no_ssh_answer(
                self.tap, system, self.ssh.address, reason, of_variant=system == _VARIANT, stage=None
            )

    def wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait for `condition`; return False after the timeout. Raises DeviceFailure if the run is interrupted."""
        result = self.wakeup.wait_for(lambda: self.interrupted() or condition(), timeout_s)
        self.raise_if_interrupted()
        return result

    def _raise_if_fatal(self, system: str) -> None:
        """Raise DeviceFailure if the system reported a fatal error. That of a golden system is the device's."""
        if not self.tap.fatal:
            return
        report = self._complete_report()
        if system == _VARIANT or report.of_hardware:
            raise kernel_failure(report, of_variant=system == _VARIANT)
        raise infrastructure_failure(
            f"the golden system failed: {report.kind.value}: {report.title}", excerpt=report.excerpt, suspect=True
        )

    def raise_if_crashed(self) -> None:
        """Raise DeviceFailure if the console shows a panic, an oops or another fatal report of the variant."""
        self._raise_if_fatal(_VARIANT)

    def _complete_report(self) -> Report:
        """Return the fatal report once it is printed to its end."""
        self.wait(lambda: not self.tap.reporting, REPORT_GRACE_S)
        assert self.tap.fatal  # noqa: S101 - callers checked it
        # The first report is the cause: a panic that follows an oops adds nothing.
        return self.tap.fatal

    def interrupted(self) -> bool:
        """Return True if the run has to end: canceled, or its place or console is lost."""
        return self.cancel.is_set() or self.place_lost() is not None or self.tap.read_error is not None

    def raise_if_interrupted(self) -> None:
        """Raise DeviceFailure if the run has to end."""
        if self.cancel.failure:
            raise DeviceFailure(self.cancel.failure)
        if reason := self.place_lost():
            raise infrastructure_failure(reason, advice=PLACE_LOST_ADVICE, place_lost=True)
        if self.tap.read_error:
            self.stage = DeviceStep.CONSOLE
            raise infrastructure_failure(self.tap.read_error, advice=diagnose_boot.CONSOLE_BROKE_ADVICE)
