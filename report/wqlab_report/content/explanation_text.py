"""Words of what differs beside a primary metric, shared by the formats. Pure."""

from __future__ import annotations

from wqlab_comparison.words import count, metric_name
from wqlab_contracts.api.explanations import ExplainedComparison

HEADING = "What else differs"
NOTHING = "no other count differs by 10 % or more beyond its noise"


def where(explained: ExplainedComparison) -> str:
    """Return the compared cell: `fsync locks_per_flush`, with the settings of a study."""
    cell = " ".join(part for part in (explained.scenario, explained.setting, metric_name(explained.metric)) if part)
    return cell if explained.kernel is None else f"{cell}, against {explained.reference or 'the default'}"


def basis(explained: ExplainedComparison) -> str:
    """Return the boots that the sentences are of."""
    if explained.boots == 0:
        return "in the measured boots"
    return f"{count(explained.boots, 'traced boot')} a side"


def sentences(explained: ExplainedComparison) -> list[str]:
    """Return the differences in words, or that there is none."""
    return explained.sentences or [NOTHING]
