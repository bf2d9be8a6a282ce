"""Parser of plan verity-erofs: latency of pages (untraced), and works that a read needs and where they ran (traced).

Frames: `fio` has the readers' result; `pairs` and `histogram queue_to_start_us` are of the works that verified or
decompressed, in bottom halves too. Each read is of another page, which is not in the page cache.
"""

from __future__ import annotations

from wqlab_contracts.messages import MeasuredTopology

from ..collect import Measurement, NoSamples, NotMeasured, Operations, Records, Unsupported, compute_measurement
from .fio import apply_fio_result, read_fio
from .fio_command import check_work
from .histogram import percentile, read_histogram, total
from .pairs import check_starts, locality
from .shares import cpu_utilisation

PLACED = ("local_cpu_share", "local_l3_share", "local_l3_by_chance")
WAITED = ("queue_to_start_p50_us", "queue_to_start_p99_us")
WORKS = ("bh", "verify", "decompress", "prefetch")
TRACED = ("works_per_1000_reads", *(f"{name}_works_per_1000_reads" for name in WORKS), *PLACED, *WAITED)
UNTRACED = (
    "readers",
    "read_p50",
    "read_p99",
    "read_p999",
    "reads_per_second",
    "context_switches_per_1000_reads",
    "cpu_us_per_read",
    "cpu_utilisation",
)


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    measurement = compute_measurement(
        records, TRACED if traced else UNTRACED, lambda: _traced(records, topology) if traced else _untraced(records)
    )
    return apply_fio_result(measurement, records)


def operations(records: Records) -> dict[str, Operations]:
    return {"reads": Operations(read_fio(records).read.ios, "read")}


def _traced(records: Records, topology: MeasuredTopology) -> dict[str, float | Unsupported]:
    thousands = _reads(records) / 1000
    queued, started = records.value("works_queued"), records.value("works_started")
    if not queued:
        raise NoSamples("no work of dm-verity or erofs was seen")
    if not 0.99 * queued <= started <= queued:
        raise NotMeasured(f"{queued:.0f} works were queued, and {started:.0f} of them started")
    works = {name: records.value(f"{name}_works") for name in WORKS}
    serving = works["bh"] + works["verify"] + works["decompress"]
    found: dict[str, float | Unsupported] = {
        "works_per_1000_reads": serving / thousands,
        **{f"{name}_works_per_1000_reads": number / thousands for name, number in works.items()},
    }
    waits = read_histogram(records, "queue_to_start_us")
    check_starts(serving, works["prefetch"], queued, started, total(waits))
    if not serving:
        if records.frame("pairs"):
            raise NotMeasured("no work verified or decompressed, and there are pairs of CPUs that did")
        return found | dict.fromkeys((*PLACED, *WAITED), Unsupported("no work verified or decompressed"))
    places = locality(records, topology, works=total(waits))
    return (
        found
        | {name: places[name] for name in PLACED}
        | {"queue_to_start_p50_us": percentile(waits, 0.5), "queue_to_start_p99_us": percentile(waits, 0.99)}
    )


def _untraced(records: Records) -> dict[str, float | Unsupported]:
    reads = _reads(records)
    fio = read_fio(records)
    if fio.read.runtime_s <= 0:
        raise NoSamples("fio reports no run time")
    return {
        "readers": fio.jobs,
        **fio.read.percentiles("read", "completion"),
        "reads_per_second": reads / fio.read.runtime_s,
        "context_switches_per_1000_reads": records.value("context_switches") / (reads / 1000),
        "cpu_us_per_read": 1e6 * records.value("cpu_busy_seconds") / reads,
        "cpu_utilisation": cpu_utilisation(records),
    }


def _reads(records: Records) -> int:
    """Return the number of pages that were read. Raises NotMeasured if it is smaller than requested."""
    fio = read_fio(records)
    check_work(records, fio)
    if not fio.read.ios:
        raise NoSamples("fio read no page")
    return fio.read.ios
