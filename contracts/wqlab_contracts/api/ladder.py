"""REST resources of a walk: a ladder with a rung for each patch of the series."""

from __future__ import annotations

from pydantic import Field

from ..enums import Arm, Verdict
from ..messages import Failure, GitObject, Message
from ..messages.walk import StepState
from .comparison import Comparison


class LadderRung(Message):
    """One patch of a series, measured against the last kernel before it that was measured."""

    patch: int
    """From 1."""
    subject: str
    commit: GitObject
    build_id: int | None
    """Build of the kernel after this patch."""
    arm: Arm
    """Arm of the boots of this kernel; byte-identical kernels share one."""
    state: StepState
    reference: int
    """Number of the patch that it was measured against; 0 for the base."""
    verdict: Verdict | None
    """Verdict of the primary metric over all scenarios; `failed` without a kernel that runs, null if not known yet."""
    headline: str
    """The verdict in one sentence, with its figures."""
    comparisons: list[Comparison] = Field(default_factory=list)
    """Empty if the kernels were not compared, and for byte-identical ones."""
    failure: Failure | None = None
    """Why the kernel does not build, or how it failed."""


class Ladder(Message):
    """The patches of a series, in order."""

    rungs: list[LadderRung]
    boots_per_block: int
    """Boots of the first block: one for each kernel that differs."""
    sentence: str
    """The patches that change something, and those that break the series, in one sentence."""
