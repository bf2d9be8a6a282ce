"""LAVA device: run the boots of a run as LAVA jobs, and replay their results to the measuring loop.

A job carries all remaining boots; each is measured on the device without the worker. The measuring loop makes all
decisions. If it needs another boot than the job makes next (a repeated block, a control boot), the job is cancelled and
a new one begins with that boot, on the same device.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import structlog

from wqlab_contracts.enums import ArtifactKind, DeviceStep
from wqlab_contracts.messages import BlockPlan, BootKey, Kernel, Progress, RunJob

from ...measure.device_interface import DeviceFailure, ScriptOutput, VerifiedBoot
from ...measure.raw_output import RawOutput
from ...measure.script_calls import calls
from ..console_tap import ConsoleTap, Wakeup
from ..interface import Cancel, EventSink
from ..unattended.boot_files import ResultsUnreadable, boots_from
from ..unattended.replay import Replay
from ..verify_boot import infrastructure_failure, kernel_failure, verify_variant
from .job_archives import archive_from_pieces, boot_name, read_results
from .job_definition import Definition, TemplateError, cooling_s
from .job_diagnosis import diagnose_boot
from .job_log import JobTracker
from .lava_client import Lava, LavaError, LavaRefused, LavaUnreachable
from .receiver import Receiver

log = structlog.get_logger()

POLL_S = 2.0
"""Poll interval; callbacks and results end a wait earlier."""
LAVA_AWAY_LIMIT_S = 900.0
"""Longest time for which LAVA may not answer in the middle of a job."""
REPORT_GRACE_S = 10.0
"""Longest time for a kernel report to be printed to its end."""
SILENCE_S = 60.0
"""Silence on the console, beyond the time limit of the longest call, after which a boot counts as hung."""
ERROR_LENGTH = 200
"""Most characters of LAVA's error text in a failure's summary."""
CANCEL_S = 120.0
"""Longest time for a cancelled job to release the device."""

Define = Callable[[Sequence[BootKey], Sequence[str]], Definition]


def longest_silence_s(job: RunJob, block: int) -> float:
    """Return the seconds for which a boot that is not hung may print nothing.

    Cooling prints nothing either, and the first call follows without a line between.
    """
    return max(call.limit_s for call in calls(job, block)) + cooling_s(job) + SILENCE_S


class LavaDevice:
    """Implementation of `measure.device_interface.Device` on LAVA jobs. Call `close` at the end."""

    def __init__(
        self,
        job: RunJob,
        remaining: Sequence[BlockPlan],
        *,
        lava: Lava,
        receiver: Receiver,
        define: Define,
        facts: Mapping[str, str],
        emit: EventSink,
        cancel: Cancel,
        wakeup: Wakeup,
    ) -> None:
        self._job = job
        self._remaining = remaining
        self._lava = lava
        self._receiver = receiver
        self._define = define
        self._facts = facts
        self._emit = emit
        self._cancel = cancel
        self._wakeup = wakeup
        self._tap = ConsoleTap(None, emit, wakeup)
        self._tracker: JobTracker | None = None
        self._number = -1
        """Number, within the job, of the loop's current boot."""
        self._handed_over = False
        """True once the golden system of this boot has jumped and the console is the variant's."""
        self._replay: Replay | None = None
        self._clock = 0.0

    def clock(self) -> float:
        """Return the time that the device spent, in seconds; the loop replays it later."""
        return self._clock

    # --- Device interface ---------------------------------------------------------------------------------------

    def boot(self, key: BootKey, kernel: Kernel) -> VerifiedBoot:
        self._replay = None
        tracker, number = self._tracker_for(key)
        self._tap.begin_boot(key)
        self._handed_over = False
        while True:
            complete = tracker.is_complete(number) or self._is_boot_over(tracker, number)
            self._feed_console(tracker, number)
            if complete:
                break
            self._follow(tracker)
        return self._booted(tracker, number, key, kernel)

    def script(
        self, action: str, environment: Mapping[str, str], timeout_s: float, *, monitored: bool = False
    ) -> ScriptOutput:
        assert self._replay  # noqa: S101 - a script runs on a booted device
        _, result = self._replay.next_call(action, environment, timeout_s, monitored)
        self._clock += result.seconds
        return ScriptOutput(stdout=result.stdout, stderr=result.stderr, status=result.status, seconds=result.seconds)

    def restore(self) -> dict[str, str]:
        """Return what the device has restored itself, after the last call of the plan's script."""
        return self._replay.restored() if self._replay else {}

    def wait_for_console(self, text: str, timeout_s: float) -> bool:
        return self._tap.contains(text)

    def off(self) -> None:
        self._tap.end_boot()

    def close(self) -> None:
        """End the job if it still runs, and wait until LAVA has the device back."""
        if self._tracker is not None:
            self._end(self._tracker)
            self._receiver.close_job()
            self._keep_log(self._tracker)
            self._tracker = None

    # --- jobs ---------------------------------------------------------------------------------------------------

    def _tracker_for(self, key: BootKey) -> tuple[JobTracker, int]:
        """Return the job that makes this boot next, and the boot's number in it."""
        tracker, number = self._tracker, self._number + 1
        # A job whose previous boot failed never reaches this boot, whether LAVA has noticed yet or not.
        if tracker is None or tracker.reached < number or tracker.boots[number : number + 1] != [key]:
            self.close()
            tracker, number = self._submit(key), 0
            self._tracker = tracker
        self._number = number
        return tracker, number

    def _submit(self, key: BootKey) -> JobTracker:
        boots = boots_from(key, self._remaining)
        tokens = [secrets.token_hex(8) for _ in boots]
        if not self._kexec:
            tokens = tokens[:1] * len(boots)  # without kexec, the command line is the same in the whole job
        try:
            definition = self._define(boots, tokens)
            job_id = self._lava.submit(definition.text)
        except TemplateError as error:
            raise infrastructure_failure(str(error), advice="Correct the template in the data folder.") from error
        except LavaRefused as error:
            raise infrastructure_failure(
                str(error),
                advice="Correct the `lava:` section of the device type: LAVA must know its type, tags and context.",
            ) from error
        except LavaUnreachable as error:
            raise infrastructure_failure(str(error)) from error
        url = self._lava.job_url(job_id)
        log.info("LAVA job submitted", job=job_id, device=self._job.device.name, boots=len(boots))
        self._report_progress(f"LAVA job {job_id} waits for {self._job.device.name}: {url}")
        return JobTracker(self._lava, job_id, boots, definition)

    @property
    def _kexec(self) -> bool:
        """True if the device boots variants by kexec."""
        lava = self._job.device.lava
        return lava is None or lava.mapping.kexec

    def _follow(self, tracker: JobTracker) -> None:
        """Wait for POLL_S, then read the job from LAVA.

        Raises DeviceFailure if the run is canceled or LAVA does not answer for LAVA_AWAY_LIMIT_S.
        """
        self._wakeup.wait_for(self._cancel.is_set, POLL_S)
        if failure := self._cancel.failure:
            raise DeviceFailure(failure)
        try:
            lines = tracker.follow()
        except LavaError as error:
            away = time.monotonic() - tracker.last_answer
            log.warning("LAVA does not answer", job=tracker.job_id, error=str(error), away_s=round(away))
            if away > LAVA_AWAY_LIMIT_S or isinstance(error, LavaRefused):
                raise infrastructure_failure(f"job {tracker.job_id} cannot be read: {error}") from error
            return
        if not lines:
            log.debug("no new log lines", job=tracker.job_id)

    def _is_boot_over(self, tracker: JobTracker, number: int) -> bool:
        """Return True if the kernel reported a fatal error or the console is silent.

        LAVA itself would wait for the rest of the test's time.
        """
        if self._tap.fatal is not None:
            return not self._tap.reporting or time.monotonic() - tracker.last_console > REPORT_GRACE_S
        return self._is_silent(tracker, number)

    def _is_silent(self, tracker: JobTracker, number: int) -> bool:
        if tracker.reached != number or tracker.phase != "test":
            return False
        return time.monotonic() - tracker.last_console > longest_silence_s(self._job, tracker.boots[number].block)

    def _end(self, tracker: JobTracker) -> None:
        """Cancel the job unless it has ended, and wait for its end, at most CANCEL_S."""
        deadline = time.monotonic() + CANCEL_S
        cancel_sent = False
        while not tracker.ended and time.monotonic() < deadline:
            try:
                if not cancel_sent:
                    tracker.follow()
                    if not tracker.measured and not (tracker.job and tracker.job.finished):
                        self._lava.cancel(tracker.job_id)
                    cancel_sent = True
                else:
                    self._wakeup.wait_for(lambda: False, POLL_S)
                    tracker.follow()
            except LavaError as error:
                log.warning("LAVA job not ended", job=tracker.job_id, error=str(error))
                self._wakeup.wait_for(lambda: False, POLL_S)

    def _keep_log(self, tracker: JobTracker) -> None:
        try:
            lines = self._lava.log(tracker.job_id)
        except LavaError as error:
            log.warning("LAVA's log not kept", job=tracker.job_id, error=str(error))
            return
        kept = RawOutput()  # limits the size, as for the output of the plan's script
        for line in lines:
            kept.add(f"{line.dt.isoformat()} {line.lvl:8} {line.text}\n")
        self._emit.artifact(ArtifactKind.RAW_OUTPUT, f"lava-job-{tracker.job_id}.txt", kept.text())

    def _feed_console(self, tracker: JobTracker, number: int) -> None:
        """Feed the console lines of the job's log to the tap."""
        boot = tracker.logs[number]
        golden, boot.golden = boot.golden, []
        for data in golden:
            self._tap.feed(data)
        if (boot.jumped or boot.variant) and not self._handed_over:
            self._tap.begin_variant()
            self._handed_over = True
        variant, boot.variant = boot.variant, []
        for data in variant:
            self._tap.feed(data)

    # --- results of a boot ----------------------------------------------------------------------------------

    def _booted(self, tracker: JobTracker, number: int, key: BootKey, kernel: Kernel) -> VerifiedBoot:
        """Verify the boot from its results, as for any other backend. Raises DeviceFailure."""
        self._tap.flush()
        if report := self._tap.fatal:
            if self._handed_over:
                raise kernel_failure(report)
            raise infrastructure_failure(
                f"the golden system failed: {report.kind.value}: {report.title}",
                excerpt=report.excerpt,
                suspect=True,
                stage=DeviceStep.GOLDEN,
            )
        try:
            data = self._archive(tracker, key)
            if data is None:
                raise self._diagnose(tracker, number)
            results = read_results(data)
        except ResultsUnreadable as error:
            raise infrastructure_failure(
                f"the results of LAVA job {tracker.job_id} are unreadable: {error}", of_variant=True
            ) from error
        boot = tracker.logs[number]
        seen = verify_variant(
            results.probe,
            results.probe_stderr,
            token=tracker.tokens[number],
            golden_boot_id="",
            kernel=kernel,
            device=self._job.device,
        )
        replay = Replay(self._job, key.block, results, self._tap, f"LAVA job {tracker.job_id}")
        read_back = replay.conditions()
        golden_s = boot.seconds("golden", "kexec") if self._kexec else 0.0
        kexec_s = boot.seconds("kexec", "test")
        self._replay = replay
        # Time of this boot beyond its workload.
        self._clock += max(
            0.0,
            boot.seconds("golden" if self._kexec else "kexec")
            - sum(result.seconds for result in results.calls.values()),
        )
        return VerifiedBoot(
            kernel_boot_id=seen.boot_id,
            token=tracker.tokens[number],
            build_id_gnu=seen.build_id_gnu,
            release=seen.release,
            cmdline=seen.cmdline,
            topology=seen.topology,
            environment={
                **seen.environment,
                **read_back,
                **self._facts,
                "LAVA job": self._lava.job_url(tracker.job_id),
            },
            golden_s=golden_s,
            kexec_s=kexec_s,
            console_bytes=self._tap.offset,
        )

    def _diagnose(self, tracker: JobTracker, number: int) -> DeviceFailure:
        """Return the failure of a boot without results."""
        return diagnose_boot(
            tracker,
            number,
            self._job.device,
            self._tap,
            lava_error=self._lava_error(tracker),
            silent=self._is_silent(tracker, number),
            results_at=self._receiver.url("HOST"),
        )

    def _lava_error(self, tracker: JobTracker) -> str:
        """Return LAVA's own error of the job."""
        try:
            for case in self._lava.tests(tracker.job_id):
                if case.name == "job" and case.result == "fail":
                    details = case.details
                    # For a panic, LAVA repeats the console output; the first line is enough.
                    first = str(details.get("error_msg", "")).strip().partition("\n")[0].rstrip("\r")
                    return f"{details.get('error_type', 'error')}: {first[:ERROR_LENGTH]}"
        except LavaError as error:
            log.warning("LAVA's results not read", job=tracker.job_id, error=str(error))
        return tracker.errors[-1] if tracker.errors else "LAVA gives no reason"

    def _archive(self, tracker: JobTracker, key: BootKey) -> bytes | None:
        """Return the results archive, as sent or from LAVA's test cases, or None. Raises ResultsUnreadable."""
        name = boot_name(key)
        if (data := self._receiver.result(name)) is not None:
            return data
        try:
            cases = [case.name for case in self._lava.tests(tracker.job_id) if case.name.startswith(f"{name}.")]
        except LavaError as error:
            log.warning("LAVA's results not read", job=tracker.job_id, error=str(error))
            return None
        return archive_from_pieces(name, cases)

    def _report_progress(self, text: str) -> None:
        self._emit.event(Progress(at=datetime.now(UTC), text=text))
