"""Measure on a machine whose own distribution runs: start each kernel there by kexec, and restart into the
distribution at the end. Its disks are not written.

There is no console. The kernel's log is read by SSH once the kernel answers, so what it prints before, or after its
network failed, is not seen.
"""

from __future__ import annotations

import os
import secrets
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wqlab_contracts.enums import Arm, DeviceStep
from wqlab_contracts.messages import Artifact, BlockPlan, BootKey, DeviceFacts, RunJob, RunResult

from ...build.modules import files_for_kernel
from ...measure.measuring_loop import measure
from ..answering_system import ANSWER_S, LOGIN_S, AnsweringSystem, ask, run
from ..console_tap import ConsoleTap, Wakeup
from ..device_access import BootTimes, DeviceAccess
from ..interface import LOAD_TIMEOUT_S, Cancel, EventSink
from ..send_image import VariantImage
from ..ssh import CommandResult, FixedSsh, SshConnection, SshServer
from ..ssh_device import SshDevice
from ..verify_boot import infrastructure_failure
from . import kexec_program, look, recovery
from .emulator import wake_when_canceled
from .fed_console import FedConsole

UPLOAD_S = 600.0
COMMAND_S = 60.0
PANIC_S = 1
"""Seconds from a panic to the restart into the distribution. The firmware has the log by then, and nothing answers."""
QUIET_S = 2.0
VARIANT_ANSWER_S = 5.0
"""Longest time in seconds to wait for a kernel under test to answer. A distribution refuses the lab's key at once."""
OWN_EVERY_S = 10.0
"""Interval in seconds at which to check, while a kernel does not come up, whether the distribution answers."""
BUTTON_S = 3600.0
"""Longest time in seconds to wait until somebody restarts a machine that hangs."""
RESTART_LAB_SYSTEM = "(sleep 1; reboot -f) > /dev/null 2>&1 < /dev/null &"


@dataclass(frozen=True)
class Machine:
    """A machine and how it is reached."""

    name: str
    own: SshServer
    """The distribution."""
    lab: SshServer
    """Kernels under test, at the same address."""
    has_systemd: bool
    watchdogs: Sequence[str] = ()
    """Modules of watchdogs that the kernels under test have too."""
    restart_s: int = 300
    """Longest time of a restart into the distribution."""
    warnings: Sequence[str] = ()
    """Warnings that the user has accepted, such as users who are logged in."""


class MachineBackend:
    """Backend for one machine. `initramfs` has the image of each arm, `rootfs` the lab's root filesystem.

    `say(text)` is called with messages for the user: what happens, and what to do by hand.
    """

    def __init__(
        self,
        machine: Machine,
        *,
        initramfs: Mapping[Arm, Path],
        rootfs: Path,
        fetch: Callable[[Artifact], Path],
        public_key: str,
        say: Callable[[str], None],
    ) -> None:
        self._machine = machine
        self._initramfs = initramfs
        self._rootfs = rootfs
        self._fetch = fetch
        self._public_key = public_key
        self._say = say

    def execute(self, job: RunJob, remaining: Sequence[BlockPlan], emit: EventSink, cancel: Cancel) -> RunResult:
        wakeup = Wakeup()
        access = MachineAccess(
            self._machine, job.device, self._initramfs, kexec_program.archive(self._rootfs), emit, cancel, wakeup,
            public_key=self._public_key, say=self._say,
        )  # fmt: skip
        images = {
            kernel.image.sha256: VariantImage(self._fetch(kernel.image), kernel.image.sha256)
            for kernel in job.kernels.values()
        }
        modules = {arm: files_for_kernel(job, kernel, self._fetch) for arm, kernel in job.kernels.items()}
        threading.Thread(target=wake_when_canceled, args=(cancel, wakeup), name="cancel", daemon=True).start()
        try:
            return measure(job, remaining, SshDevice(access, job, images, {}, modules), emit, cancel)
        finally:
            access.restart_into_distribution()
            access.close()


class MachineAccess(DeviceAccess):
    """Access to a machine on which one of two systems answers: its distribution, or a kernel under test."""

    panic_s = PANIC_S

    def __init__(  # noqa: PLR0917 - a machine, and what is brought to it
        self,
        machine: Machine,
        device: DeviceFacts,
        initramfs: Mapping[Arm, Path],
        kexec: bytes,
        emit: EventSink,
        cancel: Cancel,
        wakeup: Wakeup,
        *,
        public_key: str,
        say: Callable[[str], None],
    ) -> None:
        self.device, self.cancel, self.wakeup, self.public_key = device, cancel, wakeup, public_key
        self._machine, self._initramfs, self._kexec, self._say = machine, initramfs, kexec, say
        self.ssh = FixedSsh(machine.lab)
        self._own = FixedSsh(machine.own)
        self._console = FedConsole()
        self.tap = ConsoleTap(self._console, emit, wakeup)
        self.place_lost = lambda: None
        self.times, self.token, self.golden_boot_id = BootTimes(), "", ""
        self.jumped, self.stage = False, DeviceStep.POWER
        self._log: subprocess.Popen[bytes] | None = None
        self._guard: recovery.Guard | None = None
        self._is_waiting = False
        self._asked_own_at = 0.0
        self._has_watchdog: bool | None = None
        self._known_logs: set[str] | None = None
        """Crash logs that the machine had before the first kernel under test; None before that is started."""
        self._touched = False
        """True once the machine has left its distribution, or was asked to."""
        self.tap.start()

    def close(self) -> None:
        """Stop reading and disconnect."""
        self._end_log()
        if self._guard is not None:
            self._guard.end()
        self.tap.stop()
        self.ssh.close()
        self._own.close()

    # --- DeviceAccess -------------------------------------------------------------------------------------------

    def quiet_s(self) -> float:
        return QUIET_S

    @property
    def console_needs_network(self) -> bool:
        return True

    def command_line(self) -> str:
        return f"{super().command_line()} {recovery.START_WATCHDOGS}"

    def boot_variant(self, key: BootKey, image: VariantImage) -> None:
        self.times, self.token, self.jumped = BootTimes(), secrets.token_hex(8), False
        self.tap.begin_boot(key)
        started = time.monotonic()
        self.stage = DeviceStep.GOLDEN
        ssh, system = self._running_system()
        self._is_waiting = False
        if not system.of_lab:
            self._raise_if_used(ssh)
        self.golden_boot_id = system.boot_id
        self.times.golden = time.monotonic() - started
        self.stage = DeviceStep.KEXEC
        started = time.monotonic()
        folder = self._upload(ssh, image, self._initramfs[key.arm], of_lab=system.of_lab)
        self.times.upload = time.monotonic() - started
        started = time.monotonic()
        self._load(ssh, folder, of_lab=system.of_lab)
        self.tap.begin_variant()
        self._jump(ssh, folder, of_lab=system.of_lab)
        self.await_variant(self.device.boot.variant_timeout_s)
        self.times.kexec = time.monotonic() - started
        self._follow_log()
        self._tell_watchdog(recovery.feed_watchdog(self.ssh, self.wakeup))
        self._guard = recovery.Guard(self.ssh) if self._has_watchdog else None

    def end_boot(self) -> None:
        """End the boot. The kernel goes on running: the next one is started from there."""
        self._end_log()
        self._console.drain()
        self.tap.end_boot()

    def type_line(self) -> None:
        """Nothing can be typed without a console."""

    def is_variant_up(self, timeout_s: float) -> bool:
        system = ask(self.ssh, self.wakeup, timeout_s, self.interrupted)
        self.raise_if_interrupted()
        if isinstance(system, AnsweringSystem) and f"wqlab.token={self.token}" in system.command_line.split():
            return True
        self.ssh.close()
        if time.monotonic() - self._asked_own_at > OWN_EVERY_S:
            found = ask(self._own, self.wakeup, timeout_s, self.interrupted)
            self._asked_own_at = time.monotonic()
            if isinstance(found, AnsweringSystem) and not found.of_lab and found.boot_id != self.golden_boot_id:
                self._read_crash_log()
                self.raise_if_crashed()
                raise self.restarted()
        return False

    def running_command_line(self, stopped: Callable[[], bool], timeout_s: float, answer_s: float) -> str | None:
        found = self.ask_command_line(self.ssh, stopped, timeout_s, answer_s)
        if found is not None and "wqlab.ssh=" in found:
            return found
        # The distribution may have let in a key of the user, which SSH offers too.
        found = found or self.ask_command_line(self._own, stopped, timeout_s, answer_s)
        if found is not None:
            self._read_crash_log()
        else:
            self._tell_waiting()
        return found

    def _read_crash_log(self) -> None:
        """Add the crash log that the machine's firmware kept to the console output of this boot."""
        if self._known_logs is not None and (log := recovery.new_log(self._own, self.wakeup, self._known_logs)):
            self._known_logs |= recovery.kept_logs(self._own, self.wakeup)
            self._console.feed(log)
            self._console.drain()
            self.tap.flush()

    # --- starting a variant -------------------------------------------------------------------------------------

    def _running_system(self) -> tuple[SshConnection, AnsweringSystem]:
        """Return the system that answers, and the connection to it. Wait for a machine that restarts, and for somebody
        who restarts one that hangs. Raises DeviceFailure."""
        deadline = time.monotonic() + self._machine.restart_s
        told = False
        reason = ""
        while True:
            if (variant := self._running_variant()) is not None:
                return self.ssh, variant
            found = ask(self._own, self.wakeup, ANSWER_S, self.interrupted)
            self.raise_if_interrupted()
            if isinstance(found, AnsweringSystem):
                return self._own, found
            self._own.close()
            reason = found
            if self._touched:
                self._tell_waiting()
            if time.monotonic() > deadline and not told:
                if not self._touched:
                    break
                told = True
                self._say(
                    f"{self._machine.name} has not come back in {self._machine.restart_s} s: switch it off and on by "
                    f"hand. This waits for it for {BUTTON_S / 60:.0f} minutes; Ctrl-C ends it"
                )
                deadline = time.monotonic() + BUTTON_S
            elif time.monotonic() > deadline:
                break
            self.wait(lambda: False, QUIET_S)
        raise infrastructure_failure(
            f"{self._machine.name} does not answer by SSH: {reason}",
            advice="See that it runs, and that `ssh` to it works without a password.",
            suspect=True,
            stage=DeviceStep.GOLDEN,
        )

    def _raise_if_used(self, ssh: SshConnection) -> None:
        """Raise DeviceFailure if somebody works on the distribution whom the user has not been asked about."""
        answer = self._run(ssh, "sh -s", COMMAND_S, look.COMMAND.encode())
        try:
            found = look.losses(look.parse(answer.text))
        except look.LookError as error:
            found = [str(error)]
        if new := [each for each in found if each not in self._machine.warnings]:
            raise infrastructure_failure(
                f"{self._machine.name}: {'; '.join(new)}",
                advice="`wqlab ab --resume` asks whether to use the machine nevertheless.",
                stage=DeviceStep.GOLDEN,
            )

    def _tell_waiting(self) -> None:
        """Print, once in each boot, how a machine that does not answer restarts."""
        if self._is_waiting:
            return
        self._is_waiting = True
        hang = "after a hang its watchdog restarts it within minutes"
        if not self._has_watchdog:
            hang = "after a hang it does not: press its button, or switch it off and on"
        self._say(f"waiting for {self._machine.name}: after a panic it restarts by itself; {hang}")

    def _running_variant(self) -> AnsweringSystem | None:
        """Return the kernel under test that answers with the lab's key; None if none does."""
        found = ask(self.ssh, self.wakeup, VARIANT_ANSWER_S, self.interrupted)
        if isinstance(found, AnsweringSystem) and found.of_lab:
            return found
        self.ssh.close()
        return None

    def _run(self, ssh: SshConnection, command: str, timeout_s: float, stdin: bytes | None = None) -> CommandResult:
        """Run a command on the system behind `ssh`. Raises DeviceFailure if it fails."""
        running = ssh.start(command, self.wakeup, stdin)
        try:
            self.wait(lambda: running.done, timeout_s)
        finally:
            if not running.done:
                running.kill()
        answer = running.answer
        if answer is None or answer.status:
            said = "no answer" if answer is None else (answer.stderr_text + answer.text).strip()
            raise infrastructure_failure(
                f"`{command[:60]}` failed on {self._machine.name}: {said.rpartition(chr(10))[2][:200] or 'no reason'}",
                excerpt=said[-4000:],
                stage=self.stage,
            )
        return answer

    def _upload(self, ssh: SshConnection, image: VariantImage, initramfs: Path, *, of_lab: bool) -> str:
        """Copy kernel and initramfs, and for a distribution kexec, into a new folder in memory; return the folder."""
        # /dev/shm is memory in which everybody may write, and programs of /run are not run on Debian.
        make = "mktemp -d /dev/shm/wqlab.XXXXXX"
        folder = "/lab" if of_lab else self._run(ssh, make, COMMAND_S).text.strip().rpartition("\n")[2]
        if not of_lab:
            self._run(ssh, f"tar -xf - -C {shlex.quote(folder)}", UPLOAD_S, self._kexec)
        for path, name in ((image.path, "variant"), (initramfs, "initramfs")):
            data, target = path.read_bytes(), shlex.quote(f"{folder}/{name}")
            answer = self._run(ssh, f"cat > {target} && stat -c %s {target}", UPLOAD_S, data)
            if answer.text.split()[-1:] != [str(len(data))]:
                raise infrastructure_failure(
                    f"{name} did not arrive whole on {self._machine.name}: {answer.text.strip()[:80]} bytes",
                    stage=DeviceStep.KEXEC,
                )
        return folder

    def _load(self, ssh: SshConnection, folder: str, *, of_lab: bool) -> None:
        kexec = "kexec" if of_lab else kexec_program.command(folder)
        words = ["-l", f"{folder}/variant", f"--initrd={folder}/initramfs", f"--command-line={self.command_line()}"]
        # -a: by the newer system call where there is one, as signed kernels need, else by the older one.
        self._run(ssh, f"{kexec} -a {shlex.join(words)} && rm -f {folder}/variant {folder}/initramfs", LOAD_TIMEOUT_S)

    def _jump(self, ssh: SshConnection, folder: str, *, of_lab: bool) -> None:
        armed = ""
        if not of_lab:
            logs = recovery.kept_logs(ssh, self.wakeup)
            for path in sorted(logs - self._known_logs) if self._known_logs is not None else ():
                self._say(f"{self._machine.name}: it came back too late for the report; its log of a crash is {path}")
            self._known_logs = logs
            if self._machine.watchdogs:
                armed, reason = recovery.arm_watchdog(ssh, self.wakeup, self._machine.watchdogs)
                if armed:
                    self._tell_watchdog(True)
                else:
                    self._say(f"{self._machine.name}: no watchdog runs during this kexec: {reason}")
        elif self._guard is not None:
            self._guard.end()
        self._touched = self.jumped = True
        command = kexec_program.start(folder, of_lab=of_lab, has_systemd=self._machine.has_systemd)
        answer = run(ssh, self.wakeup, command, COMMAND_S)
        if answer is not None and answer.status and not answer.transport_lost:
            if armed:
                recovery.disarm_watchdog(ssh, self.wakeup, armed)
            raise infrastructure_failure(
                f"`{command.partition(' <')[0]}` failed on {self._machine.name}",
                excerpt=(answer.stderr_text + answer.text)[-2000:],
                stage=DeviceStep.KEXEC,
            )
        ssh.close()

    # --- watchdog and log ---------------------------------------------------------------------------------------

    def _tell_watchdog(self, runs: bool) -> None:
        if runs is not self._has_watchdog:
            self._has_watchdog = runs
            self._say(
                f"{self._machine.name}: its watchdog runs, and restarts it some minutes after a hang"
                if runs
                else f"{self._machine.name}: no watchdog runs: after a hang, switch it off and on by hand"
            )

    def _follow_log(self) -> None:
        """Feed the kernel's log, from its beginning, into the console."""
        self._log = self.ssh.stream("cat /dev/kmsg")
        threading.Thread(target=self._read_log, args=(self._log,), name="kernel log", daemon=True).start()
        # The probe comes next: a kernel that has oopsed already must be seen before it is measured.
        self.wait(lambda: self.tap.offset > 0, COMMAND_S)

    def _read_log(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout  # noqa: S101 - a pipe
        while data := os.read(process.stdout.fileno(), 1 << 16):
            self._console.feed(data)

    def _end_log(self) -> None:
        if self._log is not None:
            self._log.kill()
            self._log.wait()
            self._log = None

    # --- the end ------------------------------------------------------------------------------------------------

    def restart_into_distribution(self) -> None:
        """Restart a machine on which a kernel under test runs, and wait until its distribution answers, also after a
        cancellation. Failures are printed by `say`, not raised."""
        if not self._touched:
            return
        self._say(f"{self._machine.name}: waiting for its own system")
        deadline = time.monotonic() + self._machine.restart_s
        while time.monotonic() < deadline:
            # A kernel under test may be starting still. Only that is restarted at once: a distribution has open files.
            found = ask(self.ssh, self.wakeup, ANSWER_S, lambda: False)
            if isinstance(found, AnsweringSystem) and found.of_lab:
                run(self.ssh, self.wakeup, RESTART_LAB_SYSTEM, LOGIN_S)
            self.ssh.close()
            found = ask(self._own, self.wakeup, ANSWER_S, lambda: False)
            if isinstance(found, AnsweringSystem) and not found.of_lab:
                self._say(f"{self._machine.name}: its own system runs again")
                return
            self._own.close()
            self.wakeup.wait_for(lambda: False, QUIET_S)
        self._say(
            f"{self._machine.name} has not come back in {self._machine.restart_s} s: switch it off and on by hand"
        )
