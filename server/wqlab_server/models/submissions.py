"""What users asked for, its way to exact source trees, and its events."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint, func, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from wqlab_contracts.api import SubmissionRequest
from wqlab_contracts.enums import EventKind, Outcome, SubmissionState
from wqlab_contracts.messages import ApplyResult, Failure
from wqlab_contracts.specs import Tree

from .base import Base
from .job import Job

if TYPE_CHECKING:
    from .builds import SubmissionBuild
    from .runs import Run


class Submission(Base):
    __tablename__ = "submissions"
    __table_args__ = (
        UniqueConstraint("owner", "idempotency_key"),
        Index("ix_submissions_unfinished", "id", postgresql_where=text("state <> 'finished'")),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    request: Mapped[SubmissionRequest]
    owner: Mapped[str] = mapped_column(index=True)
    idempotency_key: Mapped[str | None]
    retry_of: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"))
    title: Mapped[str] = mapped_column(default="")
    series_key: Mapped[str] = mapped_column(default="", index=True)
    tree: Mapped[str]
    priority: Mapped[int]
    state: Mapped[SubmissionState] = mapped_column(default=SubmissionState.APPLYING)
    outcome: Mapped[Outcome | None]
    failure: Mapped[Failure | None]
    exit_code: Mapped[int | None]
    """How `wqlab submit --wait` ends; set with the outcome."""
    cancel_requested_at: Mapped[datetime | None]
    event_seq: Mapped[int] = mapped_column(default=0)
    """Number of its last event (the row lock makes the numbers dense)."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    finished_at: Mapped[datetime | None]

    apply: Mapped[Apply] = relationship(back_populates="submission", lazy="raise", uselist=False)
    builds: Mapped[list[SubmissionBuild]] = relationship(lazy="raise", order_by="SubmissionBuild.id")
    runs: Mapped[list[Run]] = relationship(back_populates="submission", lazy="raise", order_by="Run.id")


class Apply(Job, Base):
    """From what was submitted to exact source trees. Without a submission: the lab's own, for the golden kernel."""

    __tablename__ = "applies"

    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"), unique=True)
    tree: Mapped[Tree]
    toolchain: Mapped[str]
    result: Mapped[ApplyResult | None]

    submission: Mapped[Submission | None] = relationship(back_populates="apply", lazy="raise")


class Event(Base):
    __tablename__ = "events"

    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    kind: Mapped[EventKind]
    build_id: Mapped[int | None]
    run_id: Mapped[int | None]
    boot_id: Mapped[int | None]
    data: Mapped[dict[str, Any]]
