"""A labgrid device as the measuring loop sees it: boots that are verified, scripts that are watched."""

from __future__ import annotations

import io
import shlex
import tarfile
import time
from collections.abc import Mapping

import structlog

from wqlab_contracts.enums import STALLS, Arm, DeviceStep, FindingKind
from wqlab_contracts.messages import BootKey, Kernel, RunJob

from ..measure import monitor
from ..measure.device import Booted, DeviceFailure, ScriptOutput
from . import probe
from .kexec import KexecStrategy, Status, VariantImage
from .set_conditions import DeviceConditions
from .ssh import Answer
from .verify import infrastructure, kernel_failure, verified

log = structlog.get_logger()

PLAN_FOLDER = "/lab/plan"
PROBE_TIMEOUT_S = 60.0
RECONNECT_S = 20.0
ANSWER_S = 30.0
POKE_S = 10.0
"""How long a device has to echo a line feed on its console before it counts as hung."""


class LabgridDevice:
    """Implements `run.Device` on a KexecStrategy."""

    def __init__(
        self,
        strategy: KexecStrategy,
        job: RunJob,
        images: Mapping[Arm, VariantImage],
        facts: Mapping[str, str],
        modules: Mapping[Arm, Mapping[str, bytes]],
    ) -> None:
        self._strategy = strategy
        self._job = job
        self._images = images
        self._facts = facts
        self._modules = modules
        self._conditions = DeviceConditions(strategy, job.device)

    def boot(self, key: BootKey, kernel: Kernel) -> Booted:
        started = time.monotonic()
        strategy = self._strategy
        try:
            strategy.transition(Status.variant, key=key, image=self._images[key.arm])
            seen = self._verified(key.arm, kernel)
            strategy.stage = DeviceStep.FITNESS
            found = self._conditions.set_up()
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
        return Booted(
            kernel_boot_id=seen.boot_id,
            token=strategy.token,
            build_id_gnu=seen.build_id_gnu,
            release=seen.release,
            cmdline=seen.cmdline,
            topology=seen.topology,
            environment={**seen.environment, **found, **self._facts},
            golden_s=times.golden,
            kexec_s=times.kexec,
            console_bytes=strategy.tap.offset,
        )

    def restore(self) -> dict[str, str]:
        return self._conditions.put_back()

    def heard(self, word: str, timeout_s: float) -> bool:
        return self._strategy.wait(lambda: self._strategy.tap.heard(word), timeout_s)

    def off(self) -> None:
        """Never raises: it runs in every clean-up, and the next boot begins with it again."""
        try:
            self._strategy.transition(Status.off)
        except DeviceFailure as error:
            log.error("power off failed", error=error.failure.summary)
            self._strategy.tap.end()

    # --- verification -------------------------------------------------------------------------------------------

    def _verified(self, arm: Arm, kernel: Kernel) -> probe.Probe:
        """The plan's files, and modules, go over in the same command that asks what runs.

        Raises DeviceFailure unless token, boot_id, build-id and topology are what they must be.
        """
        answer = self._strategy.command(
            f"mkdir -p {PLAN_FOLDER} && tar -xf - -C {PLAN_FOLDER} && {{ {probe.COMMAND}; }}",
            PROBE_TIMEOUT_S,
            _tar({name: text.encode() for name, text in self._job.files.items()} | dict(self._modules.get(arm, {}))),
        )
        return verified(
            answer.stdout,
            answer.complaint,
            token=self._strategy.token,
            golden_boot_id=self._strategy.golden_boot_id,
            kernel=kernel,
            device=self._job.device,
        )

    # --- scripts ------------------------------------------------------------------------------------------------

    def script(
        self, action: str, environment: Mapping[str, str], timeout_s: float, *, monitored: bool = False
    ) -> ScriptOutput:
        strategy, tap = self._strategy, self._strategy.tap
        assignments = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
        script = shlex.quote(f"{PLAN_FOLDER}/{self._job.plan.script}")
        if monitored:
            script = f"{shlex.quote(f'{PLAN_FOLDER}/{monitor.SCRIPT}')} {script}"
        started = time.monotonic()
        # By its path: busybox's env would run its own applet for `sh`, and that its own awk, whatever the device has.
        command = f"cd {PLAN_FOLDER} && env {assignments} /bin/sh {script} {action}"
        running = strategy.ssh.start(command, strategy.watch)
        try:
            strategy.wait(lambda: running.done or tap.fatal is not None or self._rebooted(), timeout_s)
        finally:
            if not running.done:
                running.kill()
        answer = running.answer
        if tap.fatal or self._rebooted() or answer is None or answer.transport_lost:
            raise self._diagnosis(action, timeout_s, answer)
        if answer.excess:
            raise infrastructure(
                f"`{action}` was stopped: it printed {answer.excess}",
                excerpt=answer.complaint[-2000:] or answer.text[-2000:],
            )
        return ScriptOutput(
            stdout=answer.text,
            stderr=answer.complaint,
            status=answer.status,
            seconds=time.monotonic() - started,
        )

    def _rebooted(self) -> bool:
        ready = self._strategy.tap.ready
        return ready is not None and ready.token != self._strategy.token

    def _diagnosis(self, action: str, timeout_s: float, answer: Answer | None) -> DeviceFailure:
        """Who is to blame for a script that did not end: a report, a device that restarted or is silent, the network,
        or the script."""
        strategy, tap = self._strategy, self._strategy.tap
        # A device that dies takes its connection away before its report is printed to the end.
        strategy.wait(lambda: tap.fatal is not None or not tap.reporting, 5.0)
        strategy.wait(lambda: tap.fatal is None or not tap.reporting, 5.0)
        cut = answer is not None and answer.transport_lost
        heard = tap.offset
        if failure := self._by_ssh(action, timeout_s, cut):
            return failure
        if tap.offset == heard and not self._echoes():
            title = f"no answer by SSH and no console output during `{action}`"
            return self._gone(action, None) or kernel_failure(tap.found(FindingKind.HANG, title, ""))
        # The console moves: that is our kernel without a network, or the firmware of a device that restarted.
        strategy.wait(self._told, self._job.device.boot.golden_timeout_s)
        return self._by_ssh(action, timeout_s, cut) or infrastructure(
            f"the network connection to {self._job.device.name} broke during `{action}`; its console still answers",
            of_variant=True,
        )

    def _by_ssh(self, action: str, timeout_s: float, cut: bool) -> DeviceFailure | None:
        """What the device itself says when it is asked again; None when neither SSH nor its console says anything."""
        command_line = None if self._told() else self._command_line()
        if failure := self._gone(action, command_line):
            return failure
        return None if command_line is None else self._overrun(action, timeout_s, cut)

    def _told(self) -> bool:
        """The console has said what became of the kernel under test."""
        return self._strategy.tap.fatal is not None or self._rebooted()

    def _gone(self, action: str, command_line: str | None) -> DeviceFailure | None:
        """The failure of a kernel that reported its end, or in whose place another system runs.

        The golden system answers by SSH before its ready line: its command line has no token of ours.
        """
        tap = self._strategy.tap
        if tap.fatal:
            return kernel_failure(tap.fatal)
        other = command_line is not None and f"wqlab.token={self._strategy.token}" not in command_line.split()
        if other or self._rebooted():
            title = f"the kernel under test is gone: the device restarted by itself during `{action}`"
            return kernel_failure(tap.found(FindingKind.HANG, title, ""))
        return None

    def _command_line(self) -> str | None:
        """Of the kernel that answers by SSH, over a new connection; None when none does."""
        strategy = self._strategy
        if strategy.ssh.connect(strategy.watch, self._told, RECONNECT_S) is not None:
            return None
        running = strategy.ssh.start("cat /proc/cmdline", strategy.watch)
        try:
            strategy.wait(lambda: running.done or self._told(), ANSWER_S)
        finally:
            if not running.done:
                running.kill()
        answer: Answer | None = running.answer
        return None if answer is None or answer.status else answer.stdout.decode(errors="replace")

    def _overrun(self, action: str, timeout_s: float, cut: bool) -> DeviceFailure:
        """Our kernel answers. Tasks that the kernel itself calls stuck are the kernel's; else it is the script's."""
        tap = self._strategy.tap
        if stall := next((report for report in tap.reports if report.kind in STALLS), None):
            return kernel_failure(stall)
        if cut:
            return infrastructure(f"the SSH connection broke during `{action}`, though the device answers again")
        command = "dmesg -c > /dev/null; echo w > /proc/sysrq-trigger; dmesg | tail -n 200"
        blocked = self._strategy.command(command, ANSWER_S)
        text = blocked.stdout.decode(errors="replace")
        if "state:D" in text:
            title = f"tasks are blocked: `{action}` did not end in {timeout_s:.0f} s"
            return kernel_failure(tap.found(FindingKind.HUNG_TASK, title, text[-8000:]))
        ended = infrastructure(
            f"`{action}` did not end in {timeout_s:.0f} s, though the device answers", of_variant=True
        )
        return self._gone(action, None) or ended

    def _echoes(self) -> bool:
        """A console with an open terminal echoes a line feed, whatever became of the network."""
        tap = self._strategy.tap
        before = tap.offset
        self._strategy.console.write(b"\n")
        return self._strategy.wait(lambda: tap.offset > before, POKE_S)


def _tar(files: Mapping[str, bytes]) -> bytes:
    """What the plan needs on the device, as a tar stream."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            archive.addfile(entry, io.BytesIO(data))
    return stream.getvalue()
