"""The kernels of a walk: a series of which each patch is measured against the one before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from pydantic import Field

from ..enums import Arm
from .apply import WALK_LIMIT
from .base import Failure, GitObject, Message


class StepState(StrEnum):
    """What became of the kernel after a patch."""

    PLANNED = "planned"
    """It is not built yet."""
    MEASURED = "measured"
    """It has boots of its own."""
    IDENTICAL = "identical"
    """It is byte-identical with the kernel before, and shares its boots."""
    NOT_BUILT = "not_built"
    """It does not build."""
    KERNEL_FAILED = "kernel_failed"
    """It does not come through its boots, so that the rest of the run left it out."""


MISSING = frozenset({StepState.PLANNED, StepState.NOT_BUILT, StepState.KERNEL_FAILED})
"""States of a kernel that the next patch is not measured against."""


class WalkStep(Message):
    """The kernel after one patch of a series."""

    patch: int = Field(ge=1, le=WALK_LIMIT)
    subject: str
    commit: GitObject
    build_id: int | None = None
    arm: Arm
    """Arm whose boots are this kernel's. Byte-identical kernels have one arm."""
    state: StepState = StepState.PLANNED
    failure: Failure | None = None
    """Why there is no kernel, or how it failed."""


class Rung(NamedTuple):
    """The comparison of one patch: its kernel with the last one before it that was measured."""

    patch: int
    reference: int
    """Number of the patch before; 0 for the base."""
    reference_arm: Arm
    arm: Arm


def rungs(steps: Sequence[WalkStep]) -> Iterator[Rung]:
    """Yield the comparisons of the patches whose kernels have boots that another kernel does not have."""
    reference, reference_arm = 0, Arm.BASELINE
    for step in steps:
        if step.state in MISSING:
            continue
        if step.arm is not reference_arm:
            yield Rung(step.patch, reference, reference_arm, step.arm)
        reference, reference_arm = step.patch, step.arm


def reference_of(steps: Sequence[WalkStep], patch: int) -> int:
    """Return the number of the patch that `patch` is measured against; 0 for the base."""
    return max((step.patch for step in steps if step.patch < patch and step.state not in MISSING), default=0)
