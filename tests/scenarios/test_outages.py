"""Programs of the running lab are killed during a measurement, and nothing is lost or duplicated.

One submission sees three outages, each struck right after samples of a boot have arrived: the lab worker with all its
processes (only the devices live on), Redis, and the API. Nothing is started again by the test: that is the lab's own
supervisor's work, as in production.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wqlab_client.client import Client
from wqlab_contracts.api.report import Comparison, Report
from wqlab_contracts.api.runs import BootView, RunView, SampleRow
from wqlab_contracts.enums import BootState, ErrorKind, EventKind, JobState, Outcome, TraceMode
from wqlab_contracts.messages import Event

from .conftest import Lab
from .processes import descendants

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]

PLAN, SCENARIO, DEVICE = "dm-crypt-affinity", "HIGH", "lone"
SETTINGS = ("scope=system,strict=0", "scope=cache,strict=1")
BLOCKS = 2


class Watcher:
    """Collects the submission's event stream, which is resumed after each outage."""

    def __init__(self, client: Client, submission: int) -> None:
        self.seen: list[Event] = []
        self._stream: Iterator[Event] = client.events(submission)

    def until(self, matches: Callable[[Event], bool]) -> Event:
        for event in self._stream:
            self.seen.append(event)
            if matches(event):
                return event
        raise AssertionError(f"the submission ended without it; its last events: {self.seen[-5:]}")

    def samples_of_another_boot(self, than: set[int]) -> int:
        event = self.until(lambda event: event.kind is EventKind.SAMPLES and event.boot_id not in than)
        assert event.boot_id is not None
        return event.boot_id

    def rest(self) -> None:
        self.seen.extend(self._stream)


class OutageRun:
    """Outages caused and data observed while the submission ran."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.client = lab.client()
        self.killed: dict[str, int] = {}
        """Program -> process id that was killed."""
        self.boots: dict[str, int] = {}
        """Program -> boot that was being measured at the time."""
        settings = [word for setting in SETTINGS for word in ("--setting", setting)]
        self.submission = lab.submit(
            *("--settings-only", "--target", f"{PLAN}@{DEVICE}", "--scenario", SCENARIO, *settings),
            *("--blocks", str(BLOCKS)),
        )
        self.events = Watcher(self.client, self.submission)
        for program in ("devices", "redis", "api"):
            self._strike(program)
        self.after_redis = self.process_of("devices")
        """Kill the lab worker in the first boot after the one in which Redis was killed."""
        self.events.rest()
        self.report: Report = self.client.report(self.submission)
        self.run: RunView = self.client.run(self.report.targets[0].run_id)
        self.samples: list[SampleRow] = self.client.samples(self.run.id)

    def _strike(self, program: str) -> None:
        """Send SIGKILL to a program and its descendants during a boot that no outage has affected yet."""
        process = self.process_of(program)
        self.boots[program] = self.events.samples_of_another_boot(than=set(self.boots.values()))
        for each in (process, *descendants(process)):
            os.kill(each, signal.SIGKILL)
        self.killed[program] = process

    def process_of(self, program: str) -> int:
        """Return the process id that supervisord reports."""
        config = Path(self._lab.environment["WQLAB_STATE"]) / "run/supervisord.conf"
        result = subprocess.run(
            ["supervisorctl", "-c", config, "pid", program], check=True, text=True, stdout=subprocess.PIPE
        )
        return int(result.stdout)

    @property
    def whole(self) -> list[BootView]:
        return [boot for boot in self.run.boots if boot.valid]

    @property
    def lost(self) -> list[BootView]:
        return [boot for boot in self.run.boots if not boot.valid]


@pytest.fixture(scope="module")
def outage_run(lab: Lab) -> OutageRun:
    return OutageRun(lab)


def test_submission_passes_despite_outages(outage_run: OutageRun) -> None:
    view = outage_run.report.submission
    assert (view.outcome, view.exit_code, view.failure) == (Outcome.PASSED, 0, None)
    assert (outage_run.run.state, outage_run.run.outcome) == (JobState.FINISHED, Outcome.PASSED)
    assert outage_run.run.blocks_completed == BLOCKS


def test_every_block_is_complete_and_recorded_once(outage_run: OutageRun) -> None:
    assert sorted(boot.block for boot in outage_run.whole) == list(range(BLOCKS))
    assert len({boot.kernel_boot_id for boot in outage_run.run.boots}) == len(outage_run.run.boots)
    finished = [event.data["block"] for event in outage_run.events.seen if event.kind is EventKind.BLOCK_FINISHED]
    assert sorted(finished) == list(range(BLOCKS))
    assert all(boot.state is BootState.FINISHED for boot in outage_run.run.boots)


def test_no_sample_is_missing_or_duplicated(outage_run: OutageRun) -> None:
    """Each boot has every metric of the plan once for each repetition of the metric's kind."""
    target = outage_run.report.targets[0]
    assert target.unsupported == []
    plan, counts = target.plan, target.plan.emulated.repetitions
    assert counts.warmup == 0
    numbers = {
        TraceMode.UNTRACED: range(counts.untraced),
        TraceMode.TRACED: range(counts.untraced, counts.untraced + counts.traced),
    }
    expected = {
        (boot.id, SCENARIO, setting, repetition, metric.name)
        for boot in outage_run.whole
        for setting in SETTINGS
        for metric in plan.metrics
        for repetition in numbers[metric.taken_from]
    }
    found = Counter((row.boot_id, row.scenario, row.setting, row.repetition, row.metric) for row in outage_run.samples)
    assert set(found.values()) == {1}
    assert set(found) == expected


def test_killed_worker_discards_one_boot_with_its_reason(outage_run: OutageRun) -> None:
    """Boots that were measured while Redis or the API was down are valid."""
    lost = [(boot.id, boot.failure and boot.failure.summary) for boot in outage_run.lost]
    assert [boot for boot, _ in lost] == [outage_run.boots["devices"]], lost
    assert {outage_run.boots["redis"], outage_run.boots["api"]} == {boot.id for boot in outage_run.whole}
    failure = outage_run.lost[0].failure
    assert failure and failure.kind is ErrorKind.INFRASTRUCTURE
    assert "stopped answering" in failure.summary and "lone-1" in failure.summary
    assert outage_run.run.attempt == 2
    discarded = [attempt for attempt in outage_run.report.attempts if attempt.run_id == outage_run.run.id]
    assert {attempt.failure.summary for attempt in discarded} == {failure.summary}
    assert outage_run.lost[0].block in {attempt.block for attempt in discarded}


def test_n_is_the_number_of_boots(outage_run: OutageRun) -> None:
    compared: list[Comparison] = outage_run.report.targets[0].comparisons
    assert compared
    for each in compared:
        assert each.baseline and each.candidate
        assert each.baseline.n == each.candidate.n == BLOCKS


def test_consoles_are_stored_byte_for_byte(outage_run: OutageRun, lab: Lab) -> None:
    """The bench has an independent log of every power-on, which no outage affected."""
    folder = Path(lab.environment["WQLAB_STATE"]) / "bench/consoles"
    logs = [path.read_bytes() for path in folder.glob("lone-1.log*")]
    for boot in outage_run.run.boots:
        console = b"".join(outage_run.client.console(outage_run.run.id, boot.id))
        assert len(console) == boot.console_bytes and not boot.console_truncated
        assert boot.token and f"token={boot.token}".encode() in console
        assert sum(console in log for log in logs) == 1, f"boot {boot.id} has a console that the device never wrote"


def test_event_stream_resumes_after_the_last_event(outage_run: OutageRun) -> None:
    numbers = [event.seq for event in outage_run.events.seen]
    assert numbers == list(range(1, len(numbers) + 1))


def test_supervisor_restarts_every_program(outage_run: OutageRun, lab: Lab) -> None:
    for program, killed in outage_run.killed.items():
        assert outage_run.process_of(program) not in {0, killed}
    status = subprocess.run(["wqlab-lab", "status"], env=lab.environment, check=True, text=True, stdout=subprocess.PIPE)
    states = dict(line.split() for line in status.stdout.splitlines()[1:])
    assert set(states.values()) == {"RUNNING"}
    assert outage_run.process_of("devices") == outage_run.after_redis, "Redis took the lab worker along"
    (device,) = [entry for entry in outage_run.client.devices() if entry.name == "lone-1"]
    assert (device.health.value, device.lease) == ("good", None)
