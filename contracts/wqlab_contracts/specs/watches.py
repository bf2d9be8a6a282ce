"""Watches: what the lab measures without a person who submits it, series of a mailing list or new heads of a tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from ..jsontypes import JSON_NUMBER, JsonFloat, JsonInt, JsonUtcClock
from .base import Name, Strict

_Prefix = Annotated[str, StringConstraints(pattern=r"^[^\s/][^\s]*$", max_length=300)]
_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=2, max_length=200)]
_Address = Annotated[str, StringConstraints(pattern=r"^[^<>\s@]*@[^<>\s@]+$", max_length=200)]
_FullAddress = Annotated[str, StringConstraints(pattern=r"^[^<>\s@,]+@[^<>\s@,]+$", max_length=200)]
_BranchName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./+-]*$", min_length=1, max_length=200)
]
_TagPattern = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_*?][A-Za-z0-9_./+*?-]*$", min_length=1, max_length=200)
]
_UNUSABLE = re.compile(r"\.\.|//|/$|\.$|\.lock$")
PlanOnType = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}@[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
]
"""What is measured: `plan@device-type`."""


class QuietHours(Strict):
    """Time of each day in which a watch submits nothing, in UTC; it may reach over midnight."""

    begins: JsonUtcClock
    ends: JsonUtcClock

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.begins == self.ends:
            raise ValueError("quiet hours that end when they begin are no time at all; to stop a watch, disable it")
        return self

    def contains(self, at: datetime) -> bool:
        """Return True if a time, of any zone, is within the quiet hours."""
        now = at.astimezone(UTC).time()
        if self.begins < self.ends:
            return self.begins <= now < self.ends
        return now >= self.begins or now < self.ends


def is_quiet(quiet_hours: Sequence[QuietHours], at: datetime) -> bool:
    """Return True if a time, of any zone, is within quiet hours."""
    return any(hours.contains(at) for hours in quiet_hours)


class _Watch(Strict):
    """Fields of every kind of watch."""

    name: Name
    summary: str = Field(default="", max_length=300)
    enabled: bool = False
    tree: Name
    """Kernel tree of the lab: series are applied to it, heads are commits of it."""
    targets: list[PlanOnType] = Field(default_factory=list, max_length=16)
    """What is measured: `plan@device-type`."""
    owner: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    """Account whose quota the submissions use."""
    minutes_a_day: JsonInt = Field(default=240, ge=1, le=100_000)
    """Device time, by the quotes of its submissions, that may be started within 24 hours."""
    quiet_hours: list[QuietHours] = Field(default_factory=list, max_length=5)
    """Times in which no submission is made. Lists and heads are read nevertheless."""


class ListWatch(_Watch):
    """Series of a mailing list that are measured.

    Each of `paths`, `subjects` and `authors` that is not empty has to match; only complete series are taken.
    """

    kind: Literal["list"]
    archive: Name
    """Archive of the list, which has `epochs`."""
    paths: list[_Prefix] = Field(default_factory=list, max_length=50)
    """Files (`kernel/workqueue.c`) and folders (`fs/xfs/`): a patch must change at least one of them."""
    subjects: list[_Words] = Field(default_factory=list, max_length=50)
    """Words to look for in subjects, regardless of case: the cover letter or a patch must have one of them."""
    authors: list[_Address] = Field(default_factory=list, max_length=200)
    """Senders, by address (`ada@example.org`) or domain (`@example.org`)."""
    only_if_asked: bool = True
    """Take only series whose cover letter asks, by a line `wqlab: test`."""
    what_it_touches: bool = False
    """Measure what testplans/touches.yaml proposes for the files and functions that a series changes, instead of all
    `targets`; of them only those among `targets`, unless that is empty."""
    commanders: list[_FullAddress] = Field(default_factory=list, max_length=50)
    """Who may command by replies to the lab's mails about series that the watch took, beside their authors."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.targets and not self.what_it_touches:
            raise ValueError(
                "targets is empty: the watch has to say what is measured; name targets, or set what_it_touches"
            )
        if not self.only_if_asked and not (self.paths or self.subjects or self.authors):
            raise ValueError(
                "the watch would take every series of the list: name paths, subjects or authors, or set only_if_asked"
            )
        return self


class Batch(StrEnum):
    """What is done with heads that wait while an earlier one is measured."""

    ALL = "all"
    """Each head is measured against the one before."""
    NEWEST = "newest"
    """Only the newest is measured; the others are skipped."""
    RANGE = "range"
    """As `newest`; if the newest differs, the range of commits since the last measured head is recorded."""


class TreeWatch(_Watch):
    """Branches and tags of a repository whose new heads are measured, each against the last one that was measured."""

    kind: Literal["tree"]
    url: str | None = Field(default=None, max_length=500)
    """Repository to look at; null: that of the tree. Its history should share most commits with the tree's."""
    branches: list[_BranchName] = Field(default_factory=list, max_length=20)
    tags: list[_TagPattern] = Field(default_factory=list, max_length=20)
    """Patterns such as `v6.12.*`; the tags that match one are one line of heads, in the order of their versions."""
    targets: list[PlanOnType] = Field(min_length=1, max_length=16)
    """What is measured: `plan@device-type`."""
    parameters: dict[str, str | JsonInt | JsonFloat] = Field(default_factory=dict, max_length=50)
    """Parameters of every target that override those of its plan."""
    blocks: Annotated[int, Field(ge=1, le=100), JSON_NUMBER] | None = None
    priority: JsonInt = Field(default=30, ge=0, le=100)
    """Priority of the submissions; that of people's is 50 unless they say otherwise."""
    every_minutes: JsonInt = Field(default=60, ge=5, le=10_080)
    """Time between two looks."""
    batch: Batch = Batch.NEWEST

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


WatchSpec = Annotated[ListWatch | TreeWatch, Field(discriminator="kind")]
KINDS: dict[str, type[ListWatch | TreeWatch]] = {"list": ListWatch, "tree": TreeWatch}
