"""Parser of plan xfs-fsync: locks and mutexes of the flushing task (traced), throughput and fsync latency (untraced).

A flush takes locks in two parts. In the first, until the task waits for the flushed work or returns because there is
nothing to wait for, it marks every pool_workqueue: this count follows from the algorithm and is the same in nearly
every flush. The second part (the scheduler's locks, wakeups, flushing for other tasks) depends on timing, so only a
mean over the whole flush makes sense. Both are metrics, so that locks moved from the first part to the second count.
"""

from __future__ import annotations

from collections import Counter

from wqlab_contracts.enums import NotMeasuredCause
from wqlab_contracts.messages import MeasuredTopology

from ..collect import Measurement, NoSamples, NotMeasured, Operations, Records, Unsupported, compute_measurement
from .fio import GIB, apply_fio_result, read_fio
from .fio_command import check_work
from .histogram import majority_value, mean, read_histogram, total
from .shares import cpu_utilisation, share

LOCKS = (
    *("locks_per_flush", "locks_per_flush_mean", "locks_per_fsync", "mutex_per_flush", "mutex_contended_share"),
    *("flushes_per_fsync", "exact_share"),
)
TRACED = (*LOCKS, "idle_while_work_waits_us")
UNTRACED = (
    "bandwidth",
    "iops",
    "fsync_mean",
    "fsync_p50",
    "fsync_p99",
    "fsync_p999",
    "cpu_utilisation",
    "cpu_seconds_per_gib",
    "context_switches",
)

MIN_FLUSHES = 20
MIN_KIND_SHARE = 0.1
"""Smallest share of a kind of flush (one that waits, or returns at once) that is considered."""


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    compute = _traced if traced else _untraced
    return apply_fio_result(
        compute_measurement(records, TRACED if traced else UNTRACED, lambda: compute(records)), records
    )


def operations(records: Records) -> dict[str, Operations]:
    fio = read_fio(records)
    return {"fsyncs": Operations(fio.sync.ios, "fsync"), "total_ios": Operations(fio.write.ios, "write")}


def _traced(records: Records) -> dict[str, float | Unsupported]:
    fio = read_fio(records)
    check_work(records, fio)
    fsyncs = fio.sync.ios
    if not fsyncs:
        raise NoSamples("fio completed no fsync")
    idle = records.values.get("idle_while_work_waits_us")
    return {**_locks(records, fsyncs), **({"idle_while_work_waits_us": idle / fsyncs} if idle is not None else {})}


def _locks(records: Records, fsyncs: int) -> dict[str, float | Unsupported]:
    waited = read_histogram(records, "locks_until_wait_waited")
    returned = read_histogram(records, "locks_until_wait_returned")
    whole = read_histogram(records, "locks_whole_flush")
    flushes = total(whole)
    if total(waited) + total(returned) != flushes:
        raise NotMeasured(f"{total(waited)} + {total(returned)} flushes are not the {flushes} that were seen")
    if flushes < MIN_FLUSHES:
        # Too few flushes may mean that the tracer does not see them, so the value is not zero.
        reason = Unsupported(f"only {flushes} flushes were seen for {fsyncs} fsyncs", NotMeasuredCause.UNRELIABLE)
        return dict.fromkeys(LOCKS, reason)
    if not mean(whole):
        return dict.fromkeys(
            LOCKS,
            Unsupported("flushes take no lock that the tracer sees; are they inlined?", NotMeasuredCause.UNRELIABLE),
        )
    locks = sum(value * times for value, times in whole.items())
    exact = locks_until_wait(waited, returned)
    at_that_value = 0 if isinstance(exact, Unsupported) else waited[exact] + returned[exact]
    return {
        "locks_per_flush": exact,
        "locks_per_flush_mean": locks / flushes,
        "locks_per_fsync": locks / fsyncs,
        **_mutexes(records, flushes),
        "flushes_per_fsync": flushes / fsyncs,
        "exact_share": 100.0 * at_that_value / flushes,
    }


def _mutexes(records: Records, flushes: int) -> dict[str, float | Unsupported]:
    if "mutexes" not in records.values:
        names = ("mutex_per_flush", "mutex_contended_share")
        return dict.fromkeys(names, Unsupported("the plan's script was older and counted no mutexes"))
    mutexes, contended = records.value("mutexes"), records.value("mutexes_contended")
    none = Unsupported("flushes take no mutex", NotMeasuredCause.LACKING)
    return {
        "mutex_per_flush": mutexes / flushes,
        "mutex_contended_share": share(contended, mutexes, "contended mutexes") if mutexes else none,
    }


def locks_until_wait(waited: Counter[int], returned: Counter[int]) -> int | Unsupported:
    """Return the majority lock count of the kind of flush that takes more locks.

    The larger count, so that locks that a kernel saves in one kind only do not count as saved.
    """
    counts = []
    for name, kind in (("wait", waited), ("return at once", returned)):
        if total(kind) < MIN_KIND_SHARE * (total(waited) + total(returned)):
            continue
        value = majority_value(kind)
        if value is None:
            most = ", ".join(f"{value} ({times}x)" for value, times in kind.most_common(3))
            return Unsupported(
                f"no lock count is shared by most of the flushes that {name}: {most}", NotMeasuredCause.UNRELIABLE
            )
        counts.append(value)
    if not max(counts):
        return Unsupported("flushes take no lock that the tracer sees before they wait", NotMeasuredCause.UNRELIABLE)
    return max(counts)


def _untraced(records: Records) -> dict[str, float | Unsupported]:
    fio = read_fio(records)
    check_work(records, fio)
    bandwidth = fio.bandwidth_mib_s
    if fio.sync.mean_us is None:
        raise NoSamples("fio reports no fsync latency")
    if fio.write.runtime_s <= 0:
        raise NoSamples("fio reports a write time of zero")
    return {
        "bandwidth": bandwidth,
        "iops": fio.write.ios / fio.write.runtime_s,
        "fsync_mean": fio.sync.mean_us,
        **fio.sync.percentiles("fsync", "fsync"),
        "cpu_utilisation": cpu_utilisation(records),
        "cpu_seconds_per_gib": records.value("cpu_busy_seconds") / (fio.bytes / GIB),
        "context_switches": records.value("context_switches"),
    }
