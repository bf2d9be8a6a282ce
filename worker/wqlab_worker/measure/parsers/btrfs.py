"""Parser of plan btrfs: where and by how many workers works of btrfs are started (traced), throughput and CPU time
(untraced)."""

from __future__ import annotations

from collections.abc import Sequence

from wqlab_contracts.enums import NotMeasuredCause
from wqlab_contracts.messages import MeasuredTopology

from ..collect import (
    Measurement,
    NoSamples,
    NotMeasured,
    Operations,
    Records,
    Unsupported,
    compute_measurement,
    count,
)
from .fio import GIB, MIB, FioResult, apply_fio_result, read_fio
from .fio_command import check_work
from .histogram import percentile, read_histogram
from .pairs import domains, locality, read_pairs
from .shares import cpu_utilisation

TRACED = (
    "local_cpu_share",
    "local_core_share",
    "local_l3_share",
    "local_node_share",
    "local_l3_by_chance",
    "compressing_l3_share",
    "works_per_mib",
    "workers",
    "workers_per_node",
    "busiest_node_workers",
    "queue_to_start_p50_us",
    "queue_to_start_p99_us",
    "idle_while_work_waits_us",
)

UNTRACED = (
    "bandwidth",
    "stored_share",
    "scrubs",
    "balances",
    "relocated_chunks",
    "context_switches_per_mib",
    "cpu_seconds_per_gib",
    "cpu_utilisation",
    "write_p50",
    "write_p99",
    "write_p999",
)
SHARES = ("local_cpu_share", "local_core_share", "local_l3_share", "local_node_share", "local_l3_by_chance")
MAINTENANCE = ("scrubs", "balances", "relocated_chunks")


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    measurement = compute_measurement(
        records, TRACED if traced else UNTRACED, lambda: _traced(records, topology) if traced else _untraced(records)
    )
    return apply_fio_result(measurement, records)


def operations(records: Records) -> dict[str, Operations]:
    return {"mib": Operations(read_fio(records).bytes // MIB, "MiB")}


def _traced(records: Records, topology: MeasuredTopology) -> dict[str, float | Unsupported]:
    fio = read_fio(records)
    check_written(records, fio)
    works = records.value("works")
    shares = locality(records, topology, works=works)
    waits = read_histogram(records, "queue_to_start_us", works)
    idle = records.values.get("idle_while_work_waits_us")
    return {
        **{name: shares[name] for name in SHARES},
        "compressing_l3_share": compressing_l3_share(records, topology),
        "works_per_mib": works * MIB / fio.bytes,
        **workers(records, topology),
        "queue_to_start_p50_us": percentile(waits, 0.5),
        "queue_to_start_p99_us": percentile(waits, 0.99),
        **({"idle_while_work_waits_us": idle * MIB / fio.bytes} if idle is not None else {}),
    }


def _untraced(records: Records) -> dict[str, float | Unsupported]:
    fio = read_fio(records)
    check_written(records, fio)
    alone = Unsupported("counted in scenario write-scrub-balance only", NotMeasuredCause.LACKING)
    return {
        "bandwidth": fio.bandwidth_mib_s,
        "stored_share": 100.0 * records.value("stored_kib") * 1024 / fio.bytes,
        **{name: records.values.get(name, alone) for name in MAINTENANCE},
        "context_switches_per_mib": records.value("context_switches") * MIB / fio.bytes,
        "cpu_seconds_per_gib": records.value("cpu_busy_seconds") / (fio.bytes / GIB),
        "cpu_utilisation": cpu_utilisation(records),
        **fio.write.percentiles("write", "write"),
    }


def compressing_l3_share(records: Records, topology: MeasuredTopology) -> float | Unsupported:
    """Return the share in percent of works of btrfs-delalloc that started in the L3 domain that queued them.

    Unsupported for a kernel that compresses elsewhere, whose other works count nevertheless.
    """
    if not records.frame("compressing"):
        return Unsupported("no work of btrfs-delalloc was seen", NotMeasuredCause.NO_SAMPLES)
    pairs, works = read_pairs(records, topology.numbers, "compressing"), records.value("works")
    if (compressing := sum(pair.items for pair in pairs)) > works:
        raise NotMeasured(f"{compressing} works of btrfs-delalloc started, and {works:.0f} of all workqueues")
    return locality(records, topology, "compressing")["local_l3_share"]


def workers(records: Records, topology: MeasuredTopology) -> dict[str, float | Unsupported]:
    """Count the workers in total and for each NUMA node, from lines `pid cpu works` of the works that each started.

    A worker that started works on two nodes counts on both. Raises NotMeasured if the frame is missing, unreadable,
    names unknown CPUs, or has other works than the value `works`.
    """
    started: list[tuple[int, int]] = []
    works = 0
    for line in records.frame("workers"):
        try:
            pid, cpu, times = map(count, line.split())
            started.append((pid, topology.numbers.index(cpu)))
        except ValueError as error:
            raise NotMeasured(f"workers: unreadable line {line[:80]!r}: {error}") from None
        works += times
    if works != records.value("works"):
        raise NotMeasured(f"workers started {works} works, and {records.value('works'):.0f} were counted")
    everywhere = len({pid for pid, _ in started})
    nodes = domains(topology)["node"]
    if nodes is None:
        lacking = Unsupported("the kernel reports no node for each CPU of this device")
        return {"workers": everywhere, "workers_per_node": lacking, "busiest_node_workers": lacking}
    each = _by_node(started, nodes)
    return {
        "workers": everywhere,
        "workers_per_node": sum(each) / len(each),
        "busiest_node_workers": max(each),
    }


def _by_node(started: Sequence[tuple[int, int]], nodes: Sequence[int]) -> list[int]:
    return [len({pid for pid, cpu in started if nodes[cpu] == node}) for node in sorted(set(nodes))]


def check_written(records: Records, fio: FioResult) -> None:
    """Raise NotMeasured if fio wrote too little, data was not compressed, or scrub or balance did not do their work.

    The script itself fails if one of them ended with an error, or a block that was read back is another one.
    """
    check_work(records, fio)
    if fio.failure:
        return
    if fio.bytes <= 0:
        raise NoSamples("fio wrote no data")
    stored, checked = (records.value(name) * 1024 for name in ("stored_kib", "checked_kib"))
    if not 0 < stored < fio.bytes:
        raise NotMeasured(
            f"{stored / MIB:.2f} MiB are stored for the {fio.bytes / MIB:.2f} MiB that were written: not compressed"
        )
    if checked < stored:
        raise NotMeasured(f"a scrub read {checked / MIB:.2f} of the {stored / MIB:.2f} MiB that are stored")
    for name, what in (("scrubs", "scrub"), ("balances", "balance")):
        if records.values.get(name) == 0:
            raise NotMeasured(f"no {what} that began while the files were written has ended")
    if records.values.get("balances") and not records.value("relocated_chunks"):
        raise NotMeasured(f"{records.value('balances'):.0f} balances moved no chunk")
