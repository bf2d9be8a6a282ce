"""What else differs between two sides of a comparison whose primary metric differs: differences, never causes."""

from __future__ import annotations

from pydantic import Field

from ..enums import Arm, Question
from ..messages import Message
from ..traced_counts import TracedTopic


class TracedDifference(Message):
    """One count or time that differs between the traced boots of two sides."""

    topic: TracedTopic
    name: str
    """Work function, kind of lock, function, task or distance; empty for a topic without names."""
    is_time: bool
    """True for a mean time in microseconds; false for a count."""
    unit: str
    """`us`, `per fsync`, or `per repetition` if the workload counts no operations."""
    reference: list[float]
    """Value of each traced boot of the reference."""
    compared: list[float]
    """Value of each traced boot of the other side."""
    text: str
    """The difference in words, with its figures."""


class ExplainedComparison(Message):
    """What differs beside a primary metric in one scenario."""

    scenario: str
    setting: str
    question: Question
    reference: str
    """`baseline`, or the reference setting."""
    kernel: Arm | None = None
    """Question setting: the kernel of both settings."""
    metric: str
    """The primary metric that differs."""
    boots: int
    """Traced boots a side; 0 if the counts are those of the measured boots, on an instrumented device."""
    sentences: list[str]
    """At most three differences in words, the largest first."""
    differences: list[TracedDifference] = Field(default_factory=list)
    """All differences that were ranked, the largest first."""
    notes: list[str] = Field(default_factory=list)
    """What was not counted, and why."""


class Explanation(Message):
    """What differs beside the primary metrics of a run."""

    run_id: int | None = None
    """Run of the traced boots; null if there is none."""
    comparisons: list[ExplainedComparison] = Field(default_factory=list)
    reason: str = ""
    """Why nothing was recorded; empty if something was."""
