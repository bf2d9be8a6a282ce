"""Table of the last tick."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base


class LastTick(Base):
    """When the last tick ended, in one row. Monitoring computes its age."""

    __tablename__ = "last_tick"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, default=1)
    """Always 1."""
    finished_at: Mapped[datetime] = mapped_column(server_default=func.now())
    seconds: Mapped[float]
    """Duration of the tick."""
    running_since: Mapped[datetime] = mapped_column(server_default=func.now())
    """When ticks began to follow each other without a gap."""
