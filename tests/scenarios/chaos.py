"""Disturb a running lab at random moments: kill programs, lose the broker's data, stop services, break devices.

The moments are counted in events of a submission, and everything is drawn from a seed. Nothing is started again by the
test, except what it had stopped: that is the work of the lab's own supervisor.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import httpx
import redis

from wqlab_client.client import Client
from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import TraceMode, Verdict
from wqlab_lab.supervision import Supervisor

from .conftest import Lab
from .processes import descendants

PROGRAMS = (
    "api", "server", "outbox", "beat", "build", "apply", "lookups", "lists", "devices", "bench", "coordinator",
    "exporter", "postgres", "redis",
)  # fmt: skip
CHILDREN = {"postgres backend": "postgres", "device session or worker": "devices", "emulator": "bench"}
"""Name in the table -> program, one of whose descendants is killed."""
STOPS = ("api", "postgres", "redis")
AWAY_S = 60.0
"""Seconds for which the API is away, in addition to its short stops."""
DEVICE_FAULTS = ("dead", "mute", "garbled_console", "slow_power")
"""Faults of a device that no kernel can cause. Each lasts for one boot."""
FLAKY = {"kind": "dead", "every": 3}
"""A device that is dead one boot in three, until the next disturbance."""
LONGEST_WAIT = 6
"""Most events between two disturbances."""


@dataclass(frozen=True)
class Ending:
    """What a submission ended with; equal for a disturbed submission and its undisturbed twin."""

    outcome: str
    exit_code: int | None
    verdicts: tuple[Verdict, ...]

    @classmethod
    def of(cls, report: Report) -> Ending:
        submission = report.submission
        return cls(str(submission.outcome), submission.exit_code, tuple(target.verdict for target in report.targets))


EQUAL, WORSE = Ending("passed", 0, (Verdict.EQUIVALENT,)), Ending("passed", 1, (Verdict.REGRESSION,))
"""Endings of undisturbed submissions of noop.mbox and inverted.mbox to one target."""


@dataclass
class Chaos:
    """Disturbances of one lab."""

    lab: Lab
    seed: int
    devices: Sequence[str]
    """Emulated devices whose faults are injected."""
    stop_s: float = 5.0
    """Seconds for which a service is stopped."""
    lasting: bool = True
    """Draw also disturbances that last for minutes: the API is away for a minute, a device is flaky."""
    counts: Counter[str] = field(default_factory=Counter)
    """Number of disturbances by name."""
    released: int = 0
    """Devices that were released from quarantine."""

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)
        run = Path(self.lab.environment["WQLAB_STATE"]) / "run"
        self._supervisor = Supervisor(run / "supervisor.sock")
        self._redis = run / "redis.sock"
        self._last = datetime.now(UTC)
        self._flaky: set[str] = set()
        self._disturbances: list[tuple[str, Callable[[], bool]]] = [
            *((f"kill {name}", lambda name=name: self._kill_program(name)) for name in PROGRAMS),
            *((f"kill {child}", lambda name=name: self._kill_descendant(name)) for child, name in CHILDREN.items()),
            *((f"stop {name}", lambda name=name: self._stop(name, self.stop_s)) for name in STOPS),
            ("flush redis", self._flush_redis),
            *((f"device {kind}", lambda kind=kind: self._break_device(kind)) for kind in DEVICE_FAULTS),
        ]
        if self.lasting:
            self._disturbances += [
                ("stop api for a minute", lambda: self._stop("api", AWAY_S)),
                ("device flaky", self._make_device_flaky),
            ]

    def disturb(self, submissions: Iterable[int], count: int) -> None:
        """Disturb the lab `count` times while the submissions run, then wait until all are finished."""
        client = self.lab.client()
        for submission in submissions:
            wait = self._rng.randint(1, LONGEST_WAIT)
            for event in client.events(submission, give_up_s=900):
                if self.counts.total() >= count:
                    self._mend_flaky_devices()
                    continue
                if event.at <= self._last:
                    continue  # it was sent before the last disturbance, and arrived late
                wait -= 1
                if wait <= 0 and self.disturb_once():
                    wait = self._rng.randint(1, LONGEST_WAIT)

    def disturb_once(self) -> bool:
        """Disturb the lab once; return False if the chosen victim does not run now."""
        self._mend_flaky_devices()
        self._release_devices()
        name, act = self._rng.choice(self._disturbances)
        done = act()
        self._last = datetime.now(UTC)
        self.counts[name] += done
        return done

    def _release_devices(self) -> None:
        """Release quarantined devices, as a maintainer would: their faults last for one boot only."""
        headers = {"Authorization": f"Bearer {self.lab.environment['WQLAB_TOKEN']}"}
        with suppress(httpx.HTTPError), httpx.Client(base_url=f"{self.lab.url}/api/v1", headers=headers) as api:
            for device in api.get("/devices").raise_for_status().json():
                if device["name"] in self.devices and device["health"] == "quarantined":
                    api.post(f"/devices/{device['name']}/release").raise_for_status()
                    self.released += 1

    def _kill_program(self, name: str) -> bool:
        return self._kill([pid] if (pid := self._pid(name)) else [])

    def _kill_descendant(self, program: str) -> bool:
        pid = self._pid(program)
        found = descendants(pid) if pid else []
        return self._kill([self._rng.choice(found)] if found else [])

    def _kill(self, processes: Sequence[int]) -> bool:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        return bool(processes)

    def _pid(self, program: str) -> int:
        """Return the process id of a program; 0 if it does not run."""
        return self._supervisor.pids().get(program, 0)

    def _stop(self, program: str, seconds: float) -> bool:
        self._supervisor.stop(program)
        time.sleep(seconds)  # the length of the outage
        self._supervisor.start(program)
        return True

    def _flush_redis(self) -> bool:
        try:
            with redis.Redis(unix_socket_path=str(self._redis)) as server:
                server.flushall()
        except redis.RedisError:
            return False
        return True

    def _break_device(self, kind: str) -> bool:
        seconds = {"seconds": 8.0} if kind == "slow_power" else {}
        try:
            self.lab.fault(self._rng.choice(self.devices), {"kind": kind, "once": True, **seconds})
        except (OSError, httpx.HTTPError):  # the bench does not run now
            return False
        return True

    def _make_device_flaky(self) -> bool:
        device = self._rng.choice(self.devices)
        try:
            self.lab.fault(device, FLAKY)
        except (OSError, httpx.HTTPError):
            return False
        self._flaky.add(device)
        return True

    def _mend_flaky_devices(self) -> None:
        for device in sorted(self._flaky):
            with suppress(OSError, httpx.HTTPError):
                self.lab.fault(device)
                self._flaky.discard(device)


def missing_or_repeated(client: Client, report: Report) -> dict[str, int]:
    """Return how many events, boots and samples of a submission are missing or recorded twice, by name; empty if none.

    Each valid boot has every supported metric of its plan once for each repetition of the metric's kind.
    """
    found: Counter[str] = Counter()
    numbers = [event.seq for event in client.events(report.submission.id)]
    found["events"] += len(set(range(1, len(numbers) + 1)) ^ set(numbers)) + len(numbers) - len(set(numbers))
    for target in report.targets:
        run = client.run(target.run_id)
        valid = [boot for boot in run.boots if boot.valid]
        found["boots"] += abs(len(valid) - sum(len(arms) for arms in planned(report, target.run_id)))
        found["kernel boot ids"] += len(valid) - len({boot.kernel_boot_id for boot in valid})
        rows = Counter(
            (row.boot_id, row.scenario, row.setting, row.repetition, row.metric) for row in client.samples(run.id)
        )
        found["samples twice"] += sum(number - 1 for number in rows.values())
        counts = target.plan.profile(target.emulated).repetitions
        repetitions = {TraceMode.UNTRACED: counts.warmup + counts.untraced, TraceMode.TRACED: counts.traced}
        lacking = {(entry.scenario, entry.setting, entry.metric) for entry in target.unsupported}
        cells = {(scenario, setting) for _, scenario, setting, _, _ in rows}
        expected = sum(
            repetitions[metric.taken_from]
            for _ in valid
            for scenario, setting in cells
            for metric in target.plan.metrics
            if (scenario, setting, metric.name) not in lacking and (scenario, setting, None) not in lacking
        )
        found["samples missing"] += expected - len(rows)
    return {name: number for name, number in found.items() if number}


def wait_for_free_devices(lab: Lab) -> None:
    """Wait until no device is leased; a health check after the last disturbance may still run."""
    while any(device.lease is not None for device in lab.client().devices()):
        time.sleep(0.5)  # the end of a health check has no event for clients


def planned(report: Report, run_id: int) -> list[list[object]]:
    """Return the arms of each planned block of a run that passed."""
    target = next(target for target in report.targets if target.run_id == run_id)
    arms = 1 if report.submission.request.series is None else 2
    return [[None] * arms for _ in range(target.blocks_planned)]
