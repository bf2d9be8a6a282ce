"""Titles, notes and tables of how long work items waited, and where they started. Pure."""

from __future__ import annotations

from wqlab_comparison.words import count, number, time
from wqlab_contracts.api.report import TargetReport
from wqlab_contracts.api.waits import WaitCell, WaitedWork

from ..plain_text import NOTHING

HEADING = "How long work items waited, and where they started"
BUCKETS = (
    "p50 and p99 of the time from queueing to start are upper ends of histogram buckets: the time is between half of "
    "the figure and the figure."
)
PLACES = "Places are seen from the CPU that queued the work item; each includes the ones before it."
ALL_WORKS = "All work items of the device are counted, also those of the repetition's preparation."
EMULATED = "On an emulated device counts and places are evidence of the mechanism, and times are values only."
BRIEF_NOTE = "p50, p99: upper ends of buckets; places: %"
BRIEF_FUNCTIONS = 2
"""Functions in a mail."""


def header(target: TargetReport) -> list[str]:
    places = ["on its CPU", f"in its {_level(target)}", "on its node"]
    return ["function", "kernel", "work items", "p50", "p99", *places]


def title(cell: WaitCell) -> str:
    where = " ".join(part for part in (cell.scenario, cell.setting) if part)
    return f"{where}: work functions that differ, in {_repetitions(cell)}"


def note(target: TargetReport) -> str:
    """Return what the figures of all tables are, and what they are evidence of."""
    return " ".join([BUCKETS, PLACES, ALL_WORKS, *([EMULATED] if target.emulated else [])])


def cell_notes(cell: WaitCell) -> list[str]:
    """Return what is missing in a table."""
    shown = len({work.function for work in cell.works})
    hidden = cell.functions - shown if shown else 0
    more = [f"{count(hidden, 'other function')} not shown"] if hidden else []
    return [f"{each[:1].upper()}{each[1:]}." for each in [*more, *cell.notes]]


def rows(cell: WaitCell, most: int | None = None) -> list[list[str]]:
    """Return the rows of a table, of the `most` busiest functions."""
    functions = list(dict.fromkeys(work.function for work in cell.works))[:most]
    return [_row(work) for work in cell.works if work.function in functions]


def brief_header(target: TargetReport) -> list[str]:
    """Return the header of a narrow table."""
    return ["", "", "items", "p50", "p99", "same CPU", f"same {_level(target)}", "same node"]


def brief_rows(cell: WaitCell) -> list[list[str]]:
    """Return the rows of a narrow table of the busiest functions that differ."""
    return [[text.removeprefix("<= ").removesuffix(" %") for text in row] for row in rows(cell, BRIEF_FUNCTIONS)]


def _row(work: WaitedWork) -> list[str]:
    return [
        work.function,
        work.arm.value,
        number(round(work.items, 1)),
        f"<= {time(work.p50_us, 'us')}",
        f"<= {time(work.p99_us, 'us')}",
        *(NOTHING if share is None else f"{share:.1f} %" for share in (work.same_cpu, work.same_l3, work.same_node)),
    ]


def _level(target: TargetReport) -> str:
    topology = target.environment.topology if target.environment else None
    return topology.last_level if topology else "L3"


def _repetitions(cell: WaitCell) -> str:
    """Return the traced repetitions: `2 traced repetitions of each kernel`."""
    numbers = cell.repetitions
    if len(numbers) > 1 and len(set(numbers.values())) == 1:
        return f"{count(next(iter(numbers.values())), 'traced repetition')} of each kernel"
    each = [f"{count(number_of, 'traced repetition')} of the {arm}" for arm, number_of in sorted(numbers.items())]
    return " and ".join(each) or "no traced repetition"
