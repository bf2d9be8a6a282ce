"""Tables of the history of watched trees: lines, points, environments and shifts."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint, func, text
from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.api.history import HistoryLevel
from wqlab_contracts.enums import Direction, Evidence, Role, Scale, ShiftSource, ShiftState, Verdict

from .base import Base


class HistoryLine(Base):
    """A metric of one plan and setting, on one device type, over the heads of a branch or of a pattern of tags."""

    __tablename__ = "history_lines"
    __table_args__ = (
        UniqueConstraint(
            "watch", "ref", "plan_name", "device_type", "scenario", "setting", "metric",
            name="uq_history_lines_key",
        ),
    )  # fmt: skip

    id: Mapped[int] = mapped_column(primary_key=True)
    watch: Mapped[str] = mapped_column(ForeignKey("watches.name"))
    ref: Mapped[str]
    plan_name: Mapped[str]
    device_type: Mapped[str]
    scenario: Mapped[str]
    setting: Mapped[str]
    metric: Mapped[str]
    unit: Mapped[str]
    scale: Mapped[Scale]
    direction: Mapped[Direction]
    role: Mapped[Role]
    evidence: Mapped[Evidence]
    delta: Mapped[float | None]
    """Least effect that is relevant: percent for scale ratio, units for difference."""
    points: Mapped[int] = mapped_column(default=0)
    """Counter: number of points."""
    recent: Mapped[list[float]] = mapped_column(default=list)
    """Values of the last points, oldest first."""
    levels: Mapped[list[HistoryLevel]] = mapped_column(default=list)
    """Levels of all points, computed when the last point was added."""
    last_at: Mapped[datetime | None] = mapped_column(index=True)


class HistoryEnvironment(Base):
    """Facts about how points were measured; points with the same facts share a row."""

    __tablename__ = "history_environments"

    id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(unique=True)
    facts: Mapped[dict[str, str]]


class HistoryPoint(Base):
    """Value of a line at one head. Points are ordered by head."""

    __tablename__ = "history_points"

    line_id: Mapped[int] = mapped_column(ForeignKey("history_lines.id"), primary_key=True)
    head_id: Mapped[int] = mapped_column(ForeignKey("watched_heads.id"), primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), index=True)
    environment_id: Mapped[int] = mapped_column(ForeignKey("history_environments.id"))
    value: Mapped[float]
    stddev: Mapped[float | None]
    n: Mapped[int]
    """Number of boots; 0 if the kernel is byte-identical to that of the head before, whose value it has."""
    effect: Mapped[float | None]
    ci_low: Mapped[float | None]
    ci_high: Mapped[float | None]
    verdict: Mapped[Verdict | None]
    cut: Mapped[str] = mapped_column(default="")
    """What has changed in the environment since the point before."""
    at: Mapped[datetime]


class HistoryShift(Base):
    """A change of a line's level between two heads."""

    __tablename__ = "history_shifts"
    __table_args__ = (
        UniqueConstraint("line_id", "after_id"),
        Index("ix_history_shifts_open", "state", postgresql_where=text("state = 'new'")),
        Index("ix_history_shifts_created_at", "created_at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    line_id: Mapped[int] = mapped_column(ForeignKey("history_lines.id"))
    before_id: Mapped[int] = mapped_column(ForeignKey("watched_heads.id"))
    after_id: Mapped[int] = mapped_column(ForeignKey("watched_heads.id"))
    source: Mapped[ShiftSource]
    state: Mapped[ShiftState] = mapped_column(default=ShiftState.NEW)
    suspected_effect: Mapped[float]
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"), index=True)
    bisection_id: Mapped[int | None] = mapped_column(ForeignKey("bisections.id"), index=True)
    """The bisection that searches its commit; equal shifts of several lines share one."""
    effect: Mapped[float | None]
    ci_low: Mapped[float | None]
    ci_high: Mapped[float | None]
    verdict: Mapped[Verdict | None]
    reason: Mapped[str] = mapped_column(default="")
    owner: Mapped[str] = mapped_column(default="")
    notes: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    decided_at: Mapped[datetime | None]
    changed_at: Mapped[datetime] = mapped_column(server_default=func.now())
    changed_by: Mapped[str] = mapped_column(default="")
