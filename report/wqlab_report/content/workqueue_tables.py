"""Titles, notes and tables of workqueue series."""

from __future__ import annotations

from wqlab_contracts.api.report import TargetReport
from wqlab_contracts.api.workqueues import WorkqueueCell
from wqlab_contracts.workqueue_series import COUNTERS

from ..plain_text import NOTHING

_COUNTER_NAMES = {
    "cpu_us": "CPU ms",
    "cpu_intensive": "CPU-intensive",
    "cm_wakeups": "managed wakeups",
}
HEADER = ["workqueue", "arm", *(_COUNTER_NAMES.get(name, name) for name in COUNTERS), "most in flight"]


def title(cell: WorkqueueCell) -> str:
    where = " ".join(part for part in (cell.scenario, cell.setting) if part)
    return f"{where}: work items completed per second, by workqueue"


def note(target: TargetReport, cell: WorkqueueCell) -> str:
    """Return a note on which boots are shown, what the figures are evidence of, and what is missing."""
    blocks = ", ".join(dict.fromkeys(f"{each.arm} of block {each.block + 1}" for each in cell.series))
    source = "counters of the kernel" if cell.source == "stats" else "workqueue tracepoints"
    parts = [f"The busiest workqueues in one {cell.phase} repetition, sampled once a second from {source}: {blocks}."]
    if target.emulated:
        parts.append(
            "On an emulated device counts are evidence of the mechanism; seconds and CPU time are not evidence."
        )
    return " ".join([*parts, *(f"{each[:1].upper()}{each[1:]}." for each in cell.notes)])


def rows(cell: WorkqueueCell) -> list[list[str]]:
    return [
        [
            each.workqueue,
            each.arm.value,
            *(_format_counter(counter, each.totals.get(counter)) for counter in COUNTERS),
            str(each.in_flight_max),
        ]
        for each in cell.series
    ]


def _format_counter(counter: str, value: int | None) -> str:
    if value is None:
        return NOTHING
    return f"{value / 1000:.1f}" if counter == "cpu_us" else str(value)
