"""Plan xfs-fsync: what the flushing task locks (traced), throughput and fsync latency (untraced repetitions).

A flush takes its locks in two parts. Until the task waits for the flushed work, or returns because nothing is left to
wait for, it marks every pool_workqueue: that count follows from the algorithm and is the same in nearly every flush.
What comes then (the scheduler's locks, waking up, flushing on behalf of others) depends on timing, so over the whole
flush only a mean makes sense. Both are judged: locks that move from the first part to the second do not vanish.
"""

from __future__ import annotations

from collections import Counter

from wqlab_contracts.messages import MeasuredTopology

from ..collect import Lacking, Measurement, NoSamples, NotMeasured, Records, measure
from .fio import GIB, read_fio, said_by_fio
from .histogram import majority_value, mean, read_histogram, total

TRACED = ("locks_per_flush", "locks_per_flush_mean", "locks_per_fsync", "flushes_per_fsync", "exact_share")
UNTRACED = (
    "bandwidth",
    "iops",
    "fsync_mean",
    "fsync_p99",
    "cpu_utilisation",
    "cpu_seconds_per_gib",
    "context_switches",
)

LEAST_FLUSHES = 20
MATTERS = 0.1
"""Flushes that wait and flushes that return at once are counted apart; a kind below this share of all is left out."""


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    compute = _traced if traced else _untraced
    return said_by_fio(measure(records, TRACED if traced else UNTRACED, lambda: compute(records)), records)


def _traced(records: Records) -> dict[str, float | Lacking]:
    fsyncs = read_fio(records).sync.ios
    if not fsyncs:
        raise NoSamples("fio completed no fsync")
    waited = read_histogram(records, "locks_until_wait_waited")
    returned = read_histogram(records, "locks_until_wait_returned")
    whole = read_histogram(records, "locks_whole_flush")
    flushes = total(whole)
    if total(waited) + total(returned) != flushes:
        raise NotMeasured(f"{total(waited)} + {total(returned)} flushes are not the {flushes} that were seen")
    if flushes < LEAST_FLUSHES:
        # No flush at all can be a tracer that does not see them: not a zero.
        lacking = Lacking(f"not measured: only {flushes} flushes were seen for {fsyncs} fsyncs")
        return dict.fromkeys(TRACED, lacking)
    if not mean(whole):
        return dict.fromkeys(
            TRACED, Lacking("not measured: flushes take no lock that the tracer sees; are they inlined?")
        )
    locks = sum(value * times for value, times in whole.items())
    exact = locks_until_wait(waited, returned)
    at_that_value = 0 if isinstance(exact, Lacking) else waited[exact] + returned[exact]
    return {
        "locks_per_flush": exact,
        "locks_per_flush_mean": locks / flushes,
        "locks_per_fsync": locks / fsyncs,
        "flushes_per_fsync": flushes / fsyncs,
        "exact_share": 100.0 * at_that_value / flushes,
    }


def locks_until_wait(waited: Counter[int], returned: Counter[int]) -> int | Lacking:
    """The count that most flushes show, of the two kinds of flush the one that locks more.

    The larger one, so that locks that a kernel saves in one kind only do not count as saved.
    """
    counts = []
    for name, kind in (("wait", waited), ("return at once", returned)):
        if total(kind) < MATTERS * (total(waited) + total(returned)):
            continue
        value = majority_value(kind)
        if value is None:
            most = ", ".join(f"{value} ({times}x)" for value, times in kind.most_common(3))
            return Lacking(f"not measured: no lock count is shared by most of the flushes that {name}: {most}")
        counts.append(value)
    if not max(counts):
        return Lacking("not measured: flushes take no lock that the tracer sees before they wait")
    return max(counts)


def _untraced(records: Records) -> dict[str, float | Lacking]:
    fio = read_fio(records)
    bandwidth = fio.bandwidth_mib_s
    if fio.sync.mean_us is None or fio.sync.p99_us is None:
        raise NoSamples("fio reports no fsync latency")
    if fio.write.runtime_s <= 0:
        raise NoSamples("fio wrote for no time")
    return {
        "bandwidth": bandwidth,
        "iops": fio.write.ios / fio.write.runtime_s,
        "fsync_mean": fio.sync.mean_us,
        "fsync_p99": fio.sync.p99_us,
        "cpu_utilisation": records.value("cpu_utilisation"),
        "cpu_seconds_per_gib": records.value("cpu_busy_seconds") / (fio.bytes / GIB),
        "context_switches": records.value("context_switches"),
    }
