"""Rank what differs between the traced boots of two sides, and put it into words.

A value is what one boot counted, per operation of its workload, or the mean time of its events. The ranking's rule:

1. A line needs MIN_EVENTS events a boot on one side; a time needs them on both.
2. The boots must agree: every boot of one side is on the same side of every boot of the other.
3. Larger relative change first: |ln((right + e) / (left + e))|, where e is worth RARE_EVENTS events a boot, or RARE_US
   for a time, so that rare events do not rank first. A change below SMALLEST is left out.

Nothing is tested, and no cause is claimed. On emulated devices times are no evidence, so only counts are ranked. Pure.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wqlab_contracts.api.explanations import TracedDifference
from wqlab_contracts.traced_counts import TIMED, Row, TracedTopic

from .words import number, places

MIN_EVENTS = 100
RARE_EVENTS = 20.0
RARE_US = 1.0
SMALLEST = math.log(1.1)
SENTENCES = 3
KEPT = 20
"""Ranked differences that are kept for the page."""
NOT_CAUSES = "These are differences beside the result, not its causes."

_UNCOUNTED = frozenset({TracedTopic.OPERATIONS, TracedTopic.NOTE, TracedTopic.EXECUTED})
"""Topics whose counts are not compared: work items that are executed were queued before."""
_COUNTS: Mapping[TracedTopic, str] = {
    TracedTopic.QUEUED: "work items of {}",
    TracedTopic.CONTENDED: "waits for a {}",
    TracedTopic.CONTENDED_AT: "waits for a lock in {}",
    TracedTopic.MIGRATED: "migrations {}",
    TracedTopic.MIGRATED_TASK: "migrations of {} tasks",
    TracedTopic.SWITCHED: "context switches",
}
_TIMES: Mapping[TracedTopic, str] = {
    TracedTopic.QUEUED: "time from queueing to start of {}",
    TracedTopic.EXECUTED: "execution time of {}",
    TracedTopic.CONTENDED: "time of a wait for a {}",
}

Line = tuple[TracedTopic, str]


@dataclass(frozen=True)
class TracedBoot:
    """What one traced boot counted in one scenario and setting."""

    lines: Mapping[Line, Row]
    operations: int
    operation: str
    """Singular name of an operation; empty if the workload counts none."""

    @classmethod
    def of(cls, rows: Iterable[Row]) -> TracedBoot:
        """Make it from the rows of one scenario and setting."""
        known = list(rows)
        done = next((row for row in known if row.topic is TracedTopic.OPERATIONS and row.count), None)
        lines: dict[Line, Row] = {(row.topic, row.name): row for row in known if row.topic is not TracedTopic.NOTE}
        return cls(lines, done.count if done else 1, done.name if done else "")


def differences(left: Sequence[TracedBoot], right: Sequence[TracedBoot], *, times: bool) -> list[TracedDifference]:
    """Return what differs, the largest first, at most KEPT. `times`: compare times too."""
    boots = [*left, *right]
    if not left or not right:
        return []
    units = {boot.operation for boot in boots}
    unit = f"per {boots[0].operation}" if len(units) == 1 and boots[0].operation else "per repetition"
    lines = dict.fromkeys(line for boot in boots for line in boot.lines)
    ranked: list[tuple[float, TracedDifference]] = []
    for topic, name in lines:
        if topic not in _UNCOUNTED:
            ranked += _count(topic, name, left, right, unit)
        if times and topic in TIMED:
            ranked += _time(topic, name, left, right)
    ranked.sort(key=lambda each: (-each[0], each[1].text))
    return [difference for _, difference in ranked[:KEPT]]


def sentences(ranked: Sequence[TracedDifference]) -> list[str]:
    """Return the texts of the largest differences, at most SENTENCES; of one function, lock or task only the first."""
    first: dict[tuple[str, str], str] = {}
    for each in ranked:
        first.setdefault((each.name or each.topic, ""), each.text)
    return list(first.values())[:SENTENCES]


def _count(
    topic: TracedTopic, name: str, left: Sequence[TracedBoot], right: Sequence[TracedBoot], unit: str
) -> list[tuple[float, TracedDifference]]:
    per_operation = unit != "per repetition"
    sides: list[list[float]] = []
    events, rare = 0.0, 0.0
    for boots in (left, right):
        counts = [_events(boot, topic, name) for boot in boots]
        divisors = [boot.operations if per_operation else 1 for boot in boots]
        sides.append([count / divisor for count, divisor in zip(counts, divisors, strict=True)])
        events = max(events, sum(counts) / len(counts))
        rare = max(rare, RARE_EVENTS * len(divisors) / sum(divisors))
    if events < MIN_EVENTS:
        return []
    return _ranked((topic, name), sides, rare, _COUNTS[topic].format(name), unit)


def _time(
    topic: TracedTopic, name: str, left: Sequence[TracedBoot], right: Sequence[TracedBoot]
) -> list[tuple[float, TracedDifference]]:
    sides: list[list[float]] = []
    tails: list[int] = []
    for boots in (left, right):
        rows = [boot.lines[topic, name] for boot in boots if (topic, name) in boot.lines]
        if len(rows) < len(boots) or sum(row.count for row in rows) < MIN_EVENTS * len(rows):
            return []
        sides.append([(row.total_us or 0) / row.count for row in rows if row.count])
        tails.append(max(row.p99_us or 0 for row in rows))
    if any(not side for side in sides):
        return []
    tail = f" (p99 at most {tails[0]} -> {tails[1]} us)"
    return _ranked((topic, name), sides, RARE_US, f"{_TIMES[topic].format(name)}, mean", f"us{tail}")


def _events(boot: TracedBoot, topic: TracedTopic, name: str) -> int:
    row = boot.lines.get((topic, name))
    return row.count if row is not None else 0


def _ranked(
    line: Line, sides: Sequence[Sequence[float]], rare: float, what: str, unit: str
) -> list[tuple[float, TracedDifference]]:
    """Return the difference with its size, or nothing if the boots do not agree or it is too small."""
    left, right = sides
    if not (max(left) < min(right) or max(right) < min(left)):
        return []
    before, after = sum(left) / len(left), sum(right) / len(right)
    decimals = places([before, after])
    size = abs(math.log((after + rare) / (before + rare)))
    if size < SMALLEST:
        return []
    difference = TracedDifference(
        topic=line[0],
        name=line[1],
        is_time=unit.startswith("us"),
        unit=unit.split(" (", maxsplit=1)[0],
        reference=list(left),
        compared=list(right),
        text=f"{what}: {number(before, decimals)} -> {number(after, decimals)} {unit}",
    )
    return [(size, difference)]


def by_cell(tables: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """Group the rows of one boot by scenario and setting."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in tables:
        found[row.scenario, row.setting].append(row)
    return found
