"""Counts of values: lines `value count`, reduced on the device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ..collect import NoSamples, NotMeasured, Records, count

MAJORITY = 0.5


def read_histogram(records: Records, name: str) -> Counter[int]:
    """Value -> how often. Raises NotMeasured for a missing or unreadable one; an empty one is fine."""
    found: Counter[int] = Counter()
    for line in records.frame(f"histogram {name}"):
        try:
            value, times = map(count, line.split())
        except ValueError as error:
            raise NotMeasured(f"histogram {name}: unreadable line {line[:80]!r}: {error}") from None
        found[value] += times
    return +found


def total(histogram: Mapping[int, int]) -> int:
    return sum(histogram.values())


def mean(histogram: Mapping[int, int]) -> float:
    """Raises NotMeasured for an empty histogram."""
    if not (n := total(histogram)):
        raise NoSamples("an empty histogram has no mean")
    return sum(value * times for value, times in histogram.items()) / n


def percentile(histogram: Mapping[int, int], share: float) -> int:
    """Nearest rank: the smallest value with at least `share` (0..1) of the counts at or below it."""
    n = total(histogram)
    seen = 0
    for value in sorted(histogram):
        seen += histogram[value]
        if seen >= share * n and seen:
            return value
    raise NoSamples("an empty histogram has no percentile")


def majority_value(histogram: Mapping[int, int]) -> int | None:
    """The value that more than half of the counts share, if there is one."""
    n = total(histogram)
    return next((value for value, times in histogram.items() if times > MAJORITY * n), None)
