"""Plan aio-migration: how often the scheduler moved the writer and how long it stayed, and what it got done."""

from __future__ import annotations

import math
from collections.abc import Mapping

from wqlab_contracts.messages import MeasuredTopology

from ..collect import Lacking, Measurement, NoSamples, Records, measure
from .fio import FioResult, Stream, read_fio, said_by_fio
from .histogram import mean, read_histogram, total

TRACED = (
    "migrations_per_1000_ios",
    "migrations_per_second",
    "migrations",
    "migrations_by_counter",
    "stay_mean_ms",
    "stay_sd_ms",
    "stay_min_ms",
    "stay_max_ms",
    "completions_unbound",
    "completions_local",
)
UNTRACED = (
    "bandwidth",
    "latency_mean",
    "latency_p99",
    "writer_cpu_share",
    "writer_switches",
    "cpu_utilisation",
    "context_switches",
)


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    compute = _traced if traced else _untraced
    return said_by_fio(measure(records, TRACED if traced else UNTRACED, lambda: compute(records)), records)


def _traced(records: Records) -> dict[str, float | Lacking]:
    stream = _stream(read_fio(records))
    migrations = records.value("migrations")
    found: dict[str, float | Lacking] = {
        "migrations_per_1000_ios": 1000.0 * migrations / stream.ios,
        "migrations_per_second": migrations / stream.runtime_s,
        "migrations": migrations,
    }
    if "migrations_by_counter" in records.values:
        found["migrations_by_counter"] = records.values["migrations_by_counter"]
    return found | stays(read_histogram(records, "stay_us")) | _completions(records)


def stays(stay_us: Mapping[int, int]) -> dict[str, float | Lacking]:
    """Time on a CPU, from one migration to the next, in ms; what the ends of the run cut off is left out."""
    names = ("stay_mean_ms", "stay_sd_ms", "stay_min_ms", "stay_max_ms")
    if not total(stay_us):
        return dict.fromkeys(names, Lacking("the writer moved less than twice: no stay on a CPU has both ends"))
    middle = mean(stay_us)
    n = total(stay_us)
    squares = sum(times * (us - middle) ** 2 for us, times in stay_us.items())
    spread: float | Lacking = Lacking("one stay on a CPU has no standard deviation")
    if n > 1:
        spread = math.sqrt(squares / (n - 1)) / 1e3
    return dict(zip(names, (middle / 1e3, spread, min(stay_us) / 1e3, max(stay_us) / 1e3), strict=True))


def _completions(records: Records) -> dict[str, float | Lacking]:
    names = ("completions_unbound", "completions_local")
    if "completions_queued" not in records.values:
        return {}
    queued, started = records.value("completions_queued"), records.value("completions_started")
    if not queued or not started:
        return dict.fromkeys(names, Lacking("this kernel queues no completion work for AIO writes"))
    shares = (
        100.0 * records.value("completions_unbound_queued") / queued,
        100.0 * records.value("completions_started_locally") / started,
    )
    return dict(zip(names, shares, strict=True))


def _untraced(records: Records) -> dict[str, float | Lacking]:
    fio = read_fio(records)
    stream = _stream(fio)
    if stream.mean_us is None or stream.p99_us is None:
        raise NoSamples("fio reports no completion latency")
    found: dict[str, float | Lacking] = {
        "bandwidth": fio.bandwidth_mib_s,
        "latency_mean": stream.mean_us,
        "latency_p99": stream.p99_us,
        "cpu_utilisation": records.value("cpu_utilisation"),
        "context_switches": records.value("context_switches"),
    }
    if "writer_cpu_ms" in records.values:
        found["writer_cpu_share"] = 100.0 * records.values["writer_cpu_ms"] / (1e3 * stream.runtime_s)
    if "writer_switches" in records.values:
        found["writer_switches"] = records.values["writer_switches"]
    return found


def _stream(fio: FioResult) -> Stream:
    """The direction that the scenario moves data in. Raises NotMeasured for an empty run."""
    stream = fio.write if fio.write.ios else fio.read
    if stream.ios <= 0 or stream.runtime_s <= 0:
        raise NoSamples("fio moved no data")
    return stream
