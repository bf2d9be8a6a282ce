"""Decide at a look whether a run stops.

A run stops when each of its primary comparisons is decided, or when further blocks would probably decide none of the
others (futility). Futility is not binding: no level is gained by it, so a run may also go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from wqlab_contracts.enums import Role, Verdict
from wqlab_contracts.messages.looks import LookReason, LookRecord

from . import effect, looks
from .compare import Answer, answers
from .power import LEAST_BLOCKS, chance_of_decision
from .questions import TargetFacts
from .samples import Samples
from .significance import ALPHA
from .words import count

FUTILE = 0.1
"""A comparison is given up if the last look decides it with a smaller probability."""
_DIFFERENCE = frozenset({Verdict.IMPROVEMENT, Verdict.REGRESSION, Verdict.BELOW_THRESHOLD})


def look_at(samples: Samples | None, targets: Sequence[TargetFacts], at: tuple[str, str], blocks: int) -> LookRecord:
    """Look at the run of the target `at` (plan and device type), which has so many blocks.

    `samples` has the boots of all runs of the submission up to their last looks, because they share the families of
    tests. Raises SamplesError for samples that contradict themselves.
    """
    target = next(each for each in targets if (each.plan.name, each.device_type) == at)
    primaries = [
        answer
        for answer in answers(samples, targets)
        if answer.target is target and answer.asked.facts.role is Role.PRIMARY
    ]
    return decide_look(primaries, target.looks, blocks)


def decide_look(primaries: Sequence[Answer], planned: Sequence[int], blocks: int) -> LookRecord:
    """Return the result of a look after so many blocks. `planned`: all looks of the run; `primaries`: its answers."""
    closed = Counter(_verdict(each) for each in primaries if not _is_open(each))
    undecided = [each for each in primaries if _is_open(each)]
    differences, equivalent = sum(closed[each] for each in _DIFFERENCE), closed[Verdict.EQUIVALENT]
    decided = differences + equivalent
    further = [number for number in planned if number > blocks]
    expected = 0.0
    if not undecided and decided:
        reason = LookReason.EFFECT if differences else LookReason.EQUIVALENT
        text = _describe(differences, equivalent)
    elif not undecided:
        reason, text = LookReason.FUTILE, "no primary metric can be decided here"
    elif not further:
        reason, text = LookReason.LAST, f"{_of(len(undecided), len(primaries))} undecided"
    else:
        taken = len([number for number in looks.with_share(planned) if number <= blocks])
        at_last = max(_chance(each, further[-1], looks.share(taken + len(further) - 1)) for each in undecided)
        expected = sum(_chance(each, further[0], looks.share(taken)) for each in undecided)
        reason, text = LookReason.OPEN, f"{_of(len(undecided), len(primaries))} undecided"
        if at_last < FUTILE and blocks >= LEAST_BLOCKS:
            reason = LookReason.FUTILE
            text += f", and {further[-1]} blocks would probably not decide (chance {at_last * 100:.0f} %)"
    return LookRecord(
        blocks=blocks,
        reason=reason,
        text=text,
        decided=decided,
        undecided=len(undecided),
        expected_decisions=round(expected, 6),
    )


def _verdict(answer: Answer) -> Verdict | None:
    """Return the verdict that counts as decided; a change without a better direction is below no threshold."""
    verdict = answer.decision.verdict
    return Verdict.BELOW_THRESHOLD if verdict is None else verdict


def _is_open(answer: Answer) -> bool:
    """Return True if further blocks may give a verdict: there are figures, and a test of them is possible."""
    return (
        answer.decision.verdict is Verdict.INCONCLUSIVE
        and answer.figures.differences is not None
        and not answer.figures.undecidable
    )


def _chance(answer: Answer, blocks: int, share: float) -> float:
    """Return the probability that a look after so many blocks decides the comparison, given what was seen."""
    figures = answer.figures
    assert figures.differences is not None  # noqa: S101 - the answer is open
    bounds = effect.bounds(figures.delta, answer.asked.facts.scale)
    levels = (ALPHA * share / answer.adjusted.family, ALPHA * share)
    # A difference that is not shown yet is worth showing, also if its relevance will stay open.
    is_shown = answer.adjusted.p_adjusted is not None and answer.adjusted.p_adjusted <= ALPHA
    return chance_of_decision(
        figures.differences, figures.middle, bounds, blocks, levels, spread=figures.spread, only_relevant=is_shown
    )


def _describe(differences: int, equivalent: int) -> str:
    if differences + equivalent == 1:
        return "effect found" if differences else "no relevant effect"
    if not differences:
        return f"no relevant effect in {count(equivalent, 'primary comparison')}"
    rest = f", {equivalent} without a relevant effect" if equivalent else ""
    return f"effect found in {differences} of {count(differences + equivalent, 'primary comparison')}{rest}"


def _of(part: int, whole: int) -> str:
    return f"{part} of {count(whole, 'primary comparison')}"
