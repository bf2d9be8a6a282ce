"""A device of a LAVA lab as the measuring loop sees it. LAVA drives the device alone: a job carries all boots that are
still to be made, each measured on the device, and the loop is played what came back.

The loop stays the judge. Where it wants another boot than the job makes next (a block again, a control boot), the job
is cancelled and a new one begins with that boot, on the same device.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import structlog

from wqlab_contracts.enums import ArtifactKind, DeviceStep, FindingKind
from wqlab_contracts.messages import BlockPlan, BootKey, Kernel, Progress, RunJob

from ...measure.device import Booted, DeviceFailure, ScriptOutput
from ...measure.script_calls import calls
from .. import conditions
from ..base import Cancel, Emit
from ..console import ConsoleTap, Watch
from ..verify import infrastructure, kernel_failure, met, verified
from .client import Lava, LavaError, LavaRefused, LavaUnreachable
from .definition import Definition, TemplateError
from .diagnosis import blame
from .job_log import Flight
from .package import Called, Results, ResultsUnreadable, boot_name, read_results, unpacked
from .receiver import Receiver

log = structlog.get_logger()

POLL_S = 2.0
"""Callbacks and results wake it earlier."""
PATIENCE_S = 900.0
"""How long LAVA may be away in the middle of a job."""
REPORT_GRACE_S = 10.0
"""How long a kernel's last report may take to be printed to its end."""
SILENCE_S = 60.0
"""Beyond the limit of the longest call."""
ERROR_LENGTH = 200
"""Characters of what LAVA says was wrong, in a sentence of ours."""
CANCEL_S = 120.0
"""How long a cancelled job may take to give the device back."""

Define = Callable[[Sequence[BootKey], Sequence[str]], Definition]


class LavaDevice:
    """Implements `devices.Device`. `close` must follow."""

    def __init__(
        self,
        job: RunJob,
        remaining: Sequence[BlockPlan],
        *,
        lava: Lava,
        receiver: Receiver,
        define: Define,
        facts: Mapping[str, str],
        emit: Emit,
        cancel: Cancel,
        watch: Watch,
    ) -> None:
        self._job = job
        self._remaining = remaining
        self._lava = lava
        self._receiver = receiver
        self._define = define
        self._facts = facts
        self._emit = emit
        self._cancel = cancel
        self._watch = watch
        self._tap = ConsoleTap(None, emit, watch)
        self._flight: Flight | None = None
        self._number = -1
        """Of the boot, within the flight, that the loop is at."""
        self._handed_over = False
        """The golden system of this boot has gone, and the console is the variant's."""
        self._results: Results | None = None
        self._next_call = 0
        self._clock = 0.0

    def clock(self) -> float:
        """Seconds as the device spent them: the loop runs long after."""
        return self._clock

    # --- the loop's device ---------------------------------------------------------------------------------------

    def boot(self, key: BootKey, kernel: Kernel) -> Booted:
        self._results, self._next_call = None, 0
        flight, number = self._flight_for(key)
        self._tap.begin(key)
        self._handed_over = False
        while True:
            whole = flight.whole(number) or self._is_dead(flight, number)
            self._pass_on(flight, number)
            if whole:
                break
            self._follow(flight)
        return self._booted(flight, number, key, kernel)

    def script(
        self, action: str, environment: Mapping[str, str], timeout_s: float, *, monitored: bool = False
    ) -> ScriptOutput:
        called = self._next(action, environment, monitored)
        self._clock += called.seconds
        if called.blocked and called.seconds >= timeout_s - 1:
            raise self._overrun(action, timeout_s, called)
        return ScriptOutput(stdout=called.stdout, stderr=called.stderr, status=called.status, seconds=called.seconds)

    def restore(self) -> dict[str, str]:
        """LAVA gives the device to its next user by a power cycle: nothing that was set outlasts that."""
        return {}

    def heard(self, word: str, timeout_s: float) -> bool:
        return self._tap.heard(word)

    def off(self) -> None:
        self._tap.end()

    def close(self) -> None:
        """Ends a job that is still on its way, and waits until LAVA has the device back."""
        if self._flight is not None:
            self._end(self._flight)
            self._keep_log(self._flight)
            self._flight = None

    # --- jobs ---------------------------------------------------------------------------------------------------

    def _flight_for(self, key: BootKey) -> tuple[Flight, int]:
        """The job that makes this boot next."""
        flight, number = self._flight, self._number + 1
        # A job whose boot before this one died does not come to it, whether LAVA has noticed yet or not.
        if flight is None or flight.reached < number or flight.boots[number : number + 1] != [key]:
            self.close()
            flight, number = self._submit(key), 0
            self._flight = flight
        self._number = number
        return flight, number

    def _submit(self, key: BootKey) -> Flight:
        boots = [key, *self._after(key)]
        tokens = [secrets.token_hex(8) for _ in boots]
        if not self._kexec:
            tokens = tokens[:1] * len(boots)  # such a device's command line is the same in the whole job
        try:
            definition = self._define(boots, tokens)
            job_id = self._lava.submit(definition.text)
        except TemplateError as error:
            raise infrastructure(str(error), advice="Correct the template in the data folder.") from error
        except LavaRefused as error:
            raise infrastructure(
                str(error),
                advice="The device type's `lava:` section has to say what this LAVA takes: its type, tags and context.",
            ) from error
        except LavaUnreachable as error:
            raise infrastructure(str(error)) from error
        url = self._lava.job_url(job_id)
        log.info("LAVA job submitted", job=job_id, device=self._job.device.name, boots=len(boots))
        self._say(f"LAVA job {job_id} waits for {self._job.device.name}: {url}")
        return Flight(self._lava, job_id, boots, definition)

    @property
    def _kexec(self) -> bool:
        lava = self._job.device.lava
        return lava is None or lava.mapping.kexec

    def _after(self, key: BootKey) -> list[BootKey]:
        """Boots that the loop wants next when all goes well."""
        plans = list(self._remaining)
        at = next((number for number, plan in enumerate(plans) if plan.block == key.block), None)
        if at is None or key.position >= len(plans[at].arms) or plans[at].arms[key.position] is not key.arm:
            return []  # a control boot: what follows depends on it
        rest = [
            BootKey(block=key.block, position=position, arm=arm, attempt=key.attempt)
            for position, arm in enumerate(plans[at].arms)
            if position > key.position
        ]
        later = [
            BootKey(block=plan.block, position=position, arm=arm, attempt=plan.first_attempt)
            for plan in plans[at + 1 :]
            for position, arm in enumerate(plan.arms)
        ]
        return rest + later

    def _follow(self, flight: Flight) -> None:
        """Waits a little, and asks LAVA. Raises DeviceFailure when the run is interrupted or LAVA stays away."""
        self._watch.wait_for(self._cancel.is_set, POLL_S)
        if failure := self._cancel.failure:
            raise DeviceFailure(failure)
        try:
            lines = flight.follow()
        except LavaError as error:
            away = time.monotonic() - flight.last_answer
            log.warning("LAVA not followed", job=flight.job_id, error=str(error), away_s=round(away))
            if away > PATIENCE_S or isinstance(error, LavaRefused):
                raise infrastructure(f"job {flight.job_id} cannot be followed: {error}") from error
            return
        if not lines:
            log.debug("nothing new", job=flight.job_id)

    def _is_dead(self, flight: Flight, number: int) -> bool:
        """LAVA would wait for the rest of the test's time: for a kernel that has told its end, or says nothing where
        each call of the script ends with a word."""
        if self._tap.fatal is not None:
            return not self._tap.reporting or time.monotonic() - flight.last_console > REPORT_GRACE_S
        return self._is_silent(flight, number)

    def _is_silent(self, flight: Flight, number: int) -> bool:
        if flight.reached != number or flight.phase != "test":
            return False
        longest = max(call.limit_s for call in calls(self._job, flight.boots[number].block))
        return time.monotonic() - flight.last_console > longest + SILENCE_S

    def _end(self, flight: Flight) -> None:
        """Cancels the job unless it has ended; returns when it has, or after CANCEL_S."""
        deadline = time.monotonic() + CANCEL_S
        asked = False
        while not flight.over and time.monotonic() < deadline:
            try:
                if not asked:
                    flight.follow()
                    if not flight.measured and not (flight.job and flight.job.finished):
                        self._lava.cancel(flight.job_id)
                    asked = True
                else:
                    self._watch.wait_for(lambda: False, POLL_S)
                    flight.follow()
            except LavaError as error:
                log.warning("LAVA job not ended", job=flight.job_id, error=str(error))
                self._watch.wait_for(lambda: False, POLL_S)

    def _keep_log(self, flight: Flight) -> None:
        try:
            lines = self._lava.log(flight.job_id)
        except LavaError as error:
            log.warning("LAVA's log not kept", job=flight.job_id, error=str(error))
            return
        text = "".join(f"{line.dt.isoformat()} {line.lvl:8} {line.text}\n" for line in lines)
        self._emit.artifact(ArtifactKind.RAW_OUTPUT, f"lava-job-{flight.job_id}.txt", text.encode())

    def _pass_on(self, flight: Flight, number: int) -> None:
        """The log's console lines to the tap."""
        boot = flight.logs[number]
        golden, boot.golden = boot.golden, []
        for data in golden:
            self._tap.take(data)
        if (boot.jumped or boot.variant) and not self._handed_over:
            self._tap.expect_variant()
            self._handed_over = True
        variant, boot.variant = boot.variant, []
        for data in variant:
            self._tap.take(data)

    # --- what became of a boot ----------------------------------------------------------------------------------

    def _booted(self, flight: Flight, number: int, key: BootKey, kernel: Kernel) -> Booted:
        """Verified as any other boot. Raises DeviceFailure."""
        self._tap.settle()
        if report := self._tap.fatal:
            if self._handed_over:
                raise kernel_failure(report)
            raise infrastructure(
                f"the golden system failed: {report.kind.value}: {report.title}",
                excerpt=report.excerpt,
                suspect=True,
                stage=DeviceStep.GOLDEN,
            )
        try:
            data = self._archive(flight, key)
            if data is None:
                raise self._blame(flight, number)
            results = read_results(data)
        except ResultsUnreadable as error:
            raise infrastructure(
                f"the results of LAVA job {flight.job_id} are unreadable: {error}", of_variant=True
            ) from error
        boot = flight.logs[number]
        seen = verified(
            results.probe,
            results.probe_complaint,
            token=flight.tokens[number],
            golden_boot_id="",
            kernel=kernel,
            device=self._job.device,
        )
        found = self._conditions(results)
        golden_s = boot.seconds("golden", "kexec") if self._kexec else 0.0
        kexec_s = boot.seconds("kexec", "test")
        self._results = results
        # What the job took for this boot beyond its workload.
        self._clock += max(
            0.0,
            boot.seconds("golden" if self._kexec else "kexec")
            - sum(called.seconds for called in results.called.values()),
        )
        return Booted(
            kernel_boot_id=seen.boot_id,
            token=flight.tokens[number],
            build_id_gnu=seen.build_id_gnu,
            release=seen.release,
            cmdline=seen.cmdline,
            topology=seen.topology,
            environment={
                **seen.environment,
                **found,
                **self._facts,
                "LAVA job": self._lava.job_url(flight.job_id),
            },
            golden_s=golden_s,
            kexec_s=kexec_s,
            console_bytes=self._tap.offset,
        )

    def _blame(self, flight: Flight, number: int) -> DeviceFailure:
        """Of a boot that brought no results."""
        return blame(
            flight,
            number,
            self._job.device,
            self._tap,
            said=self._error_of(flight),
            silent=self._is_silent(flight, number),
            results_at=self._receiver.url("HOST").rpartition("/")[0],
        )

    def _error_of(self, flight: Flight) -> str:
        """What LAVA says was wrong with its job."""
        try:
            for case in self._lava.tests(flight.job_id):
                if case.name == "job" and case.result == "fail":
                    details = case.details
                    # For a panic LAVA gives all that the console showed of it, which the console has too.
                    first = str(details.get("error_msg", "")).strip().partition("\n")[0].rstrip("\r")
                    return f"{details.get('error_type', 'error')}: {first[:ERROR_LENGTH]}"
        except LavaError as error:
            log.warning("LAVA's results not read", job=flight.job_id, error=str(error))
        return flight.errors[-1] if flight.errors else "LAVA gives no reason"

    def _archive(self, flight: Flight, key: BootKey) -> bytes | None:
        """What the device sent, else what it left in LAVA's results. Raises ResultsUnreadable."""
        name = boot_name(key)
        if (data := self._receiver.result(name)) is not None:
            return data
        try:
            cases = [case.name for case in self._lava.tests(flight.job_id) if case.name.startswith(f"{name}.")]
        except LavaError as error:
            log.warning("LAVA's results not read", job=flight.job_id, error=str(error))
            return None
        return _from_pieces(name, cases)

    def _conditions(self, results: Results) -> dict[str, str]:
        wanted = self._job.device.conditions
        if not conditions.apply_command(wanted):
            return {}
        return met(self._job.device, conditions.standing(wanted, conditions.read_changes(results.conditions)))

    # --- what the script said -----------------------------------------------------------------------------------

    def _next(self, action: str, environment: Mapping[str, str], monitored: bool) -> Called:
        """The next call of this kind. Those between were for cells that the loop left out, as the device did."""
        assert self._flight and self._results  # noqa: S101 - a script runs on a booted device
        key = self._flight.boots[self._number]
        wanted: tuple[Any, ...] = (action, dict(environment), monitored)
        for number, call in enumerate(calls(self._job, key.block)):
            if number >= self._next_call and (call.action, call.environment, call.monitored) == wanted:
                self._next_call = number + 1
                if number in self._results.called:
                    return self._results.called[number]
                break
        raise infrastructure(
            f"the results of LAVA job {self._flight.job_id} lack `{action}`: the device stopped before", of_variant=True
        )

    def _overrun(self, action: str, timeout_s: float, called: Called) -> DeviceFailure:
        if "state:D" in called.blocked:
            title = f"tasks are blocked: `{action}` did not end in {timeout_s:.0f} s"
            return kernel_failure(self._tap.found(FindingKind.HUNG_TASK, title, called.blocked[-8000:]))
        return infrastructure(
            f"`{action}` did not end in {timeout_s:.0f} s, though the device answers", of_variant=True
        )

    def _say(self, text: str) -> None:
        self._emit.event(Progress(at=datetime.now(UTC), text=text))


_PIECE = re.compile(r"\.piece\.(\d+)\.([A-Za-z0-9_-]+)$")


def _from_pieces(name: str, cases: Sequence[str]) -> bytes | None:
    """The archive from test cases' names; None when the device left none. Raises ResultsUnreadable for one that is not
    whole."""
    pieces = {int(match[1]): match[2] for case in cases if (match := _PIECE.search(case))}
    if not pieces:
        return None
    text = "".join(pieces[number] for number in sorted(pieces))
    digest = next((case.rpartition(".")[2] for case in cases if case.startswith(f"{name}.uploaded.")), "")
    return unpacked(text, digest)
