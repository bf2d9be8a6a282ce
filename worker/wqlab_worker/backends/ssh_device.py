"""Device with a console and SSH: boot and verify variants, run the plan's script, diagnose failures."""

from __future__ import annotations

import io
import shlex
import tarfile
import time
from collections.abc import Mapping

import structlog

from wqlab_contracts.enums import STALLS, Arm, DeviceStep, FindingKind
from wqlab_contracts.excerpts import shorten
from wqlab_contracts.messages import BootKey, Kernel, RunJob

from ..measure.device_interface import DeviceFailure, ScriptOutput, VerifiedBoot
from ..measure.script_calls import checks_health, observer
from . import answering_system, crash_kernel, diagnose_boot, diagnose_console, probe
from .device_access import DeviceAccess
from .device_conditions import DeviceConditions
from .send_image import VariantImage
from .ssh import CommandResult
from .verify_boot import infrastructure_failure, kernel_failure, verify_variant

log = structlog.get_logger()

PLAN_FOLDER = "/lab/plan"
PROBE_TIMEOUT_S = 60.0
RECONNECT_S = 20.0
ANSWER_S = 30.0
ECHO_TIMEOUT_S = 10.0
"""Longest time for the console to echo a line feed; after it the device counts as hung."""


class SshDevice:
    """Implementation of `measure.device_interface.Device` on a `DeviceAccess`."""

    def __init__(
        self,
        strategy: DeviceAccess,
        job: RunJob,
        images: Mapping[str, VariantImage],
        facts: Mapping[str, str],
        modules: Mapping[Arm, Mapping[str, bytes]],
    ) -> None:
        self._strategy = strategy
        self._job = job
        self._images = images
        self._facts = facts
        self._modules = modules
        self._conditions = DeviceConditions(strategy, job.device)
        self._has_crash_kernel = False

    def boot(self, key: BootKey, kernel: Kernel) -> VerifiedBoot:
        started = time.monotonic()
        strategy = self._strategy
        try:
            if checks_health(self._job):
                strategy.try_power_switch()
            strategy.boot_variant(key, self._images[kernel.image.sha256])
            probed = self._verify(key.arm, kernel)
            if unusable := diagnose_boot.unusable_console(strategy.tap, self._job.device.name):
                raise unusable
            strategy.stage = DeviceStep.FITNESS
            facts = self._load_crash_kernel()
            conditions = self._conditions.apply()
        except DeviceFailure as error:
            error.stage = error.stage or strategy.stage
            raise
        times = strategy.times
        log.info(
            "boot verified",
            block=key.block,
            arm=key.arm.value,
            golden_s=round(times.golden, 2),
            upload_s=round(times.upload, 2),
            kexec_s=round(times.kexec, 2),
            verify_s=round(time.monotonic() - started - times.golden - times.upload - times.kexec, 2),
        )
        return VerifiedBoot(
            kernel_boot_id=probed.boot_id,
            token=strategy.token,
            build_id_gnu=probed.build_id_gnu,
            release=probed.release,
            cmdline=probed.cmdline,
            topology=probed.topology,
            environment={**probed.environment, **conditions, **facts, **self._facts},
            golden_s=times.golden,
            kexec_s=times.kexec,
            console_bytes=strategy.tap.offset,
        )

    def restore(self) -> dict[str, str]:
        return {**self._conditions.restore(), **diagnose_console.hardware_errors(self._strategy.tap.tail)}

    def wait_for_console(self, text: str, timeout_s: float) -> bool:
        return self._strategy.wait(lambda: self._strategy.tap.contains(text), timeout_s)

    def off(self) -> None:
        """Power off. Logs an error instead of raising it: every clean-up calls this, and the next boot repeats it."""
        try:
            self._strategy.end_boot()
        except DeviceFailure as error:
            log.error("power off failed", error=error.failure.summary)
            self._strategy.tap.end_boot()

    # --- verification -------------------------------------------------------------------------------------------

    def _verify(self, arm: Arm, kernel: Kernel) -> probe.Probe:
        """Copy the plan's files and modules to the device and verify the running kernel, in one command.

        Raises DeviceFailure unless token, boot id, build id and topology are as expected.
        """
        answer = self._strategy.command(
            f"mkdir -p {PLAN_FOLDER} && tar -xf - -C {PLAN_FOLDER} && {{ {probe.COMMAND}; }}",
            PROBE_TIMEOUT_S,
            _tar({name: text.encode() for name, text in self._job.files.items()} | dict(self._modules.get(arm, {}))),
        )
        return verify_variant(
            answer.stdout,
            answer.stderr_text,
            token=self._strategy.token,
            golden_boot_id=self._strategy.golden_boot_id,
            kernel=kernel,
            device=self._job.device,
        )

    def _load_crash_kernel(self) -> dict[str, str]:
        """Load the baseline's kernel as the crash kernel, if the device type has one; return the fact for the boot.

        The candidate's kernel could crash again. A boot is measured if the crash kernel cannot be loaded; a health
        check fails. Raises DeviceFailure.
        """
        self._has_crash_kernel = False
        if (mib := self._job.device.boot.crash_kernel_mib) is None:
            return {}
        image = self._images[self._job.kernels_of(Arm.BASELINE)[0].image.sha256]
        try:
            reason = crash_kernel.load(self._strategy, image)
        except DeviceFailure:
            self._strategy.raise_if_crashed()
            raise
        if reason:
            if checks_health(self._job):
                raise infrastructure_failure(
                    f"the crash kernel is not loaded: {reason}", advice=crash_kernel.ADVICE, suspect=True
                )
            return {"crash kernel": f"not loaded: {reason}"}
        self._has_crash_kernel = True
        self._strategy.tap.expect_crash_kernel()
        return {"crash kernel": f"the baseline's, in {mib} MiB"}

    # --- scripts ------------------------------------------------------------------------------------------------

    def script(
        self, action: str, environment: Mapping[str, str], timeout_s: float, *, monitored: bool = False
    ) -> ScriptOutput:
        strategy, tap = self._strategy, self._strategy.tap
        assignments = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
        script = shlex.quote(f"{PLAN_FOLDER}/{self._job.plan.script}")
        if monitored:
            script = f"{shlex.quote(f'{PLAN_FOLDER}/{observer(self._job)}')} {script}"
        started = time.monotonic()
        # Full path: for `sh`, busybox's env would run its own applet, which would use busybox's awk.
        command = f"cd {PLAN_FOLDER} && env {assignments} /bin/sh {script} {action}"
        running = strategy.ssh.start(command, strategy.wakeup)
        try:
            strategy.wait(lambda: running.done or tap.fatal is not None or self._strategy.has_restarted(), timeout_s)
        finally:
            if not running.done:
                running.kill()
        answer = running.answer
        if tap.fatal or self._strategy.has_restarted() or answer is None or answer.transport_lost:
            raise self._diagnose(action, timeout_s, answer)
        if answer.output_excess:
            raise infrastructure_failure(
                f"`{action}` was stopped: it printed {answer.output_excess}",
                excerpt=answer.stderr_text[-2000:] or answer.text[-2000:],
                of_variant=True,
            )
        if tap.crash_kernel_started:
            # It starts only after a crash, and hides all later reports.
            title = f"the console says that the crash kernel started, but the kernel under test ended `{action}`"
            raise kernel_failure(
                tap.add_finding(FindingKind.WRONG_RESULT, title, diagnose_console.last_lines(tap.tail))
            )
        return ScriptOutput(
            stdout=answer.text,
            stderr=answer.stderr_text,
            status=answer.status,
            seconds=time.monotonic() - started,
        )

    def _diagnose(self, action: str, timeout_s: float, answer: CommandResult | None) -> DeviceFailure:
        """Return the failure of a script that did not end.

        The cause is a kernel report, a restart, a hang, the network or the script.
        """
        strategy, tap = self._strategy, self._strategy.tap
        # A crashing kernel drops the connection before its report is printed to the end.
        strategy.wait(lambda: tap.fatal is not None or not tap.reporting, 5.0)
        strategy.wait(lambda: tap.fatal is None or not tap.reporting, 5.0)
        if self._has_crash_kernel and tap.fatal and not tap.fatal.stack:
            # Only the first lines came; the crash kernel prints the whole report.
            strategy.wait(lambda: tap.fatal_has_stack or tap.crash_log_ended, self._job.device.boot.variant_timeout_s)
        disconnected = answer is not None and answer.transport_lost
        console_offset = tap.offset
        if failure := self._failure_by_ssh(action, timeout_s, disconnected):
            return failure
        if tap.offset == console_offset and self._has_crash_kernel and strategy.console_needs_network:
            # The crash kernel is silent until its network card has a link.
            strategy.wait(lambda: tap.offset > console_offset, self._job.device.boot.variant_timeout_s)
        if tap.crash_kernel_started:
            return self._crash_kernel_failure(action)
        if tap.offset == console_offset and strategy.console_needs_network:
            back = self._own_system_failure(action, timeout_s, disconnected)
            return back or infrastructure_failure(
                f"no answer by SSH and no console output during `{action}`: the kernel hangs, or the network of "
                f"{self._job.device.name} is down",
                advice="Netconsole and SSH need the same network, so the lab cannot tell which. If the baseline passes "
                "and the series fails again, it is the series.",
                of_variant=True,
            )
        if tap.offset == console_offset and not self._console_echoes():
            title = f"no answer by SSH and no console output during `{action}`"
            return self._kernel_gone_failure(action, None) or kernel_failure(
                tap.add_finding(FindingKind.HANG, title, "")
            )
        # There is console output: from the kernel under test without a network, or from the firmware after a restart.
        if self._job.device.own_system is None:
            strategy.wait(self._kernel_ended, self._job.device.boot.golden_timeout_s)
        elif failure := self._own_system_failure(action, timeout_s, disconnected):
            return failure
        return self._failure_by_ssh(action, timeout_s, disconnected) or infrastructure_failure(
            f"the network connection to {self._job.device.name} broke during `{action}`; its console still answers",
            of_variant=True,
        )

    def _failure_by_ssh(self, action: str, timeout_s: float, disconnected: bool) -> DeviceFailure | None:
        """Ask the device again by SSH and return the failure; None if neither SSH nor the console answers."""
        command_line = (
            None
            if self._kernel_ended()
            else self._strategy.running_command_line(self._kernel_ended, RECONNECT_S, ANSWER_S)
        )
        if failure := self._kernel_gone_failure(action, command_line):
            return failure
        return None if command_line is None else self._timeout_failure(action, timeout_s, disconnected)

    def _crash_kernel_failure(self, action: str) -> DeviceFailure:
        """Wait for the report in the crash log; return the failure. A crash kernel starts only after a crash."""
        tap = self._strategy.tap
        self._strategy.wait(
            lambda: tap.fatal is not None or tap.crash_log_ended, self._job.device.boot.variant_timeout_s
        )
        if tap.fatal:
            return kernel_failure(tap.fatal)
        title = f"the kernel crashed during `{action}`; its crash kernel started, but printed no report of the crash"
        return kernel_failure(tap.add_finding(FindingKind.PANIC, title, diagnose_console.last_lines(tap.tail)))

    def _own_system_failure(self, action: str, timeout_s: float, disconnected: bool) -> DeviceFailure | None:
        """Wait until the device's own system, if it has one, answers by SSH after a restart; return the failure.

        That system says nothing on the lab's console. None if nothing answers in its time.
        """
        own, started = self._job.device.own_system, time.monotonic()
        while own and time.monotonic() - started < own.timeout_s:
            if failure := self._failure_by_ssh(action, timeout_s, disconnected):
                return failure
            self._strategy.wait(self._kernel_ended, answering_system.PAUSE_S)
        return self._kernel_gone_failure(action, None)

    def _kernel_ended(self) -> bool:
        """Return True if the console shows that the kernel under test has ended."""
        return self._strategy.tap.fatal is not None or self._strategy.has_restarted()

    def _kernel_gone_failure(self, action: str, command_line: str | None) -> DeviceFailure | None:
        """Return the failure of a kernel that reported a fatal error or was replaced by another system, else None.

        The golden system answers by SSH before its ready line; its command line has no token of this boot.
        """
        tap = self._strategy.tap
        if tap.fatal:
            return kernel_failure(tap.fatal)
        other = command_line is not None and f"wqlab.token={self._strategy.token}" not in command_line.split()
        if other or self._strategy.has_restarted():
            title = f"the kernel under test is gone: the device restarted by itself during `{action}`"
            return kernel_failure(tap.add_finding(FindingKind.HANG, title, ""))
        return None

    def _timeout_failure(self, action: str, timeout_s: float, disconnected: bool) -> DeviceFailure:
        """Return the failure if the kernel under test still answers: the kernel's if it reports blocked tasks, else the
        script's."""
        tap = self._strategy.tap
        if stall := next((report for report in tap.reports if report.kind in STALLS), None):
            return kernel_failure(stall)
        if disconnected:
            return infrastructure_failure(
                f"the SSH connection broke during `{action}`, though the device answers again", of_variant=True
            )
        command = "dmesg -c > /dev/null; echo w > /proc/sysrq-trigger; dmesg | tail -n 200"
        blocked = self._strategy.command(command, ANSWER_S)
        text = blocked.stdout.decode(errors="replace")
        if "state:D" in text:
            title = f"tasks are blocked: `{action}` did not end in {timeout_s:.0f} s"
            return kernel_failure(tap.add_finding(FindingKind.HUNG_TASK, title, shorten(text, 8000)))
        ended = infrastructure_failure(
            f"`{action}` did not end in {timeout_s:.0f} s, though the device answers", of_variant=True
        )
        return self._kernel_gone_failure(action, None) or ended

    def _console_echoes(self) -> bool:
        """Return True if the console echoes a line feed, as an open terminal does even without a network."""
        tap = self._strategy.tap
        before = tap.offset
        self._strategy.type_line()
        return self._strategy.wait(lambda: tap.offset > before, ECHO_TIMEOUT_S)


def _tar(files: Mapping[str, bytes]) -> bytes:
    """Return the files as a tar archive, each executable."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            archive.addfile(entry, io.BytesIO(data))
    return stream.getvalue()
