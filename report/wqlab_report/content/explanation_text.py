"""Words of what differs beside a primary metric, shared by the formats. Pure."""

from __future__ import annotations

from wqlab_comparison import tables
from wqlab_comparison.differences import NOT_CAUSES
from wqlab_comparison.words import count
from wqlab_contracts.api.explanations import ExplainedComparison
from wqlab_contracts.api.report import TargetReport

HEADING = "What else differs"
NOTHING = "no other count differs by 10 % or more in the same direction in all boots"


def where(explained: ExplainedComparison) -> str:
    """Return the compared cell: `fsync locks_per_flush`, with the settings of a study."""
    cell = " ".join(part for part in (explained.scenario, explained.setting, explained.metric) if part)
    return cell if explained.kernel is None else f"{cell}, against {explained.reference or 'the default'}"


def basis(explained: ExplainedComparison) -> str:
    """Return the boots that the sentences are of."""
    if explained.boots == 0:
        return "in the measured boots"
    return f"{count(explained.boots, 'traced boot')} a side"


def sentences(explained: ExplainedComparison) -> list[str]:
    """Return the differences in words, or that there is none."""
    return explained.sentences or [NOTHING]


def text_lines(target: TargetReport) -> list[str]:
    """Return the section for a mailing list; empty if no primary metric differs.

    That of an instrumented device is empty: the report has the same sentences as where its counts come from.
    """
    explanation = target.explanation
    if explanation is None or target.plan.is_instrumented:
        return []
    if not explanation.comparisons:
        return tables.wrapped(f"{HEADING}: not recorded: {explanation.reason}")
    lines: list[str] = []
    for explained in explanation.comparisons:
        place = f", {where(explained)}" if len(explanation.comparisons) > 1 else ""
        lines += tables.wrapped(f"{HEADING} ({basis(explained)}{place}):")
        for sentence in sentences(explained):
            lines += tables.wrapped(sentence, "* ")
    return [*lines, NOT_CAUSES]
