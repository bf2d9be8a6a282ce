"""Withhold verdicts on modelled figures that the validation does not cover, or that are within the noise floor."""

from __future__ import annotations

from wqlab_contracts.enums import Evidence, Question, Verdict
from wqlab_contracts.units import effect_unit

from .judge import Decision, Measured
from .questions import Asked, TargetFacts
from .words import amount

UNKNOWN = "not validated: samples alone do not tell the costs by which they were modelled"
_DIFFERENT = frozenset({Verdict.IMPROVEMENT, Verdict.REGRESSION, Verdict.BELOW_THRESHOLD})


def not_validated(asked: Asked, target: TargetFacts | None) -> str:
    """Return why verdicts of a modelled figure are withheld; empty if they are stated, and for all other figures."""
    if asked.facts.evidence is not Evidence.MODELLED:
        return ""
    return UNKNOWN if target is None else target.not_validated.get(asked.cell.metric, UNKNOWN)


def withhold_modelled(decision: Decision, asked: Asked, figures: Measured, target: TargetFacts | None) -> Decision:
    """Replace the verdict on a modelled figure by `withheld` with the reason if the validation does not cover it.

    Nor is an effect between kernels a verdict that is no larger than that of a control whose kernel differs by nops
    only. Verdicts that no figure gave, such as `unsupported`, stay.
    """
    if asked.facts.evidence is not Evidence.MODELLED or decision.verdict is None:
        return decision
    if why := not_validated(asked, target):
        return Decision(Verdict.WITHHELD, f"{why}; {decision.reason}")
    cell = asked.cell
    floor = target.floors.get((cell.scenario, cell.setting, cell.metric)) if target else None
    between_kernels = asked.question is Question.KERNEL and decision.verdict in _DIFFERENT
    if floor is None or not between_kernels or figures.effect is None or abs(figures.effect) > floor:
        return decision
    limit = amount(floor, effect_unit(asked.facts.scale, asked.facts.unit))
    return Decision(Verdict.WITHHELD, f"within the noise floor of {limit}, the effect of nops alone; {decision.reason}")
