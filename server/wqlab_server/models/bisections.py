"""Tables of bisections, their commit lists and their steps."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import ForeignKey, Index, func, text
from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.api.bisections import BisectionRequest
from wqlab_contracts.enums import BisectionState, BisectionStepKind, BisectionStepState, JobKind, Scale, Verdict
from wqlab_contracts.messages.commit_lists import CommitListJob, CommitListResult
from wqlab_contracts.specs import Tree

from .base import Base
from .job import Job


class Bisection(Base):
    """A search for the commit that changed a metric. The columns after `reason` are a summary of its steps."""

    __tablename__ = "bisections"
    __table_args__ = (
        Index(
            "ix_bisections_open",
            "id",
            postgresql_where=text("state IN ('listing', 'ends', 'searching', 'confirming')"),
        ),
        Index("ix_bisections_watch", "watch"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    request: Mapped[BisectionRequest]
    repository: Mapped[Tree]
    """Tree of the lab when it began; that of a watched tree has the URL that is watched."""
    owner: Mapped[str] = mapped_column(index=True)
    limited: Mapped[bool]
    """True if the owner's quotas limit it."""
    watch: Mapped[str | None] = mapped_column(ForeignKey("watches.name"))
    """The watch whose device time it uses; null if a person asked for it."""
    state: Mapped[BisectionState]
    reason: Mapped[str] = mapped_column(default="")
    good: Mapped[str | None]
    bad: Mapped[str | None]
    ref: Mapped[str] = mapped_column(default="")
    """Branch or tag that has the commits; empty until they are listed."""
    commits: Mapped[int | None]
    device: Mapped[str | None]
    """Device that measured the ends, on which everything else is measured too."""
    scale: Mapped[Scale | None]
    unit: Mapped[str] = mapped_column(default="")
    effect: Mapped[float | None]
    ci_low: Mapped[float | None]
    ci_high: Mapped[float | None]
    culprit_effect: Mapped[float | None]
    culprit_ci_low: Mapped[float | None]
    culprit_ci_high: Mapped[float | None]
    failure_rate: Mapped[float | None]
    failure_title: Mapped[str] = mapped_column(default="")
    first: Mapped[str | None]
    culprit: Mapped[str | None] = mapped_column(index=True)
    culprit_subject: Mapped[str] = mapped_column(default="")
    culprit_author: Mapped[str] = mapped_column(default="")
    culprit_is_merge: Mapped[bool] = mapped_column(default=False)
    probability: Mapped[float | None]
    boots: Mapped[int] = mapped_column(default=0)
    """Counter: boots of the search."""
    plain_boots: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    cancel_requested_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]


class CommitList(Job):
    """The commits from good to bad, or in the side branch of a merge: the job that lists them, and its result."""

    __tablename__ = "commit_lists"
    __table_args__ = (Index("uq_commit_lists_bisection_id_merge", "bisection_id", "merge", unique=True),)
    __mapper_args__ = {"polymorphic_identity": JobKind.LIST_COMMITS}

    id: Mapped[int] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    bisection_id: Mapped[int] = mapped_column(ForeignKey("bisections.id"))
    level: Mapped[int]
    """0: from good to bad; each side branch is one more."""
    merge: Mapped[str] = mapped_column(default="")
    """Merge whose side branch this is; empty for the commits from good to bad."""
    if TYPE_CHECKING:
        payload: Mapped[CommitListJob]
        result: Mapped[CommitListResult | None]


class BisectionStep(Base):
    """One measurement: a submission of two commits."""

    __tablename__ = "bisection_steps"
    __table_args__ = (Index("ix_bisection_steps_bisection_id", "bisection_id", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    bisection_id: Mapped[int] = mapped_column(ForeignKey("bisections.id"))
    list_id: Mapped[int] = mapped_column(ForeignKey("commit_lists.id"))
    kind: Mapped[BisectionStepKind]
    state: Mapped[BisectionStepState]
    reason: Mapped[str] = mapped_column(default="")
    first: Mapped[int]
    """Position of the first commit of the step: the first of a range that is confirmed, otherwise `last`."""
    last: Mapped[int]
    """Position of the candidate."""
    baseline: Mapped[str]
    candidate: Mapped[str]
    blocks: Mapped[int | None]
    """Blocks that were asked for; null: as the plan says."""
    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id"), index=True)
    submitted_at: Mapped[datetime] = mapped_column(server_default=func.now())
    ended_at: Mapped[datetime | None]
    identical: Mapped[bool] = mapped_column(default=False)
    """True if both kernels are byte-identical, so that nothing was booted."""
    exact: Mapped[bool] = mapped_column(default=False)
    """True if all boots of each kernel gave the same count."""
    differs: Mapped[bool] = mapped_column(default=False)
    """True if the candidate differs from the baseline significantly, or fails as it does not."""
    differences: Mapped[list[float]] = mapped_column(default=list)
    """Difference of each block: of logarithms for scale ratio, of values for scale difference."""
    effect: Mapped[float | None]
    ci_low: Mapped[float | None]
    ci_high: Mapped[float | None]
    verdict: Mapped[Verdict | None]
    passed: Mapped[int] = mapped_column(default=0)
    failed: Mapped[int] = mapped_column(default=0)
    boots: Mapped[int] = mapped_column(default=0)
    titles: Mapped[list[str]] = mapped_column(default=list)
    """What the kernel of the candidate reports and that of the baseline does not."""
