"""The table of jobs, and the kinds of jobs that have no other columns."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, ForeignKey, Index, func, text
from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.enums import JobKind, JobState, Outcome
from wqlab_contracts.messages import ApplyJob, ApplyResult, Failure
from wqlab_contracts.messages.branch_readings import BranchReadingJob, BranchReadingResult
from wqlab_contracts.messages.forge_readings import ForgeReadingJob, ForgeReadingResult
from wqlab_contracts.messages.jobs import JobPayload, JobResult
from wqlab_contracts.messages.list_reads import ListReadJob
from wqlab_contracts.messages.lookups import LookupJob, LookupResult
from wqlab_contracts.messages.thread_lookups import ThreadLookupJob, ThreadLookupResult

from .base import Base, Typed


class Job(Base):
    """Work for a worker, which claims it. Builds, runs and some others have more columns in a table of their own."""

    __tablename__ = "jobs"
    __table_args__: Any = (
        Index("ix_jobs_unfinished", "kind", "state", "id", postgresql_where=text("state <> 'finished'")),
        Index("ix_jobs_key", "kind", "key", "id"),
        # Equal content is never built twice: a second row is possible only after the first has failed, or retention
        # has deleted its kernel.
        Index(
            "uq_jobs_key_of_build",
            "key",
            unique=True,
            postgresql_where=text(
                "kind = 'build' AND (outcome IS NULL OR outcome = 'passed') AND files_deleted_at IS NULL"
            ),
        ),
        # A list has one unfinished read, whoever orders it.
        Index(
            "uq_jobs_key_of_list",
            "key",
            unique=True,
            postgresql_where=text("kind = 'read_list' AND state <> 'finished'"),
        ),
        Index("uq_jobs_submission_id_of_apply", "submission_id", unique=True, postgresql_where=text("kind = 'apply'")),
    )

    id: Mapped[int] = mapped_column(primary_key=True, sort_order=-1)
    kind: Mapped[JobKind]
    key: Mapped[str] = mapped_column(default="", server_default="")
    """Jobs of one kind with equal keys do the same; empty if no other can."""
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"), index=True)
    owner: Mapped[str] = mapped_column(default="", server_default="")
    """Who asked for it; empty for the lab itself."""
    payload: Mapped[Any | None] = mapped_column(Typed(JobPayload))
    """What the worker gets; null if it is made of other rows when the job is claimed."""
    result: Mapped[Any | None] = mapped_column(Typed(JobResult))
    """Result of the last attempt, if the job keeps it."""
    result_digest: Mapped[str] = mapped_column(default="", server_default="")
    """Digest of the result of the claim that ended last, to recognize its repetition."""
    state: Mapped[JobState] = mapped_column(default=JobState.WAITING)
    outcome: Mapped[Outcome | None]
    failure: Mapped[Failure | None]
    attempts: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    """Number of times the job was claimed."""
    fence: Mapped[int | None] = mapped_column(BigInteger)
    """Fence of the current or last holder."""
    holder: Mapped[str | None]
    claim_nonce: Mapped[str | None]
    """Nonce of the request that made the current or last claim; identifies a repeated request."""
    expires_at: Mapped[datetime | None]
    """When the holder's claim expires without a heartbeat, by the database's clock."""
    cancel_requested_at: Mapped[datetime | None]
    nudged_at: Mapped[datetime | None]
    nudges: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    """Number of messages sent since the job was last queued."""
    progress: Mapped[str] = mapped_column(default="", server_default="")
    progress_done: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    progress_total: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    started_at: Mapped[datetime | None]
    """When the job was first claimed."""
    finished_at: Mapped[datetime | None]
    files_deleted_at: Mapped[datetime | None]
    """When retention deleted the job's artifacts. Artifacts that another job needs stay in the store."""

    __mapper_args__ = {"polymorphic_on": "kind"}


class Apply(Job):
    """The job that applies a series to its tree and yields exact source trees.

    An apply without a submission is the lab's own, for the golden kernel. The series is not in the payload: it is that
    of the submission's request.
    """

    __mapper_args__ = {"polymorphic_identity": JobKind.APPLY}
    if TYPE_CHECKING:
        payload: Mapped[ApplyJob]
        result: Mapped[ApplyResult | None]


class BranchList(Job):
    """A request for branches and tags of a repository, of a user or for a watched tree."""

    __mapper_args__ = {"polymorphic_identity": JobKind.LIST_BRANCHES}
    if TYPE_CHECKING:
        payload: Mapped[LookupJob]
        result: Mapped[LookupResult | None]


class ThreadLookup(Job):
    """A request to find a series in the mail archives."""

    __mapper_args__ = {"polymorphic_identity": JobKind.FIND_THREAD}
    if TYPE_CHECKING:
        payload: Mapped[ThreadLookupJob]
        result: Mapped[ThreadLookupResult | None]


class BranchReading(Job):
    """A request to read the patches of a git branch."""

    __mapper_args__ = {"polymorphic_identity": JobKind.READ_BRANCH}
    if TYPE_CHECKING:
        payload: Mapped[BranchReadingJob]
        result: Mapped[BranchReadingResult | None]


class HeadReading(Job):
    """The reading of a head of a pull request or branch."""

    __mapper_args__ = {"polymorphic_identity": JobKind.READ_HEAD}
    if TYPE_CHECKING:
        payload: Mapped[ForgeReadingJob]
        result: Mapped[ForgeReadingResult | None]


class ListRead(Job):
    """A read of the next mails of a watched list. Its key is the archive's name; what was read is not kept here."""

    __mapper_args__ = {"polymorphic_identity": JobKind.READ_LIST}
    if TYPE_CHECKING:
        payload: Mapped[ListReadJob]
