"""Survivor bias: only boots that came through are figures. Where failures follow one side, its figures are what those
failures left over, and a verdict that they flatter is withheld."""

from __future__ import annotations

from scipy.special import bdtrc

from wqlab_contracts.enums import Question, Verdict

from .boots import Lost
from .judge import Decision
from .words import VERDICT, count

LEVEL = 0.25
"""A guard, not a claim: it must notice a candidate that lost two of four boots, which no stricter level does. Runs that
lose nothing pass it always, so chance withholds few verdicts (docs/comparison.md, "Boots that failed")."""

_THE_SAME = frozenset({Verdict.EQUIVALENT, Verdict.BELOW_THRESHOLD})
_FLATTERS_CANDIDATE = _THE_SAME | {Verdict.IMPROVEMENT}
_FLATTERS_REFERENCE = _THE_SAME | {Verdict.REGRESSION}


def leans(more: int, fewer: int) -> bool:
    """Whether the side that lost `more` pairs lost them beyond chance: the exact one-sided sign test at LEVEL.

    A failure that has nothing to do with the side hits either with probability 1/2, so P(X >= more) is that of
    Binomial(more + fewer, 1/2) (Q. McNemar 1947, in its exact form; a pair is lost to its first failure).
    """
    return more > fewer and float(bdtrc(more - 1, more + fewer, 0.5)) <= LEVEL + 1e-9  # 2 to 0 is LEVEL to the bit


def withheld(decision: Decision, lost: Lost, question: Question, reference: str, candidate: str) -> Decision:
    """`inconclusive`, with the reason in words, in place of a verdict that lost pairs may have made; else `decision`.

    A boot that failed is taken for one that would have been bad for its side: losses of the candidate may make an
    improvement or hide a regression, those of the reference the other way round, and either may make a sameness. What
    stands against the losses stays: a candidate that regresses though its worst boots are missing does regress.
    """
    for more, fewer, side, other, flattered in (
        (lost.candidate, lost.reference, candidate, reference, _FLATTERS_CANDIDATE),
        (lost.reference, lost.candidate, reference, candidate, _FLATTERS_REFERENCE),
    ):
        if decision.verdict in flattered and leans(more, fewer):
            if question is Question.KERNEL:
                blocks = f"{count(more, 'block')} lost to its boots, {fewer} to the {other}'s"
                told = f"discards lean to the {side}: {blocks}"
            else:
                told = f"missing figures lean to {side}: {count(more, 'boot')} without it, {fewer} without {other}"
            alone = f"{VERDICT[decision.verdict].lower()}: {decision.reason}"
            text = f"{told}; what is left may be its better boots, which alone would say {alone}"
            return Decision(Verdict.INCONCLUSIVE, text)
    return decision
