"""What a submission's report said when it was finished."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, func
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base


class KeptReport(Base):
    """Written once. What is linked from a mail must say the same whatever later happens to code, artifacts or files."""

    __tablename__ = "kept_reports"

    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id"), primary_key=True)
    document: Mapped[str]
    """api.Report as JSON, to the byte (JSONB would sort and round as it likes)."""
    kept_at: Mapped[datetime] = mapped_column(server_default=func.now())
