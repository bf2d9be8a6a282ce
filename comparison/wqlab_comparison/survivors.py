"""Withhold verdicts that survivor bias may have caused.

Only boots that finished give figures. If one side failed more often than chance explains, its remaining figures may be
its better ones, so a verdict in favour of that side is withheld.
"""

from __future__ import annotations

from scipy.special import bdtrc

from wqlab_contracts.enums import Question, Verdict

from .boots import Lost
from .judge import Decision
from .words import VERDICT, count

LEVEL = 0.25
"""Level of the sign test. It is this high because it must detect a candidate that lost two of four boots. A run without
losses always passes, so chance withholds few verdicts (docs/comparison.md, "Boots that failed")."""

_NO_DIFFERENCE = frozenset({Verdict.EQUIVALENT, Verdict.BELOW_THRESHOLD})
_FAVOURS_CANDIDATE = _NO_DIFFERENCE | {Verdict.IMPROVEMENT}
_FAVOURS_REFERENCE = _NO_DIFFERENCE | {Verdict.REGRESSION}


def is_imbalanced(more: int, fewer: int) -> bool:
    """Return True if one side lost more pairs than chance explains: the exact one-sided sign test at LEVEL.

    A failure that has nothing to do with the side hits either with probability 1/2, so P(X >= more) is that of
    Binomial(more + fewer, 1/2) (Q. McNemar 1947, in its exact form; a pair is lost to its first failure).
    """
    return more > fewer and float(bdtrc(more - 1, more + fewer, 0.5)) <= LEVEL + 1e-9  # 2 to 0 gives exactly LEVEL


def withhold_verdict(decision: Decision, lost: Lost, question: Question, reference: str, candidate: str) -> Decision:
    """Replace a verdict that lost pairs may have caused by `inconclusive` with the reason; else return `decision`.

    A failed boot counts as one that would have been bad for its side: losses of the candidate may cause an improvement
    or hide a regression, losses of the reference the reverse, and either may cause equivalence. A verdict against the
    side with the losses stays: a candidate that regresses although its worst boots are missing does regress.
    """
    for more, fewer, side, other, favoured in (
        (lost.candidate, lost.reference, candidate, reference, _FAVOURS_CANDIDATE),
        (lost.reference, lost.candidate, reference, candidate, _FAVOURS_REFERENCE),
    ):
        if decision.verdict in favoured and is_imbalanced(more, fewer):
            if question is Question.KERNEL:
                blocks = f"{count(more, 'block')} discarded for its boots, {fewer} for the {other}'s"
                imbalance = f"discards are imbalanced against the {side}: {blocks}"
            else:
                boots = f"{count(more, 'boot')} without it, {fewer} without {other}"
                imbalance = f"missing figures are imbalanced against {side}: {boots}"
            alone = f"{VERDICT[decision.verdict].lower()}: {decision.reason}"
            text = f"{imbalance}; the remaining boots may be its better ones, which alone would give {alone}"
            return Decision(Verdict.INCONCLUSIVE, text)
    return decision
