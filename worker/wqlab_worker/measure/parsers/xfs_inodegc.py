"""Parser of plan xfs-inodegc: works that free unlinked inodes (traced), rate and latency of unlink (untraced).

fio's engine `filedelete` reports each unlink as one read of a file's size.
"""

from __future__ import annotations

from wqlab_contracts.messages import MeasuredTopology

from ..collect import (
    Measurement,
    NoSamples,
    NotMeasured,
    Operations,
    Records,
    Unsupported,
    compute_measurement,
)
from .fio import FioResult, Stream, apply_fio_result, read_fio
from .histogram import percentile, read_histogram
from .pairs import locality
from .shares import cpu_utilisation, share

TRACED = (
    "works_per_1000_files",
    "local_cpu_share",
    "local_l3_share",
    "freed_at_home_share",
    "throttled_per_1000_files",
    "deferred_share",
    "queueings_per_work",
    "largest_batch",
    "freed_after_p50_us",
    "freed_after_p99_us",
)

UNTRACED = (
    "files_per_second",
    "stalls_per_1000_files",
    "unlink_mean",
    "unlink_p50",
    "unlink_p99",
    "unlink_p999",
    "cpu_us_per_file",
    "cpu_utilisation",
    "context_switches",
)
STALL_NS = 10_000_000
"""An unlink that takes longer has stalled. fio's histogram has buckets of 1.6 %."""


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    measurement = compute_measurement(
        records, TRACED if traced else UNTRACED, lambda: _traced(records, topology) if traced else _untraced(records)
    )
    return apply_fio_result(measurement, records)


def operations(records: Records) -> dict[str, Operations]:
    return {"files": Operations(int(records.value("files")), "file")}


def _traced(records: Records, topology: MeasuredTopology) -> dict[str, float | Unsupported]:
    files = check_unlinked(records, read_fio(records))
    unlinked, freed, works = (records.value(name) for name in ("unlinked", "inactivated", "works"))
    if not unlinked:
        raise NoSamples("XFS left no unlinked inode to a work")
    if freed != unlinked:
        raise NotMeasured(f"works freed {freed:.0f} of the {unlinked:.0f} inodes that were left to them")
    if not works:
        raise NoSamples("inodes were freed, but no work of workqueue xfs-inodegc was seen")
    shares = locality(records, topology, works=works)
    waits = read_histogram(records, "freed_after_us", freed)
    return {
        "works_per_1000_files": 1000.0 * works / files,
        "local_cpu_share": shares["local_cpu_share"],
        "local_l3_share": shares["local_l3_share"],
        "freed_at_home_share": share(records.value("inactivated_at_home"), freed, "inodes freed at home"),
        "throttled_per_1000_files": 1000.0 * records.value("throttled") / files,
        "deferred_share": share(unlinked, files, "files left to a work"),
        "queueings_per_work": records.value("queued") / works,
        "largest_batch": records.value("largest_batch"),
        "freed_after_p50_us": percentile(waits, 0.5),
        "freed_after_p99_us": percentile(waits, 0.99),
    }


def _untraced(records: Records) -> dict[str, float | Unsupported]:
    fio = read_fio(records)
    files = check_unlinked(records, fio)
    if fio.read.mean_us is None or fio.read.runtime_s <= 0:
        raise NoSamples("fio reports no time of unlink()")
    return {
        "files_per_second": files / fio.read.runtime_s,
        "stalls_per_1000_files": 1000.0 * stalls(fio.read) / files,
        "unlink_mean": fio.read.mean_us,
        **fio.read.percentiles("unlink", "unlink"),
        "cpu_us_per_file": 1e6 * records.value("cpu_busy_seconds") / files,
        "cpu_utilisation": cpu_utilisation(records),
        "context_switches": records.value("context_switches"),
    }


def check_unlinked(records: Records, fio: FioResult) -> int:
    """Return the number of files that were to be unlinked. Raises NotMeasured if one of them was not.

    If fio reports an error, the files are not checked: the error is the result.
    """
    files = int(records.value("files"))
    if files <= 0:
        raise NoSamples("there were no files to unlink")
    if not fio.failure:
        if fio.read.ios != files:
            raise NotMeasured(f"fio unlinked {fio.read.ios} of {files} files")
        if left := int(records.value("files_left")):
            raise NotMeasured(f"{left} of {files} files were still there after they were unlinked")
    return files


def stalls(stream: Stream) -> int:
    """Return the number of operations that took longer than 10 ms (STALL_NS).

    Raises NoSamples if fio's histogram does not have them all.
    """
    if sum(stream.bins_ns.values()) != stream.ios:
        raise NoSamples(f"fio's histogram has {sum(stream.bins_ns.values())} of {stream.ios} operations")
    return sum(times for ns, times in stream.bins_ns.items() if ns > STALL_NS)
