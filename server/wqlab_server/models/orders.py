"""Table of orders: what sources want to have measured."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint, func, text
from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.enums import OrderState

from .base import Base


class Order(Base):
    """Something that a source wants to have measured: the submission that measures it, or why it waits for one."""

    __tablename__ = "orders"
    __table_args__ = (
        UniqueConstraint("source", "key"),
        Index("ix_orders_open", "source", "id", postgresql_where=text("state IN ('waiting', 'submitted')")),
        Index("ix_orders_watch", "watch", "submitted_at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    source: Mapped[str]
    """Name of the source, as in `sources.SOURCES`."""
    key: Mapped[str]
    """Identifies what is measured within the source, such as the id of a row. At most one order has it."""
    watch: Mapped[str | None] = mapped_column(ForeignKey("watches.name"))
    """Watch whose device time it uses and whose quiet hours it keeps."""
    state: Mapped[OrderState] = mapped_column(default=OrderState.WAITING)
    reason: Mapped[str] = mapped_column(default="")
    """Why it waits, or will not be measured."""
    due_at: Mapped[datetime] = mapped_column(server_default=func.now())
    """Time of the next attempt to submit it."""
    tries: Mapped[int] = mapped_column(default=0)
    """Number of its submissions."""
    quoted_s: Mapped[float] = mapped_column(default=0.0)
    """Device time (seconds) that the quotes of its submissions predict."""
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"), index=True)
    """The last submission."""
    submitted_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    ended_at: Mapped[datetime | None]
