"""What applies, builds and runs have in common."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, func
from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.messages import Failure


class Job:
    """Columns of everything a worker claims."""

    id: Mapped[int] = mapped_column(primary_key=True, sort_order=-1)
    state: Mapped[JobState] = mapped_column(default=JobState.WAITING, index=True)
    outcome: Mapped[Outcome | None]
    failure: Mapped[Failure | None]
    attempts: Mapped[int] = mapped_column(default=0)
    """How often it was given out."""
    fence: Mapped[int | None] = mapped_column(BigInteger)
    """Of the present or last holder."""
    holder: Mapped[str | None]
    claim_nonce: Mapped[str | None]
    """Of the request that made the present or last claim; knows its repetition."""
    expires_at: Mapped[datetime | None]
    """When the holder's claim ends unless it says that it lives; only the database's clock counts."""
    cancel_requested_at: Mapped[datetime | None]
    nudged_at: Mapped[datetime | None]
    nudges: Mapped[int] = mapped_column(default=0)
    """Messages sent since it was last queued."""
    progress: Mapped[str] = mapped_column(default="")
    progress_done: Mapped[int] = mapped_column(default=0)
    progress_total: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    started_at: Mapped[datetime | None]
    """When it was first claimed."""
    finished_at: Mapped[datetime | None]
