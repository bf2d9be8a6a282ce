"""Branches and tags of kernel trees whose new heads are measured."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from ..jsontypes import JSON_NUMBER, JsonFloat, JsonInt
from .base import Name, Strict
from .rules import PlanOnType, QuietHours

BranchName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./+-]*$", min_length=1, max_length=200)]
TagPattern = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_*?][A-Za-z0-9_./+*?-]*$", min_length=1, max_length=200)
]
_UNUSABLE = re.compile(r"\.\.|//|/$|\.$|\.lock$")


class Batch(StrEnum):
    """What is done with heads that wait while an earlier one is measured."""

    ALL = "all"
    """Each head is measured against the one before."""
    NEWEST = "newest"
    """Only the newest is measured; the others are skipped."""
    RANGE = "range"
    """As `newest`; if the newest differs, the range of commits since the last measured head is recorded."""


class WatchedTree(Strict):
    """A repository in which the lab looks for new heads; each is measured against the last one that was measured."""

    name: Name
    summary: str = Field(default="", max_length=300)
    enabled: bool = True
    tree: Name
    """Kernel tree of the lab that the heads are commits of; a git repository."""
    url: str | None = Field(default=None, max_length=500)
    """Repository to look at; null: that of the tree. Its history should share most commits with the tree's."""
    branches: list[BranchName] = Field(default_factory=list, max_length=20)
    tags: list[TagPattern] = Field(default_factory=list, max_length=20)
    """Patterns such as `v6.12.*`; the tags that match one are one line of heads, in the order of their versions."""
    targets: list[PlanOnType] = Field(min_length=1, max_length=16)
    """What is measured: `plan@device-type`."""
    parameters: dict[str, str | JsonInt | JsonFloat] = Field(default_factory=dict, max_length=50)
    """Parameters of every target that override those of its plan."""
    blocks: Annotated[int, Field(ge=1, le=100), JSON_NUMBER] | None = None
    priority: JsonInt = Field(default=30, ge=0, le=100)
    """Priority of the submissions; that of people's is 50 unless they say otherwise."""
    owner: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    """Account whose quota the submissions use."""
    every_minutes: JsonInt = Field(default=60, ge=5, le=10_080)
    """Time between two looks."""
    batch: Batch = Batch.NEWEST
    minutes_a_day: JsonInt = Field(default=240, ge=1, le=100_000)
    """Device time, by the quotes of its submissions, that may be started within 24 hours."""
    quiet_hours: list[QuietHours] = Field(default_factory=list, max_length=5)
    """Times in which no submission is made; heads are looked for nevertheless."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.branches and not self.tags:
            raise ValueError("name branches, tags or both")
        for kind, names in (("branches", self.branches), ("tags", self.tags), ("targets", self.targets)):
            if len(set(names)) != len(names):
                raise ValueError(f"{kind} lists a name twice")
        if set(self.branches) & set(self.tags):
            raise ValueError("a branch and a tag pattern are equal; watch them as two trees")
        for name in (*self.branches, *self.tags):
            if _UNUSABLE.search(name):
                raise ValueError(f"{name!r} is no name of a branch or tag")
        return self

    @property
    def ref_patterns(self) -> list[str]:
        """Return the full names of the branches and tag patterns, for `git ls-remote`."""
        return [f"refs/heads/{name}" for name in self.branches] + [f"refs/tags/{name}" for name in self.tags]
