"""Columns that applies, builds, runs, lookups and list reads have in common."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, func
from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.messages import Failure


class Job:
    """Columns of a job, which workers claim."""

    id: Mapped[int] = mapped_column(primary_key=True, sort_order=-1)
    state: Mapped[JobState] = mapped_column(default=JobState.WAITING, index=True)
    outcome: Mapped[Outcome | None]
    failure: Mapped[Failure | None]
    attempts: Mapped[int] = mapped_column(default=0)
    """Number of times the job was claimed."""
    fence: Mapped[int | None] = mapped_column(BigInteger)
    """Fence of the current or last holder."""
    holder: Mapped[str | None]
    claim_nonce: Mapped[str | None]
    """Nonce of the request that made the current or last claim; identifies a repeated request."""
    expires_at: Mapped[datetime | None]
    """When the holder's claim expires without a heartbeat, by the database's clock."""
    cancel_requested_at: Mapped[datetime | None]
    nudged_at: Mapped[datetime | None]
    nudges: Mapped[int] = mapped_column(default=0)
    """Number of messages sent since the job was last queued."""
    progress: Mapped[str] = mapped_column(default="")
    progress_done: Mapped[int] = mapped_column(default=0)
    progress_total: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    started_at: Mapped[datetime | None]
    """When the job was first claimed."""
    finished_at: Mapped[datetime | None]
