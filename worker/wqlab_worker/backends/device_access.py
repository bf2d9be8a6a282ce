"""Access to a device whose console is read and that answers by SSH, while it boots and afterwards.

Each wait is for events: the ready line on the console, a fatal report, the end of a command, a cancellation. A timeout
ends only a wait that no event ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from wqlab_contracts.consoles.detect import Report
from wqlab_contracts.enums import DeviceStep, FindingKind
from wqlab_contracts.excerpts import shorten
from wqlab_contracts.messages import BootKey, DeviceFacts
from wqlab_contracts.specs import console_arguments

from ..measure.device_interface import DeviceFailure
from . import diagnose_boot
from .console_tap import ConsoleTap, Wakeup
from .interface import Cancel
from .send_image import VariantImage
from .ssh import CommandResult, SshConnection
from .verify_boot import infrastructure_failure, kernel_failure

CONNECT_TIMEOUT_S = 30.0
"""Longest time in seconds from the ready line to an SSH connection."""
QUIET_S = 10.0
"""After this much silence on the console, try SSH: the ready line may have been garbled."""
CONSOLE_ACTIVE_S = 30.0
SLOW_BOOT_FACTOR = 3
"""A boot with console output in the last CONSOLE_ACTIVE_S may take its timeout times this factor."""
REPORT_GRACE_S = 5.0
"""Longest time in seconds to wait for the end of a kernel report."""
PLACE_LOST_ADVICE = (
    "No fault of the device was found. If the labgrid coordinator is not running, start it. Otherwise run "
    "`labgrid-client who` to see who took the place. Quarantine a device before anyone works on it manually."
)
GOLDEN, VARIANT = "the golden system", "the variant"


@dataclass
class BootTimes:
    """Seconds that each phase of a boot took."""

    golden: float = 0.0
    upload: float = 0.0
    kexec: float = 0.0


class DeviceAccess:
    """Base class: waits for a variant, runs commands on it and reports its failures. Subclasses start the variant."""

    device: DeviceFacts
    tap: ConsoleTap
    wakeup: Wakeup
    cancel: Cancel
    ssh: SshConnection
    public_key: str
    """The lab's ed25519 public key blob, in base64."""
    place_lost: Callable[[], str | None]
    """Return why this session no longer holds the device, or None while it does."""
    times: BootTimes
    token: str
    golden_boot_id: str
    jumped: bool
    """True once the kernel under test was told to start in this boot."""
    panic_s = 0
    """Seconds after a panic until the variant restarts; 0: it stops, so that no other boot follows its report."""
    stage: DeviceStep
    """Step of the boot in progress; names the step that failed in a health check."""

    # --- what differs between devices ---------------------------------------------------------------------------

    def boot_variant(self, key: BootKey, image: VariantImage) -> None:
        """Start the variant anew and connect to it by SSH. Raises DeviceFailure."""
        raise NotImplementedError

    def end_boot(self) -> None:
        """End the boot, and leave nothing of it running. Raises DeviceFailure."""
        raise NotImplementedError

    def type_line(self) -> None:
        """Send a line feed to the console, which an open terminal echoes."""
        raise NotImplementedError

    def try_power_switch(self) -> None:
        """Test the power switch, in a health check. Does nothing for a device without one. Raises DeviceFailure."""

    @property
    def console_needs_network(self) -> bool:
        """Return True if console and SSH need the same network, so that both are silent if it is down."""
        return self.device.netconsole is not None

    def quiet_s(self) -> float:
        """Return the silence on the console in seconds after which SSH is tried."""
        return QUIET_S

    def has_restarted(self) -> bool:
        """Return True if the console shows that another system came up in place of the variant."""
        ready = self.tap.ready
        return ready is not None and ready.token != self.token

    # --- the variant --------------------------------------------------------------------------------------------

    def command_line(self) -> str:
        """Return the variant's kernel command line. The device type's arguments come last and take precedence."""
        boot = self.device.boot
        words = [
            console_arguments(boot, self.device.netconsole),
            f"panic={self.panic_s}",
            f"wqlab.token={self.token}",
            f"wqlab.ssh={self.public_key}",
            boot.kernel_arguments,
        ]
        return " ".join(word for word in words if word)

    def await_variant(self, timeout_s: float) -> None:
        """Wait for the variant's ready line and connect by SSH.

        Raises DeviceFailure if the kernel reports a fatal error, reboots or does not come up in time.
        """
        offset = self.tap.offset
        started = time.monotonic()
        try:
            while (left := self.time_left(started, timeout_s)) > 0:
                self.wait(self._has_come_or_failed, min(left, self.quiet_s()))
                self.raise_if_fatal(VARIANT)
                if self.has_restarted():
                    self.ssh.close()
                    raise self.restarted()
                if self.tap.ready:
                    self.ssh.close()
                    self.connect(VARIANT)
                    return
                if time.monotonic() - self.tap.last_output >= self.quiet_s() and self.is_variant_up(min(5.0, left)):
                    return
                self.raise_if_interrupted()
        except DeviceFailure:
            self.ssh.close()
            raise
        # On netconsole the line of the jump cannot come: the network goes down before it.
        if not self.console_needs_network and (hung := diagnose_boot.hung_before_jump(self.tap, timeout_s)):
            raise hung
        is_mute = self.tap.offset == offset and not self.console_needs_network
        silence = "; not one byte came on the console after the jump" if is_mute else ""
        title = f"the variant did not come up in {timeout_s} s{silence}"
        raise kernel_failure(self.tap.add_finding(FindingKind.HANG, title, self._report_excerpts()))

    def time_left(self, started: float, timeout_s: float) -> float:
        """Return the seconds left for a boot. A device with recent console output (such as an emulated one on a busy
        host) gets SLOW_BOOT_FACTOR times its timeout."""
        now = time.monotonic()
        active = now - self.tap.last_output < CONSOLE_ACTIVE_S
        return started + timeout_s * (SLOW_BOOT_FACTOR if active else 1) - now

    def _has_come_or_failed(self) -> bool:
        return self.tap.ready is not None or self.tap.fatal is not None or self.has_restarted()

    def restarted(self) -> DeviceFailure:
        """Return the failure of a variant that restarted before it was up, as a finding against its kernel."""
        title = "the variant rebooted by itself before its userland was ready"
        return kernel_failure(self.tap.add_finding(FindingKind.HANG, title, self._report_excerpts()))

    def is_variant_up(self, timeout_s: float) -> bool:
        """Return True if the variant answers by SSH. The golden system may still answer in its place."""
        if self.ssh.connect(self.wakeup, self.interrupted, timeout_s) is not None:
            return False
        answer = self.command("cat /proc/cmdline", 10)
        if f"wqlab.token={self.token}" in answer.text.split():
            return True
        self.ssh.close()
        if self.device.own_system and answer.text.strip() and "wqlab.ssh=" not in answer.text:
            raise self.restarted()
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
        answer = running.answer
        if answer.output_excess:
            raise infrastructure_failure(
                f"the device answered `{command[:60]}` with {answer.output_excess}",
                suspect=True,
                of_variant=self.jumped,
            )
        return answer

    def connect(self, system: str) -> None:
        """Connect by SSH to the system that printed its ready line. Raises DeviceFailure."""
        reason = self.ssh.connect(
            self.wakeup, lambda: self.interrupted() or self.tap.fatal is not None, CONNECT_TIMEOUT_S
        )
        if reason is not None:
            self.raise_if_interrupted()
            self.raise_if_fatal(system)
            raise diagnose_boot.no_ssh_answer(
                self.tap, system, self.ssh.address, reason, of_variant=system == VARIANT, stage=None
            )

    def wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait for `condition`; return False after the timeout. Raises DeviceFailure if the run is interrupted."""
        result = self.wakeup.wait_for(lambda: self.interrupted() or condition(), timeout_s)
        self.raise_if_interrupted()
        return result

    def raise_if_fatal(self, system: str) -> None:
        """Raise DeviceFailure if the system reported a fatal error. That of a golden system is the device's."""
        if not self.tap.fatal:
            return
        report = self._complete_report()
        if system == VARIANT or report.of_hardware:
            raise kernel_failure(report, of_variant=system == VARIANT)
        raise infrastructure_failure(
            f"the golden system failed: {report.kind.value}: {report.title}", excerpt=report.excerpt, suspect=True
        )

    def running_command_line(self, stopped: Callable[[], bool], timeout_s: float, answer_s: float) -> str | None:
        """Return the command line of the kernel that answers over a new SSH connection; None if none answers."""
        return self.ask_command_line(self.ssh, stopped, timeout_s, answer_s)

    def ask_command_line(
        self, ssh: SshConnection, stopped: Callable[[], bool], timeout_s: float, answer_s: float
    ) -> str | None:
        """Return the command line of the kernel behind `ssh`, which is connected anew; None if it does not answer."""
        if ssh.connect(self.wakeup, stopped, timeout_s) is not None:
            return None
        running = ssh.start("cat /proc/cmdline", self.wakeup)
        try:
            self.wait(lambda: running.done or stopped(), answer_s)
        finally:
            if not running.done:
                running.kill()
        answer = running.answer
        return None if answer is None or answer.status else answer.stdout.decode(errors="replace")

    def raise_if_crashed(self) -> None:
        """Raise DeviceFailure if the console shows a panic, an oops or another fatal report of the variant."""
        self.raise_if_fatal(VARIANT)

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
