"""Tables of samples, findings, unsupported cells, boot values and comparisons."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.api.report import Comparison as ComparisonData
from wqlab_contracts.enums import Arm, FindingKind, NotMeasuredCause, Question, Role, Verdict
from wqlab_contracts.messages import StackFrame

from .base import Base


class Sample(Base):
    """One value of one metric in one repetition."""

    __tablename__ = "samples"
    __table_args__ = (Index("ix_samples_run_id", "run_id"),)

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"))
    boot_id: Mapped[int] = mapped_column(ForeignKey("boots.id"), primary_key=True)
    scenario: Mapped[str] = mapped_column(primary_key=True)
    setting: Mapped[str] = mapped_column(primary_key=True)
    repetition: Mapped[int] = mapped_column(primary_key=True)
    metric: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[float]
    warmup: Mapped[bool]


class Finding(Base):
    """A kernel report that a detector found on a boot's console."""

    __tablename__ = "findings"
    __table_args__ = (UniqueConstraint("boot_id", "kind", "console_offset", "title"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), index=True)
    boot_id: Mapped[int] = mapped_column(ForeignKey("boots.id"))
    kind: Mapped[FindingKind]
    title: Mapped[str]
    excerpt: Mapped[str]
    console_offset: Mapped[int] = mapped_column(BigInteger)
    fatal: Mapped[bool]
    stack: Mapped[tuple[StackFrame, ...]] = mapped_column(server_default="[]")
    defect: Mapped[str] = mapped_column(server_default="")
    at: Mapped[datetime]


class Unsupported(Base):
    """A setting (`metric` is null) or metric that a boot did not measure, with the cause."""

    __tablename__ = "unsupported"
    __table_args__ = (UniqueConstraint("boot_id", "scenario", "setting", "metric", postgresql_nulls_not_distinct=True),)

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), index=True)
    boot_id: Mapped[int] = mapped_column(ForeignKey("boots.id"))
    arm: Mapped[Arm]
    scenario: Mapped[str]
    setting: Mapped[str]
    metric: Mapped[str | None]
    cause: Mapped[NotMeasuredCause]
    reason: Mapped[str]


class BootValue(Base):
    """A boot's value of a metric, the median of its repetitions: the input of the comparisons."""

    __tablename__ = "boot_values"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), index=True)
    boot_id: Mapped[int] = mapped_column(ForeignKey("boots.id"), primary_key=True)
    scenario: Mapped[str] = mapped_column(primary_key=True)
    setting: Mapped[str] = mapped_column(primary_key=True)
    metric: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[float]


class Comparison(Base):
    """One comparison of a run. `data` is the API's view; the other columns are for filtering."""

    __tablename__ = "comparisons"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    """Position in the report."""
    patch: Mapped[int | None]
    """Patch of a walk that is compared with the one before; null for the whole series."""
    question: Mapped[Question]
    role: Mapped[Role]
    verdict: Mapped[Verdict | None]
    data: Mapped[ComparisonData]
