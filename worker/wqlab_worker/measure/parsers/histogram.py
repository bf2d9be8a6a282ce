"""Read histograms: lines `value count`, computed on the device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from wqlab_contracts.enums import NotMeasuredCause

from ..collect import NoSamples, NotMeasured, Records, Unsupported, count

PERCENTILES = {"p50": (0.5, 1), "p99": (0.99, 100), "p999": (0.999, 1000)}
"""Name of a percentile -> its share (0..1), and with how many counts at least one is above it; the median needs one."""
MAJORITY = 0.5
"""Share of the counts that a majority value exceeds."""


def read_histogram(records: Records, name: str, counted: float | None = None) -> Counter[int]:
    """Return a histogram of the script as a mapping from value to count; it may be empty.

    `counted`: the total that the script reports separately, if it does. Raises NotMeasured if the histogram is missing
    or unreadable, or if its counts do not add up to `counted`.
    """
    found: Counter[int] = Counter()
    for line in records.frame(f"histogram {name}"):
        try:
            value, times = map(count, line.split())
        except ValueError as error:
            raise NotMeasured(f"histogram {name}: unreadable line {line[:80]!r}: {error}") from None
        found[value] += times
    if counted is not None and total(found) != counted:
        raise NotMeasured(f"histogram {name} has {total(found)} counts instead of {counted:.0f}")
    return +found


def total(histogram: Mapping[int, int]) -> int:
    """Return the sum of the counts."""
    return sum(histogram.values())


def mean(histogram: Mapping[int, int]) -> float:
    """Return the mean value. Raises NotMeasured for an empty histogram."""
    if not (n := total(histogram)):
        raise NoSamples("an empty histogram has no mean")
    return sum(value * times for value, times in histogram.items()) / n


def percentile(histogram: Mapping[int, int], share: float) -> int:
    """Return the nearest-rank percentile: the smallest value with at least `share` (0..1) of the counts at or below it.

    Raises NotMeasured for an empty histogram.
    """
    n = total(histogram)
    seen = 0
    for value in sorted(histogram):
        seen += histogram[value]
        if seen >= share * n and seen:
            return value
    raise NoSamples("an empty histogram has no percentile")


def supported_percentile(histogram: Mapping[int, int], name: str, what: str) -> int | Unsupported:
    """Return a percentile of PERCENTILES; Unsupported if there are so few counts that it would be the maximum.

    `what` is counted: `wakeups`. Raises NoSamples for an empty histogram.
    """
    share, needed = PERCENTILES[name]
    value, n = percentile(histogram, share), total(histogram)
    if n < needed:
        return Unsupported(f"{name} needs {needed} {what}, and there were {n}", NotMeasuredCause.LACKING)
    return value


def majority_value(histogram: Mapping[int, int]) -> int | None:
    """Return the value that has more than half of the counts, or None."""
    n = total(histogram)
    return next((value for value, times in histogram.items() if times > MAJORITY * n), None)
