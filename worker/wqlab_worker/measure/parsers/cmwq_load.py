"""Parser of plan cmwq-load: counts of the load module, and the run time of the encoder beside it."""

from __future__ import annotations

from collections.abc import Iterable

from wqlab_contracts.linear_patterns import LinearPattern
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
from .shares import cpu_utilisation

TRACED = ()
UNTRACED = (
    "concurrency_deficit",
    "works_lost",
    "rule_violations",
    "works_executed",
    "peak_concurrency",
    "workers",
    "rescued_works",
    "kworkers",
    "start_delay_mean_us",
    "start_delay_max_us",
    "load_seconds",
    "encode_seconds",
    "cpu_utilisation",
    "context_switches",
)

MAX_ACTIVE = 1
"""`max_active` of the module's workqueues, for each CPU."""
_REQUEST = LinearPattern(r"\b(workload|burn|duration_ms|seed|sleeps)=(\w+)")


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    return compute_measurement(records, TRACED if traced else UNTRACED, lambda: {} if traced else _untraced(records))


def operations(records: Records) -> dict[str, Operations]:
    return {"works_executed": Operations(read_load(records)["executed"], "work item")}


def _untraced(records: Records) -> dict[str, float | Unsupported]:
    load = read_load(records)
    if load["planned"] == 0:
        raise NoSamples("the module planned no work")
    if load["executed"] > load["planned"]:
        raise NotMeasured(f"the module executed {load['executed']} of {load['planned']} planned work items")
    _check_request(records)
    if not records.facts.get("encoded"):
        raise NotMeasured("the encoder wrote nothing")
    return {
        "concurrency_deficit": load["queues"] - min(load["met"], load["queues"]) + load["starved"],
        "works_lost": load["planned"] - load["executed"] + load["refused"],
        "rule_violations": load["reentered"] + load["misplaced"] + max(0, load["queue_peak"] - MAX_ACTIVE),
        "works_executed": load["executed"],
        "peak_concurrency": load["cpu_peak"],
        "workers": load["workers"],
        "rescued_works": load["rescued"],
        "kworkers": records.value("kworkers"),
        "start_delay_mean_us": load["wait_mean_us"],
        "start_delay_max_us": load["wait_max_us"],
        "load_seconds": load["elapsed_ms"] / 1000,
        "encode_seconds": records.value("encode_seconds"),
        "cpu_utilisation": cpu_utilisation(records),
        "context_switches": records.value("context_switches"),
    }


COUNTS = (
    *("queues", "planned", "executed", "refused", "reentered", "misplaced", "starved", "met", "workers", "rescued"),
    *("cpu_peak", "queue_peak", "wait_mean_us", "wait_max_us", "elapsed_ms"),
)


Load = dict[str, int]
"""Result of a load: COUNTS by name."""


def read_load(records: Records) -> Load:
    """Read the frame `load`. Raises NotMeasured."""
    return read_result(records.frame("load"))


def read_result(lines: Iterable[str]) -> Load:
    """Read the module's `result`, one `name value` a line. Raises NotMeasured unless each of COUNTS is a count."""
    found = dict(line.split(" ", 1) for line in lines if " " in line)
    try:
        return {name: count(found[name]) for name in COUNTS}
    except KeyError as error:
        raise NotMeasured(f"the module's result lacks {error}") from None
    except ValueError as error:
        raise NotMeasured(f"the module's result is unreadable: {error}") from None


def _check_request(records: Records) -> None:
    """Raise NotMeasured if the module's result is that of another request than the command's."""
    found = dict(line.split(" ", 1) for line in records.frame("load") if " " in line)
    for request in _REQUEST.finditer(records.command or ""):
        name, requested = request.groups()
        if found.get(name) != requested:
            raise NotMeasured(f"the module's result is for {name} {found.get(name)}, and {requested} was requested")
