"""Tables of watches, and of the heads that were seen in watched trees."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint, func, text
from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.enums import WatchedHeadState
from wqlab_contracts.messages import CommitRange
from wqlab_contracts.specs import ListWatch, TreeWatch, WatchSpec

from .base import Base, Typed


class Watch(Base):
    """A mailing list or tree that is watched, of the data folder or made over the API.

    The row is kept after its removal: decisions, heads and their history refer to it.
    """

    __tablename__ = "watches"

    name: Mapped[str] = mapped_column(primary_key=True)
    spec: Mapped[ListWatch | TreeWatch] = mapped_column(Typed(WatchSpec))
    """As it was written; `enabled_at` says whether it is enabled."""
    from_file: Mapped[bool]
    """True if the data folder defines it."""
    enabled_at: Mapped[datetime | None]
    """When it was enabled: a list's series that arrive later are taken. Null while it is disabled or removed."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    created_by: Mapped[str]
    changed_at: Mapped[datetime] = mapped_column(server_default=func.now())
    changed_by: Mapped[str]
    removed_at: Mapped[datetime | None]

    due_at: Mapped[datetime] = mapped_column(server_default=func.now())
    """Time of the next lookup of a tree's heads."""
    lookup_id: Mapped[int | None]
    """The lookup that reads a tree's heads now. No foreign key, because lookups are deleted after a day."""
    looked_at: Mapped[datetime | None]
    """When a tree's heads were last read."""
    problem: Mapped[str] = mapped_column(default="", server_default="")
    """Why the last lookup failed; empty if it did not."""

    @property
    def tree_spec(self) -> TreeWatch:
        """Return the spec of a watch of a tree. Raises TypeError for one of a list."""
        if not isinstance(self.spec, TreeWatch):
            raise TypeError(f"watch {self.name} is of a list")
        return self.spec


class WatchedHead(Base):
    """A commit that a branch, or a tag that matches a pattern, pointed to. Rows are kept: none is measured twice."""

    __tablename__ = "watched_heads"
    __table_args__ = (
        UniqueConstraint("watch", "ref", "commit"),
        Index("ix_watched_heads_open", "watch", postgresql_where=text("state IN ('waiting', 'running')")),
        Index(
            "ix_watched_heads_not_in_history",
            "id",
            postgresql_where=text("state = 'measured' AND in_history_at IS NULL"),
        ),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    watch: Mapped[str] = mapped_column(ForeignKey("watches.name"))
    ref: Mapped[str]
    """Branch or pattern of tags, as in the tree's spec."""
    name: Mapped[str]
    """Name of the branch, or of the tag that matches the pattern."""
    commit: Mapped[str] = mapped_column(index=True)
    state: Mapped[WatchedHeadState]
    reason: Mapped[str] = mapped_column(default="")
    seen_at: Mapped[datetime]
    returned_at: Mapped[datetime | None]
    """When the branch was last set back to it."""
    parent_id: Mapped[int | None] = mapped_column(ForeignKey("watched_heads.id"))
    """The head with which it was compared."""
    skipped_by_id: Mapped[int | None] = mapped_column(ForeignKey("watched_heads.id"))
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"), index=True)
    submitted_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    verdicts: Mapped[list[str]] = mapped_column(default=list)
    related: Mapped[CommitRange | None]
    devices: Mapped[dict[str, str]] = mapped_column(default=dict)
    """Target (`plan@device-type`) -> device that measured it."""
    cut: Mapped[str] = mapped_column(default="")
    """Why its figures cannot be compared with those of earlier heads; empty if they can."""
    ranged: Mapped[bool] = mapped_column(default=False)
    """True if the commits since its parent are a range to bisect."""
    in_history_at: Mapped[datetime | None]
    """When its figures were added to the history."""

    @property
    def last_seen_at(self) -> datetime:
        return self.returned_at or self.seen_at
