"""Parser of plan hotplug: what became of the works of each CPU that was switched off and on.

Frames: `loads` has the module's result of each load during the cycles, one after the other; `after` that of the load
with all CPUs back; `binds` a line `unbind CPU MICROSECONDS` or `rebind CPU MICROSECONDS` for each change.
"""

from __future__ import annotations

from collections.abc import Sequence

from wqlab_contracts.enums import NotMeasuredCause
from wqlab_contracts.messages import MeasuredTopology

from ..collect import (
    Measurement,
    NotMeasured,
    Operations,
    Records,
    Unsupported,
    compute_measurement,
    count,
)
from .cmwq_load import Load, read_result

UNTRACED = ()
TRACED = (
    "works_lost",
    "stayed_elsewhere",
    "ran_twice_at_once",
    "refusals",
    "warnings",
    "cycles",
    "works_executed",
    "works_elsewhere",
    "unbind_mean_us",
    "unbind_max_us",
    "rebind_mean_us",
    "rebind_max_us",
)


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    return compute_measurement(records, TRACED if traced else UNTRACED, lambda: _traced(records) if traced else {})


def operations(records: Records) -> dict[str, Operations]:
    return {"cycles": Operations(int(records.value("cycles")), "cycle of a CPU")}


def _traced(records: Records) -> dict[str, float | Unsupported]:
    loads = read_loads(records.frame("loads"))
    after = read_result(records.frame("after"))
    found: dict[str, float | Unsupported] = {
        "works_lost": sum(lost(load) for load in (*loads, after)),
        "stayed_elsewhere": after["misplaced"],
        "ran_twice_at_once": sum(load["reentered"] for load in (*loads, after)),
        "works_executed": sum(load["executed"] for load in loads),
        "works_elsewhere": sum(load["misplaced"] for load in loads),
    }
    found |= {name: records.value(name) for name in ("refusals", "warnings", "cycles")}
    if found["cycles"] == 0:
        raise NotMeasured("no CPU was switched off and on")
    return found | _times(records.frame("binds"))


def read_loads(lines: Sequence[str]) -> list[Load]:
    """Read results that follow one another, each from its line `workload N` on. Raises NotMeasured if there is none."""
    starts = [number for number, line in enumerate(lines) if line.startswith("workload ")]
    if not starts or starts[0] != 0:
        raise NotMeasured("there is no result of a load")
    ends = [*starts[1:], len(lines)]
    return [read_result(lines[start:end]) for start, end in zip(starts, ends, strict=True)]


def lost(load: Load) -> int:
    """Return the number of works that were queued and never ran, or that the workqueue refused. Raises NotMeasured."""
    if load["executed"] > load["planned"]:
        raise NotMeasured(f"the module executed {load['executed']} of {load['planned']} planned work items")
    return load["planned"] - load["executed"] + load["refused"]


def lost_beside(records: Records) -> int:
    """Return the number of works that were lost by the loads beside another workload; 0 if there was no load.

    Raises NotMeasured if the loads executed no work.
    """
    if "loads" not in records.frames:
        return 0
    loads = read_loads(records.frame("loads"))
    if not any(load["executed"] for load in loads):
        raise NotMeasured("the load beside the workload executed no work")
    return sum(lost(load) for load in loads)


def _times(lines: Sequence[str]) -> dict[str, float | Unsupported]:
    """Return mean and longest time of unbinding and rebinding a CPU's workers. Raises NotMeasured for a bad line."""
    times: dict[str, list[int]] = {"unbind": [], "rebind": []}
    for line in lines:
        try:
            kind, _, microseconds = line.split()
            times[kind].append(count(microseconds))
        except (KeyError, ValueError):
            raise NotMeasured(f"a time is unreadable: {line[:80]!r}") from None
    found: dict[str, float | Unsupported] = {}
    for kind, values in times.items():
        missing = Unsupported(f"the trace has no {kind} of a CPU's workers", NotMeasuredCause.EVENTS_LOST)
        found[f"{kind}_mean_us"] = sum(values) / len(values) if values else missing
        found[f"{kind}_max_us"] = max(values) if values else missing
    return found
