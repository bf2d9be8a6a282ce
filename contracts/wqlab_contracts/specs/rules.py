"""Rules by which series on a mailing list are measured."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from ..jsontypes import JsonUtcClock
from .base import Name, Strict

_Prefix = Annotated[str, StringConstraints(pattern=r"^[^\s/][^\s]*$", max_length=300)]
_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=2, max_length=200)]
_Address = Annotated[str, StringConstraints(pattern=r"^[^<>\s@]*@[^<>\s@]+$", max_length=200)]
_FullAddress = Annotated[str, StringConstraints(pattern=r"^[^<>\s@,]+@[^<>\s@,]+$", max_length=200)]
PlanOnType = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}@[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
]
"""What is measured: `plan@device-type`."""


class QuietHours(Strict):
    """Time of each day in which a rule starts nothing, in UTC; it may reach over midnight."""

    begins: JsonUtcClock
    ends: JsonUtcClock

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.begins == self.ends:
            raise ValueError("quiet hours that end when they begin are no time at all; to stop a rule, disable it")
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


class ListRule(Strict):
    """Which series on a list are measured, and what is measured of them.

    Each of `paths`, `subjects` and `authors` that is not empty has to match; only complete series are taken.
    """

    name: Name
    summary: str = Field(default="", max_length=300)
    archive: Name
    """Archive of the list, which has `epochs`."""
    enabled: bool = False
    paths: list[_Prefix] = Field(default_factory=list, max_length=50)
    """Files (`kernel/workqueue.c`) and folders (`fs/xfs/`): a patch must change at least one of them."""
    subjects: list[_Words] = Field(default_factory=list, max_length=50)
    """Words to look for in subjects, regardless of case: the cover letter or a patch must have one of them."""
    authors: list[_Address] = Field(default_factory=list, max_length=200)
    """Senders, by address (`ada@example.org`) or domain (`@example.org`)."""
    only_if_asked: bool = True
    """Take only series whose cover letter asks, by a line `wqlab: test`."""
    targets: list[PlanOnType] = Field(default_factory=list, max_length=16)
    """What is measured: `plan@device-type`."""
    what_it_touches: bool = False
    """Measure what testplans/touches.yaml proposes for the files and functions that a series changes, instead of all
    `targets`; of them only those among `targets`, unless that is empty."""
    tree: Name
    """Kernel tree of the lab to which series are applied."""
    owner: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    """Account whose quota the rule's submissions use."""
    commanders: list[_FullAddress] = Field(default_factory=list, max_length=50)
    """Who may command by replies to the lab's mails about series that the rule took, beside their authors."""
    minutes_a_day: int = Field(default=240, ge=1, le=100_000)
    """Device time, by the quotes of its submissions, that the rule may start within 24 hours."""
    quiet_hours: list[QuietHours] = Field(default_factory=list, max_length=5)

    @model_validator(mode="after")
    def _check_targets(self) -> Self:
        if not self.targets and not self.what_it_touches:
            raise ValueError(
                "targets is empty: the rule has to say what is measured; name targets, or set what_it_touches"
            )
        if not self.only_if_asked and not (self.paths or self.subjects or self.authors):
            raise ValueError(
                "the rule would take every series of the list: name paths, subjects or authors, or set only_if_asked"
            )
        return self
