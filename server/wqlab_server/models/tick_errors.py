"""Table of errors in single items of the tick."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, func
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base

TICK_ITEM_KINDS = (
    *("apply", "build", "run", "submission", "device", "health_check", "device_check", "offers"),
    *("retention", "last_tick", "audit", "outbox", "lists", "watches", "history", "bisections"),
    *("order", "source", "forges", "forge_head", "claims", "canary"),
)


class TickError(Base):
    """An item whose processing raised an exception in a tick. Rows are kept, because /metrics counts them."""

    __tablename__ = "tick_faults"

    what: Mapped[str] = mapped_column(primary_key=True)
    """One of `TICK_ITEM_KINDS`."""
    item: Mapped[str] = mapped_column(primary_key=True)
    """Id or name of the item."""
    count: Mapped[int] = mapped_column(BigInteger)
    """Number of errors."""
    error: Mapped[str]
    """The last error."""
    last_at: Mapped[datetime] = mapped_column(server_default=func.now())
