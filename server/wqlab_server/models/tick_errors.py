"""What the tick could not do."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, func
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base

TICK_ITEM_KINDS = ("apply", "build", "run", "submission", "device", "health_check", "device_check", "offers")


class TickFault(Base):
    """An item that raised in a tick, how often and how last. The rows stay: /metrics counts them."""

    __tablename__ = "tick_faults"

    what: Mapped[str] = mapped_column(primary_key=True)
    """One of `TICK_ITEM_KINDS`."""
    item: Mapped[str] = mapped_column(primary_key=True)
    """Its id or name."""
    count: Mapped[int] = mapped_column(BigInteger)
    error: Mapped[str]
    """Of the last time."""
    first_at: Mapped[datetime] = mapped_column(server_default=func.now())
    last_at: Mapped[datetime] = mapped_column(server_default=func.now())
