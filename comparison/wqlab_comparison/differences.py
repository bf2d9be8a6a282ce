"""Judge what differs between the boots of two sides whose events were counted, and put it into words.

A value is what one boot counted, per operation of its workload, or the mean time of its events. A block has one boot of
each side. Its difference is ln((right + e) / (left + e)), where e is worth RARE_EVENTS events a boot, or RARE_US for a
time, so that rare events are no large changes. The rule:

1. A line needs MIN_EVENTS events a boot on one side; a time needs them on both.
2. All lines of a run are one family: a line differs if its p, adjusted for the largest of all lines, is at most ALPHA.
   If the sides do not differ, a block's differences could as well all have the other sign (sign flips of whole blocks;
   P. H. Westfall, S. S. Young 1993). The test is exact for any number of lines, whatever their noise is and however
   they depend on each other. Six blocks are enough.
3. The 95 % interval of its change is beyond SMALLEST.
4. Larger change first.

No cause is claimed. On emulated devices times are no evidence, so only counts are judged. Pure.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wqlab_contracts.api.explanations import TracedDifference
from wqlab_contracts.traced_counts import TIMED, Row, TracedTopic

from . import effect
from .power import LEAST_BLOCKS
from .significance import ALPHA, Floats, clip
from .words import number, places, readable_time, time

MIN_EVENTS = 100
RARE_EVENTS = 20.0
RARE_US = 1.0
SMALLEST = math.log(1.1)
SENTENCES = 3
ALL_PATTERNS = 12
"""Up to this many blocks all sign patterns count; beyond, RANDOM_PATTERNS of them, drawn with a fixed seed."""
RANDOM_PATTERNS = 2000
KEPT = 20
"""Ranked differences that are kept for the page."""
NOT_CAUSES = "These are differences beside the result, not its causes."

_UNCOUNTED = frozenset({TracedTopic.OPERATIONS, TracedTopic.NOTE, TracedTopic.EXECUTED, TracedTopic.CALLED})
"""Topics whose counts are not compared: work items that are executed were queued before."""
_COUNTS: Mapping[TracedTopic, str] = {
    TracedTopic.QUEUED: "work items of {}",
    TracedTopic.CONTENDED: "waits for a {}",
    TracedTopic.CONTENDED_AT: "waits for a lock in {}",
    TracedTopic.MIGRATED: "migrations {}",
    TracedTopic.MIGRATED_TASK: "migrations of {} tasks",
    TracedTopic.SWITCHED: "context switches",
}
_PLACES: Mapping[tuple[str, ...], str] = {
    ("on_cpu",): "on the CPU that queued them",
    ("on_node", "off_node"): "in another last-level cache domain",
}
"""Fields of a row -> place where its works started."""
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


class Sides(NamedTuple):
    """Boots of both sides in one scenario and setting; `left[i]` and `right[i]` are of one block."""

    left: Sequence[TracedBoot]
    right: Sequence[TracedBoot]


@dataclass(frozen=True)
class _Line:
    cell: int
    d: Floats
    """Difference of each block."""
    difference: TracedDifference


def differences(cells: Sequence[Sides], *, times: bool) -> list[list[TracedDifference]]:
    """Return what differs in each of the cells, which have the same blocks and are one family; the largest first, at
    most KEPT. Nothing with fewer than LEAST_BLOCKS blocks. `times`: judge times too.
    """
    found = [line for number, sides in enumerate(cells) for line in _lines(number, sides, times=times)]
    blocks = min((len(sides.left) for sides in cells), default=0)
    judged = _judge(found) if blocks >= LEAST_BLOCKS else []
    judged.sort(key=lambda line: (-abs(effect.estimate(line.d)), line.difference.text))
    return [[line.difference for line in judged if line.cell == number][:KEPT] for number in range(len(cells))]


def _judge(lines: Sequence[_Line]) -> list[_Line]:
    """Return the lines that differ."""
    if not lines:
        return []
    units = np.array([clip(line.d) / np.linalg.norm(clip(line.d)) for line in lines])
    flipped = np.abs(_patterns(units.shape[1]) @ units.T)
    largest = np.sort(flipped.max(axis=1))
    seen = flipped[0] - 1e-9  # the first pattern flips nothing
    adjusted = 1 - np.searchsorted(largest, seen, side="left") / len(largest)
    return [line for line, p in zip(lines, adjusted, strict=True) if p <= ALPHA and _is_relevant(line.d)]


def _patterns(blocks: int) -> Floats:
    """Return sign patterns, shape (patterns, blocks), without the mirror image of each; the first has no flips."""
    if blocks <= ALL_PATTERNS:
        flips = (np.arange(2 ** (blocks - 1))[:, None] >> np.arange(blocks)) & 1
    else:
        flips = np.random.default_rng(0).integers(0, 2, (RANDOM_PATTERNS, blocks))
        flips[0] = 0
    return (1 - 2 * flips).astype(np.float64)


def _is_relevant(d: Floats) -> bool:
    ends = effect.interval(d, effect.estimate(d))
    return ends is not None and (ends[0] >= SMALLEST or ends[1] <= -SMALLEST)


def _lines(cell: int, sides: Sides, *, times: bool) -> Iterator[_Line]:
    boots = [*sides.left, *sides.right]
    if not sides.left or len(sides.left) != len(sides.right):
        return
    units = {boot.operation for boot in boots}
    unit = f"per {boots[0].operation}" if len(units) == 1 and boots[0].operation else "per repetition"
    for topic, name in dict.fromkeys(line for boot in boots for line in boot.lines):
        if topic not in _UNCOUNTED:
            yield from _counts(cell, topic, name, sides, unit)
        if times and topic in TIMED:
            yield from _time(cell, topic, name, sides)


def sentences(ranked: Sequence[TracedDifference]) -> list[str]:
    """Return the texts of the largest differences, at most SENTENCES; of one function, lock or task only the first."""
    first: dict[tuple[str, str], str] = {}
    for each in ranked:
        first.setdefault((each.name or each.topic, ""), each.text)
    return list(first.values())[:SENTENCES]


def _counts(cell: int, topic: TracedTopic, name: str, sides: Sides, unit: str) -> Iterator[_Line]:
    """Yield the lines of a topic's events, and of the places where works started."""
    rows = [[boot.lines.get((topic, name)) for boot in boots] for boots in sides]
    operations = [[boot.operations if unit != "per repetition" else 1 for boot in boots] for boots in sides]
    what = _COUNTS[topic].format(name)
    counted = [(what, [[0 if row is None else row.count for row in side] for side in rows])]
    if topic is TracedTopic.QUEUED and all(row is None or row.on_cpu is not None for side in rows for row in side):
        for fields, where in _PLACES.items():
            of_place = [[_started(row, fields) for row in side] for side in rows]
            counted.append((f"{what} that started {where}", of_place))
    for text, counts in counted:
        if max(sum(side) / len(side) for side in counts) >= MIN_EVENTS:
            rare = max(RARE_EVENTS * len(side) / sum(side) for side in operations)
            values = [
                [count / divisor for count, divisor in zip(*each, strict=True)]
                for each in zip(counts, operations, strict=True)
            ]
            yield from _line(cell, (topic, name), values, rare, (text, unit))


def _started(row: Row | None, fields: Sequence[str]) -> int:
    return 0 if row is None else sum(getattr(row, field) or 0 for field in fields)


def _time(cell: int, topic: TracedTopic, name: str, sides: Sides) -> Iterator[_Line]:
    values: list[list[float]] = []
    tails: list[int] = []
    for boots in sides:
        rows = [boot.lines[topic, name] for boot in boots if (topic, name) in boot.lines]
        if len(rows) < len(boots) or any(not row.count for row in rows):
            return
        if sum(row.count for row in rows) < MIN_EVENTS * len(rows):
            return
        values.append([(row.total_us or 0) / row.count for row in rows])
        tails.append(max(row.p99_us or 0 for row in rows))
    tail = f" (p99 at most {time(tails[0], 'us')} -> {time(tails[1], 'us')})"
    yield from _line(cell, (topic, name), values, RARE_US, (f"{_TIMES[topic].format(name)}, mean", f"us{tail}"))


def _line(
    cell: int, line: Line, values: Sequence[Sequence[float]], rare: float, text: tuple[str, str]
) -> Iterator[_Line]:
    """Yield the line, unless it is the same in every block. `text`: what is counted, and its unit."""
    what, unit = text
    left, right = (np.array(side) for side in values)
    d = np.log(right + rare) - np.log(left + rare)
    if not d.any():
        return
    before, after = float(left.mean()), float(right.mean())
    of, _, note = unit.partition(" (")
    divisor, shown = readable_time([before, after], of)
    decimals = places([before / divisor, after / divisor])
    figures = f"{number(before / divisor, decimals)} -> {number(after / divisor, decimals)} {shown}"
    yield _Line(
        cell,
        d,
        TracedDifference(
            topic=line[0],
            name=line[1],
            is_time=of == "us",
            unit=of,
            reference=left.tolist(),
            compared=right.tolist(),
            text=f"{what}: {figures}{f' ({note}' if note else ''}",
        ),
    )


def by_cell(tables: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """Group the rows of one boot by scenario and setting."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in tables:
        found[row.scenario, row.setting].append(row)
    return found
