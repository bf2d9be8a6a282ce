"""REST resources of watched trees and their heads."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ..enums import Verdict, WatchedHeadState
from ..messages import CommitRange, Message
from ..specs import WatchedTree


class HeadRange(Message):
    """Range of commits to bisect: at least one of them changed the result."""

    good: str
    """Commit of the last head that was measured before."""
    bad: str
    """Commit of the head that differs from it."""
    commits: int | None
    """Number of commits that `bad` has on top of `good`."""
    skipped: list[str]
    """Heads between the two that were not measured, oldest first."""
    descends: bool
    """False if the branch was rewritten, so that `bad` does not descend from `good`."""


class HeadRef(Message):
    """A head that another one refers to."""

    id: int
    name: str
    commit: str


class WatchedHead(Message):
    """A commit that a branch or tag of a watched tree pointed to."""

    id: int
    ref: str
    """Branch, or pattern of tags, that is watched."""
    name: str
    """Branch or tag."""
    commit: str
    state: WatchedHeadState
    reason: str
    """Why it is in this state; empty if there is nothing to say."""
    seen_at: datetime
    """When it was first seen."""
    returned_at: datetime | None
    """When the branch was last set back to it."""
    compared_with: HeadRef | None
    """Last head measured before, which is the baseline."""
    skipped_by: HeadRef | None
    """Head that was measured instead of this one; null if this one was not skipped."""
    submission_id: int | None
    submitted_at: datetime | None
    ended_at: datetime | None
    verdicts: list[Verdict] = Field(default_factory=list)
    """Verdicts of its targets."""
    related: CommitRange | None
    """Number of commits between it and its baseline."""
    devices: dict[str, str]
    """Target -> device that measured it."""
    cut: str
    """Why the figures are not comparable with those of the previous head: another device; empty if they are."""
    range: HeadRange | None


class WatchedTreeView(Message):
    """A watched tree."""

    spec: WatchedTree
    enabled: bool
    from_file: bool
    """True if it is of the data folder, where it has to be changed."""
    url: str
    """Repository that is looked at."""
    looked_at: datetime | None
    """When its heads were last read."""
    next_look_at: datetime | None
    """null while it is disabled."""
    problem: str
    """Why the last look failed; empty if it did not."""
    waiting_for: str
    """Why no submission is made although heads wait; empty otherwise."""
    heads: dict[WatchedHeadState, int]
    """Number of heads in each state."""
    created_by: str
    created_at: datetime
    changed_at: datetime
