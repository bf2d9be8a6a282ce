"""The section of a letter that explains exact counts or modelled time, and names the code that they come from. Pure."""

from __future__ import annotations

from wqlab_comparison import words
from wqlab_contracts.api.report import TargetReport
from wqlab_contracts.enums import Question, Role

from ..content import cells, instrument_tables, model_text
from . import lines

SENTENCES = 6
"""Most lines about the code that counts come from."""
COUNTS = (
    "Exact counts of instructions and cache lines, no times: contention, prefetch and bandwidth do not show. Both "
    "boots of a pair have one seed, which shifts addresses."
)
MODEL = (
    "times that instructions, cache lines, interrupts and wakeups are stated to take. What they leave out does not "
    "show: do not quote a modelled figure as measured. Both boots of a pair have one seed, which shifts addresses and "
    "starts."
)


def section(target: TargetReport) -> list[str]:
    """Return the section, without the table of its figures; nothing for devices that neither count nor model."""
    if not target.plan.is_instrumented:
        return []
    what = [*lines.paragraph(COUNTS)]
    if target.plan.is_modelled:
        costs = model_text.costs(target)
        what = lines.paragraph(f"{costs[:1].upper()}{costs[1:]}, the {MODEL}", 5)
    found = instrument_tables.by_change(target)
    where = list(found[0].sentences) if found else []
    heading = lines.paragraph(f"{instrument_tables.HEADING} ({instrument_tables.basis(found[0])}):") if where else []
    return [*what, *lines.paragraph(_floors(target)), *heading, *lines.bullets(where, SENTENCES)]


def _floors(target: TargetReport) -> str:
    """Return by how much a series that only adds nops changes each judged count or modelled figure."""
    judged = [cell for cell in cells.judged(target.comparisons) if cell.role is Role.PRIMARY]
    kernels = [cell for cell in judged if cell.question is Question.KERNEL]
    floors = {
        f"{words.metric(cell)} {floor.removeprefix('noise floor ')}": None
        for cell in kernels
        if (floor := instrument_tables.noise_floor(target, cell))
    }
    return f"Noise floor (the change by a series that only adds nops): {', '.join(floors)}." if floors else ""
