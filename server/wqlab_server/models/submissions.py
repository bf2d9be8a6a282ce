"""Tables of submissions and events."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Computed, ForeignKey, Index, Text, UniqueConstraint, false, func, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column, relationship

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import EventKind, Outcome, SubmissionState
from wqlab_contracts.messages import Failure

from .base import Base

if TYPE_CHECKING:
    from .builds import SubmissionBuild
    from .job import Apply
    from .runs import Run


class Submission(Base):
    """A user's request to test a series, or a tree without a series, on targets."""

    __tablename__ = "submissions"
    __table_args__ = (
        UniqueConstraint("owner", "idempotency_key"),
        Index("ix_submissions_unfinished", "id", postgresql_where=text("state <> 'finished'")),
        Index("ix_submissions_noise_control", "id", postgresql_where=text("noise_control")),
        # For the filters and sort orders of lists.
        Index("ix_submissions_owner", "owner", "id"),
        Index("ix_submissions_tree", "tree", "id"),
        Index("ix_submissions_title", "title", "id"),
        Index("ix_submissions_priority", "priority", "id"),
        Index("ix_submissions_outcome", "outcome", "id"),
        Index("ix_submissions_created_at", "created_at"),
        Index("ix_submissions_ended", text("coalesce(finished_at, 'infinity')"), "id"),
        Index("ix_submissions_facets", "facets", postgresql_using="gin"),
        Index("ix_submissions_search", "search", postgresql_using="gin", postgresql_ops={"search": "gin_trgm_ops"}),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    request: Mapped[SubmissionRequest]
    owner: Mapped[str]
    idempotency_key: Mapped[str | None]
    retry_of: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"))
    title: Mapped[str] = mapped_column(default="")
    series_key: Mapped[str] = mapped_column(default="", index=True)
    author: Mapped[str] = mapped_column(default="")
    """Author of the series' first patch."""
    version: Mapped[int | None]
    """Version of the series from the mails' subjects; None for a branch."""
    tree: Mapped[str]
    priority: Mapped[int]
    noise_control: Mapped[bool] = mapped_column(server_default=false(), default=False)
    """True if the series is the control series of the data folder: its effects are noise floors."""
    facets: Mapped[list[str]] = mapped_column(ARRAY(Text), default=list)
    """Filter terms, written by `submissions.service.facets`. A copy of data in the request and runs, which have no
    index that could find the term among 100,000 submissions."""
    search: Mapped[str] = mapped_column(
        Computed("title || chr(10) || series_key || chr(10) || author || chr(10) || owner", persisted=True),
        deferred=True,
    )
    state: Mapped[SubmissionState] = mapped_column(default=SubmissionState.APPLYING)
    outcome: Mapped[Outcome | None]
    failure: Mapped[Failure | None]
    exit_code: Mapped[int | None]
    """Exit code of `wqlab submit --wait`; set with the outcome."""
    cancel_requested_at: Mapped[datetime | None]
    event_seq: Mapped[int] = mapped_column(default=0)
    """Number of the last event; the row lock keeps the numbers without gaps."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    finished_at: Mapped[datetime | None]
    pinned_at: Mapped[datetime | None]
    """When a user pinned the submission; retention deletes nothing that a pinned one needs."""
    pinned_by: Mapped[str | None]
    linked_at: Mapped[datetime | None]
    """When its report was last read by its permanent link, to the hour; retention counts the age from then."""

    apply: Mapped[Apply] = relationship(lazy="raise", uselist=False, viewonly=True)
    builds: Mapped[list[SubmissionBuild]] = relationship(lazy="raise", order_by="SubmissionBuild.id")
    runs: Mapped[list[Run]] = relationship(lazy="raise", order_by="Run.id", viewonly=True)


class Event(Base):
    """One event of a submission's event stream."""

    __tablename__ = "events"

    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    kind: Mapped[EventKind]
    build_id: Mapped[int | None]
    run_id: Mapped[int | None]
    boot_id: Mapped[int | None]
    data: Mapped[dict[str, Any]]
