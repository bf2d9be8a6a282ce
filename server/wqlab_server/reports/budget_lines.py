"""Say in words what became of a submission's budget of blocks. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from wqlab_comparison.words import count
from wqlab_contracts.api.report import TargetReport
from wqlab_contracts.messages.looks import why_held


def budget_lines(budget: int | None, targets: Sequence[TargetReport]) -> list[str]:
    """Return where the blocks went, then for each target that was given some, or none, why; empty without a budget."""
    if budget is None:
        return []
    used = sum(target.blocks_completed for target in targets)
    each = ", ".join(f"{_name(target)} {target.blocks_completed}" for target in targets)
    summary = f"Budget of {count(budget, 'block')}, {used} used: {each}"
    return [f"{summary}. After a look the next blocks go where most decisions are expected per block.", *_why(targets)]


def _why(targets: Sequence[TargetReport]) -> list[str]:
    lines = []
    for target in targets:
        given = [f"after {count(look.blocks, 'block')}: {look.share}" for look in target.looked if look.share]
        # A run that was canceled while it waited keeps its last look.
        if target.outcome is None and (held := why_held(target.looked)):
            given.append(held)
        lines += [f"{_name(target)}, {'; '.join(given)}"] if given else []
    return lines


def _name(target: TargetReport) -> str:
    return f"{target.plan.name} on {target.device_type}"
