"""Parser of plan aio-migration: migrations of the writer, its stays on a CPU, bandwidth and latency."""

from __future__ import annotations

import math
from collections.abc import Mapping

from wqlab_contracts.enums import NotMeasuredCause
from wqlab_contracts.messages import MeasuredTopology

from ..collect import Measurement, NoSamples, NotMeasured, Operations, Records, Unsupported, compute_measurement
from .fio import FioResult, Stream, apply_fio_result, read_fio
from .fio_command import check_work
from .histogram import mean, read_histogram, total
from .shares import cpu_utilisation, share

TRACED = (
    "migrations_per_1000_ios",
    "migrations_per_second",
    "migrations",
    "migrations_by_counter",
    "stay_mean_ms",
    "stay_sd_ms",
    "stay_min_ms",
    "stay_max_ms",
    "completions_by_work",
    "completions_unbound",
    "completions_local",
)
WITHOUT_WORK = (
    "this kernel completes overwrites without a work, as Linux does since 6.19, so no kworker moves the writer: see "
    "scenarios seq-initial and rand-initial"
)
UNTRACED = (
    "bandwidth",
    "latency_mean",
    "latency_p50",
    "latency_p99",
    "latency_p999",
    "writer_cpu_share",
    "writer_switches",
    "cpu_utilisation",
    "context_switches",
)


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    compute = _traced if traced else _untraced
    return apply_fio_result(
        compute_measurement(records, TRACED if traced else UNTRACED, lambda: compute(records)), records
    )


def operations(records: Records) -> dict[str, Operations]:
    return {"total_ios": Operations(_stream(read_fio(records)).ios, "I/O")}


def _traced(records: Records) -> dict[str, float | Unsupported]:
    if "overwrites_without_work" in records.values:
        return dict.fromkeys(TRACED, Unsupported(WITHOUT_WORK, NotMeasuredCause.LACKING)) | _completions(records)
    fio = read_fio(records)
    check_work(records, fio)
    stream = _stream(fio)
    migrations = records.value("migrations")
    found: dict[str, float | Unsupported] = {
        "migrations_per_1000_ios": 1000.0 * migrations / stream.ios,
        "migrations_per_second": migrations / stream.runtime_s,
        "migrations": migrations,
    }
    if "migrations_by_counter" in records.values:
        found["migrations_by_counter"] = records.values["migrations_by_counter"]
    return found | stay_metrics(read_histogram(records, "stay_us")) | _completions(records)


def stay_metrics(stay_us: Mapping[int, int]) -> dict[str, float | Unsupported]:
    """Return statistics of stays: the time on a CPU between two migrations, in ms.

    The first and last stay, cut off by the ends of the run, are left out.
    """
    names = ("stay_mean_ms", "stay_sd_ms", "stay_min_ms", "stay_max_ms")
    if not total(stay_us):
        few = "the writer migrated less than twice, so no stay on a CPU is complete"
        return dict.fromkeys(names, Unsupported(few, NotMeasuredCause.UNRELIABLE))
    middle = mean(stay_us)
    n = total(stay_us)
    squares = sum(times * (us - middle) ** 2 for us, times in stay_us.items())
    spread: float | Unsupported = Unsupported(
        "one stay on a CPU has no standard deviation", NotMeasuredCause.UNRELIABLE
    )
    if n > 1:
        spread = math.sqrt(squares / (n - 1)) / 1e3
    return dict(zip(names, (middle / 1e3, spread, min(stay_us) / 1e3, max(stay_us) / 1e3), strict=True))


def _completions(records: Records) -> dict[str, float | Unsupported]:
    names = ("completions_by_work", "completions_unbound", "completions_local")
    if "completions_queued" not in records.values:
        return {}
    queued, started = records.value("completions_queued"), records.value("completions_started")
    by_work = share(queued, records.value("completions_probed"), "completions by a work")
    if not queued or not started:
        none = Unsupported("this kernel queues no completion work for such writes")
        return dict.fromkeys(names, none) | {names[0]: by_work}
    if started > queued:
        raise NotMeasured(f"{queued:.0f} completion works were queued, and {started:.0f} of them started")
    shares = (
        by_work,
        share(records.value("completions_unbound_queued"), queued, "completion works queued to no CPU"),
        share(records.value("completions_started_locally"), started, "completion works started locally"),
    )
    return dict(zip(names, shares, strict=True))


def _untraced(records: Records) -> dict[str, float | Unsupported]:
    fio = read_fio(records)
    check_work(records, fio)
    stream = _stream(fio)
    if stream.mean_us is None:
        raise NoSamples("fio reports no completion latency")
    found: dict[str, float | Unsupported] = {
        "bandwidth": fio.bandwidth_mib_s,
        "latency_mean": stream.mean_us,
        **stream.percentiles("latency", "completion"),
        "cpu_utilisation": cpu_utilisation(records),
        "context_switches": records.value("context_switches"),
    }
    if "writer_cpu_ms" in records.values:
        found["writer_cpu_share"] = 100.0 * records.values["writer_cpu_ms"] / (1e3 * stream.runtime_s)
    if "writer_switches" in records.values:
        found["writer_switches"] = records.values["writer_switches"]
    return found


def _stream(fio: FioResult) -> Stream:
    """Return the stream of the scenario's direction, read or write. Raises NotMeasured for an empty run."""
    stream = fio.write if fio.write.ios else fio.read
    if stream.ios <= 0 or stream.runtime_s <= 0:
        raise NoSamples("fio moved no data")
    return stream
