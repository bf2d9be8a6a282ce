"""Tables of the jobs that KernelCI's scheduler has for the lab."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import ForeignKey, Index, func, text
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base, closed


class KernelCiState(StrEnum):
    """State of a job of KernelCI."""

    SEEN = "seen"
    """Read from the events; its node is to be claimed."""
    CLAIMED = "claimed"
    """The node has the lab's `data.job_id`; a submission is to be made."""
    RUNNING = "running"
    """The submission is not finished."""
    REPORTING = "reporting"
    """The result is to be written to the node."""
    REPORTED = "reported"
    LOST = "lost"
    """Another lab claimed the node, or KernelCI ended it."""


ENDED = frozenset({KernelCiState.REPORTED, KernelCiState.LOST})


class KernelCiCursor(Base):
    """Up to where the events of an API have been read."""

    __tablename__ = "kernelci_cursors"

    url: Mapped[str] = mapped_column(primary_key=True)
    runtime: Mapped[str] = mapped_column(primary_key=True)
    read_until: Mapped[datetime]
    """Latest timestamp of an event that was read."""


class KernelCiJob(Base):
    """A job of KernelCI for this lab. Rows are kept, so that no job is done twice."""

    __tablename__ = "kernelci_jobs"
    __table_args__ = (
        Index("ix_kernelci_jobs_open", "due_at", postgresql_where=text("state NOT IN ('reported', 'lost')")),
    )

    node_id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    """Name of the job in KernelCI."""
    platform: Mapped[str]
    job_id: Mapped[str]
    """What the lab writes as `data.job_id`. Stored before it is written, so that a restart recognises its own claim."""
    definition_url: Mapped[str]
    state: Mapped[KernelCiState] = mapped_column(closed(KernelCiState), default=KernelCiState.SEEN)
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"), index=True)
    result: Mapped[str | None]
    """pass, fail, skip or incomplete."""
    error_code: Mapped[str | None]
    reason: Mapped[str] = mapped_column(default="")
    """Why the result is what it is, or why the job was lost."""
    problem: Mapped[str] = mapped_column(default="")
    """Why the last attempt failed; empty after a success."""
    attempts: Mapped[int] = mapped_column(default=0)
    """Attempts at the current state that failed."""
    seen_at: Mapped[datetime] = mapped_column(server_default=func.now())
    due_at: Mapped[datetime] = mapped_column(server_default=func.now())
    """Time of the next attempt."""
    ended_at: Mapped[datetime | None]
