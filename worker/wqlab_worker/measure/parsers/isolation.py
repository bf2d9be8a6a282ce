"""Parser of plan isolation: works that started on isolated CPUs, and how long each change of the mask took to hold.

The script counts; its frame `changes` has a line for each change that was made live: microseconds of the write, and
microseconds from its end until the last unbound work started on an isolated CPU.
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
    count,
)

UNTRACED = ()
TRACED = (
    "works_on_isolated",
    "works_while_isolated",
    "works_before",
    "late_works",
    "percpu_works",
    "changes",
    "hold_mean_us",
    "hold_max_us",
    "write_mean_us",
    "preemptions",
    "interrupts",
    "ticks",
)
COUNTS = (
    "works_on_isolated",
    "works_while_isolated",
    "late_works",
    "percpu_works",
    "preemptions",
    "interrupts",
    "ticks",
)
NOT_LIVE = Unsupported("the CPUs are isolated since boot, and nothing changes live")


def parse(records: Records, topology: MeasuredTopology, traced: bool) -> Measurement:
    return compute_measurement(records, TRACED if traced else UNTRACED, lambda: _traced(records) if traced else {})


def operations(records: Records) -> dict[str, Operations]:
    return {"changes_made": Operations(int(records.value("changes_made")), "change of the mask")}


def _traced(records: Records) -> dict[str, float | Unsupported]:
    found: dict[str, float | Unsupported] = {name: records.value(name) for name in COUNTS}
    if records.value("works_while_isolated") == 0:
        raise NoSamples("no unbound work ran while the CPUs were isolated, so that none could break the isolation")
    changes = read_changes(records)
    found["changes"] = len(changes)
    if not changes:
        return found | dict.fromkeys(("works_before", "hold_mean_us", "hold_max_us", "write_mean_us"), NOT_LIVE)
    holds = [hold for _, hold in changes]
    return found | {
        "works_before": records.value("works_before"),
        "hold_mean_us": sum(holds) / len(holds),
        "hold_max_us": max(holds),
        "write_mean_us": sum(write for write, _ in changes) / len(changes),
    }


def read_changes(records: Records) -> list[tuple[int, int]]:
    """Read the frame `changes`: (write, hold) in microseconds. Raises NotMeasured for a line that is not two counts."""
    changes: list[tuple[int, int]] = []
    for line in records.frame("changes"):
        try:
            write, hold = map(count, line.split())
        except ValueError:
            raise NotMeasured(f"a change is unreadable: {line[:80]!r}") from None
        changes.append((write, hold))
    return changes
