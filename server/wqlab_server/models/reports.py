"""Table of reports as they were when their submission finished."""

from __future__ import annotations

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base


class KeptReport(Base):
    """A report, written once. A report linked from a mail must not change with later code, artifacts or files."""

    __tablename__ = "kept_reports"

    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id"), primary_key=True)
    document: Mapped[str]
    """`api.report.Report` as JSON text; JSONB would reorder keys and round numbers."""
