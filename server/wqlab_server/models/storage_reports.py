"""Table of what uses storage on each machine of the lab."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func
from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.messages.storage import StorageArea

from .base import Base


class StorageReport(Base):
    """The newest report of one machine; the server's own has the machine name `server`."""

    __tablename__ = "storage_reports"

    lab: Mapped[str] = mapped_column(primary_key=True)
    """Lab of a token that is bound to one; empty for the others."""
    machine: Mapped[str] = mapped_column(primary_key=True)
    areas: Mapped[list[StorageArea]]
    reported_at: Mapped[datetime] = mapped_column(server_default=func.now())
