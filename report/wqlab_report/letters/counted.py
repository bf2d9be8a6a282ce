"""The section of a letter that explains exact counts or modelled time, and names the code that they come from. Pure."""

from __future__ import annotations

from wqlab_comparison import words
from wqlab_contracts.api.report import TargetReport
from wqlab_contracts.enums import Question, Role

from ..content import cells, instrument_tables, model_text
from . import lines

SENTENCES = 6
"""Most lines about the code that counts come from."""
COUNTS = "Exact counts of instructions and cache lines: no times, and no contention, prefetch or bandwidth."
MODEL = (
    "Figures in virtual time, from stated costs of cache lines and waiting. What the costs leave out, a model cannot "
    "tell; never quote them as measured."
)


def section(target: TargetReport) -> list[str]:
    """Return the section, without the table of its figures; nothing for devices that neither count nor model."""
    if not target.plan.is_instrumented:
        return []
    what = [*lines.paragraph(COUNTS)]
    if target.plan.is_modelled:
        costs = model_text.costs(target)
        what = [*lines.paragraph(f"{costs[:1].upper()}{costs[1:]}."), *lines.paragraph(MODEL)]
    found = instrument_tables.by_change(target)
    where = list(found[0].sentences) if found else []
    heading = lines.paragraph(f"{instrument_tables.HEADING} ({instrument_tables.basis(found[0])}):") if where else []
    return [*what, *lines.paragraph(_floors(target)), *heading, *lines.bullets(where, SENTENCES)]


def _floors(target: TargetReport) -> str:
    """Return the noise floor of each judged count or modelled figure."""
    judged = [cell for cell in cells.judged(target.comparisons) if cell.role is Role.PRIMARY]
    kernels = [cell for cell in judged if cell.question is Question.KERNEL]
    floors = {
        f"{words.metric(cell)} {floor.removeprefix('noise floor ')}": None
        for cell in kernels
        if (floor := instrument_tables.noise_floor(target, cell))
    }
    return f"Noise floor, a control series of nops: {', '.join(floors)}." if floors else ""
