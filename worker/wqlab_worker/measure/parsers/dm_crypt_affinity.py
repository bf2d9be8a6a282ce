"""Parser of plan dm-crypt-affinity: locality of kcryptd's work (traced), throughput and latency (untraced)."""

from __future__ import annotations

from wqlab_contracts.messages import MeasuredTopology

from ..collect import Measurement, Operations, Records, Unsupported, compute_measurement
from .fio import GIB, MIB, apply_fio_result, read_fio
from .fio_command import check_work
from .histogram import percentile, read_histogram
from .pairs import locality
from .shares import cpu_utilisation

TRACED = (
    "local_cpu_share",
    "local_core_share",
    "local_l3_share",
    "local_node_share",
    "local_l3_time_share",
    "local_l3_by_chance",
    "items",
    "queue_to_start_p50_us",
    "queue_to_start_p99_us",
    "idle_while_work_waits_us",
    "idle_in_scope_while_work_waits_us",
    "migrations",
)
UNTRACED = (
    "issuers",
    "bandwidth",
    "read_clat_p50",
    "read_clat_p99",
    "read_clat_p999",
    "write_clat_p50",
    "write_clat_p99",
    "write_clat_p999",
    "cpu_utilisation",
    "cpu_seconds_per_gib",
    "context_switches",
)


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    measurement = compute_measurement(
        records, TRACED if traced else UNTRACED, lambda: _traced(records, topology) if traced else _untraced(records)
    )
    return apply_fio_result(measurement, records)


def operations(records: Records) -> dict[str, Operations]:
    fio = read_fio(records)
    return {
        "total_ios": Operations(fio.read.ios + fio.write.ios, "I/O"),
        "mib": Operations(fio.bytes // MIB, "MiB"),
    }


def _traced(records: Records, topology: MeasuredTopology) -> dict[str, float | Unsupported]:
    fio = read_fio(records)
    check_work(records, fio)
    items = records.value("items")
    waits = read_histogram(records, "queue_to_start_us", items)
    found: dict[str, float | Unsupported] = {"items": items}
    found |= locality(records, topology, works=items)
    found["queue_to_start_p50_us"] = percentile(waits, 0.5)
    found["queue_to_start_p99_us"] = percentile(waits, 0.99)
    for name in ("idle_while_work_waits_us", "idle_in_scope_while_work_waits_us"):
        if name in records.values:
            found[name] = records.values[name] / (fio.read.ios + fio.write.ios)
    if "migrations" in records.values:
        found["migrations"] = records.values["migrations"]
    return found


def _untraced(records: Records) -> dict[str, float | Unsupported]:
    fio = read_fio(records)
    check_work(records, fio)
    return {
        "issuers": fio.jobs,
        "bandwidth": _steady_bandwidth(records) if "steady_ns" in records.values else fio.bandwidth_mib_s,
        **fio.read.percentiles("read_clat", "completion"),
        **fio.write.percentiles("write_clat", "completion"),
        "cpu_utilisation": cpu_utilisation(records),
        "cpu_seconds_per_gib": records.value("cpu_busy_seconds") / (fio.bytes / GIB),
        "context_switches": records.value("context_switches"),
    }


def _steady_bandwidth(records: Records) -> float:
    """Return the MiB/s while the rate of I/Os was stable, which the script looks for in runs of milliseconds."""
    return records.value("steady_bytes") / MIB / (records.value("steady_ns") / 1e9)
