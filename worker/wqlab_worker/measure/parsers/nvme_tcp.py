"""Parser of plan nvme-tcp: I/Os over NVMe/TCP (untraced), and the works of host and target that carry them (traced).

Frames: `fio`; `pairs END` and `histogram END_queue_to_start_us` of each end, `host` and `target`. A repetition either
reads or writes.
"""

from __future__ import annotations

from wqlab_contracts.messages import MeasuredTopology

from ..collect import Measurement, NoSamples, NotMeasured, Operations, Records, Unsupported, compute_measurement
from .fio import FioResult, Stream, apply_fio_result, read_fio
from .fio_command import check_work
from .histogram import percentile, read_histogram
from .pairs import locality
from .shares import cpu_utilisation

ENDS = ("host", "target")
TRACED = (
    "works_per_1000_ios",
    *(
        f"{end}_{name}"
        for end in ENDS
        for name in (
            "works_per_1000_ios",
            "local_cpu_share",
            "local_l3_share",
            "local_l3_by_chance",
            "queue_to_start_p50_us",
            "queue_to_start_p99_us",
        )
    ),
)
UNTRACED = (
    "iops",
    "latency_p50",
    "latency_p99",
    "latency_p999",
    "context_switches_per_1000_ios",
    "cpu_us_per_io",
    "cpu_utilisation",
)
STARTED_SHARE = 0.99
"""Share of the queued works that must have started. The last ones may start after the trace has ended."""


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    measurement = compute_measurement(
        records, TRACED if traced else UNTRACED, lambda: _traced(records, topology) if traced else _untraced(records)
    )
    return apply_fio_result(measurement, records)


def operations(records: Records) -> dict[str, Operations]:
    return {"ios": Operations(check_io(records, read_fio(records)).ios, "I/O")}


def check_io(records: Records, fio: FioResult) -> Stream:
    """Return the reads or the writes, whichever the repetition did.

    Raises NotMeasured if fio did less than its command asks for or did both, if the target's disk moved fewer bytes
    than fio, or if what was written was not read back whole. Nothing is checked after an error of fio, which says what
    happened.
    """
    check_work(records, fio)
    stream, way = (fio.write, "written") if fio.write.ios else (fio.read, "read")
    if fio.failure:
        return stream
    if not stream.ios:
        raise NoSamples("fio did no I/O")
    if fio.read.ios and fio.write.ios:
        raise NotMeasured(f"fio completed {fio.read.ios} reads beside {fio.write.ios} writes")
    if (moved := records.value(f"target_{way}_bytes")) < stream.bytes:
        raise NotMeasured(f"fio has {way} {stream.bytes} bytes, and the target's disk {moved:.0f}")
    if way == "written":
        disk, verified = records.value("disk_bytes"), records.value("read_back_bytes")
        if not 0 < disk <= verified:
            raise NotMeasured(f"{verified:.0f} of the {disk:.0f} bytes of the namespace were read back and verified")
    return stream


def _traced(records: Records, topology: MeasuredTopology) -> dict[str, float | Unsupported]:
    thousands = check_io(records, read_fio(records)).ios / 1000
    found: dict[str, float | Unsupported] = {}
    works = 0.0
    for end in ENDS:
        queued, started = records.value(f"{end}_works_queued"), records.value(f"{end}_works")
        if not STARTED_SHARE * queued - 1 <= started <= queued:
            raise NotMeasured(f"{queued:.0f} works of the {end} were queued, and {started:.0f} of them started")
        works += started
        waits = read_histogram(records, f"{end}_queue_to_start_us", started)
        places = locality(records, topology, f"pairs {end}", started)
        found |= {
            f"{end}_works_per_1000_ios": started / thousands,
            **{f"{end}_{name}": places[name] for name in ("local_cpu_share", "local_l3_share", "local_l3_by_chance")},
            f"{end}_queue_to_start_p50_us": percentile(waits, 0.5),
            f"{end}_queue_to_start_p99_us": percentile(waits, 0.99),
        }
    return {"works_per_1000_ios": works / thousands, **found}


def _untraced(records: Records) -> dict[str, float | Unsupported]:
    stream = check_io(records, read_fio(records))
    if stream.runtime_s <= 0:
        raise NoSamples("fio reports no run time")
    return {
        "iops": stream.ios / stream.runtime_s,
        **stream.percentiles("latency", "completion"),
        "context_switches_per_1000_ios": records.value("context_switches") / (stream.ios / 1000),
        "cpu_us_per_io": 1e6 * records.value("cpu_busy_seconds") / stream.ios,
        "cpu_utilisation": cpu_utilisation(records),
    }
