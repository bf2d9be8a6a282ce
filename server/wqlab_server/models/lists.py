"""Tables of watched mailing lists: positions, previews, mails that await a decision, and decisions."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import BigInteger, ForeignKey, Index, Text, UniqueConstraint, func, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.api.watches import PreviewedSeriesList
from wqlab_contracts.enums import DecisionReason, DecisionState, JobKind
from wqlab_contracts.messages import Failure
from wqlab_contracts.messages.list_mails import ListMail
from wqlab_contracts.messages.list_reads import ListReadJob
from wqlab_contracts.specs import ListWatch

from .base import Base
from .job import Job


class WatchedList(Base):
    """A list that an enabled watch reads, and the position up to which it has been read."""

    __tablename__ = "watched_lists"

    archive: Mapped[str] = mapped_column(primary_key=True)
    epochs: Mapped[str]
    """URL of its repositories; another URL is another list, which is read from the beginning."""
    since: Mapped[datetime]
    """Where the first read begins."""
    epoch: Mapped[int | None]
    commit: Mapped[str | None]
    """Last commit of the epoch that was read."""
    mails: Mapped[int] = mapped_column(BigInteger, default=0)
    """Number of mails that were read."""
    last_mail_at: Mapped[datetime | None]
    read_at: Mapped[datetime | None]
    """When it was last read without an error."""
    next_read_at: Mapped[datetime] = mapped_column(server_default=func.now())
    failures: Mapped[int] = mapped_column(default=0)
    """Reads that have failed since the last one without an error."""
    failure: Mapped[Failure | None]
    failing_since: Mapped[datetime | None]


class ListPreview(Job):
    """A read of the last mails of a list, and what a watch would have taken of them."""

    __tablename__ = "list_previews"
    __mapper_args__ = {"polymorphic_identity": JobKind.PREVIEW_WATCH}

    id: Mapped[int] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    spec: Mapped[ListWatch]
    days: Mapped[int]
    found: Mapped[PreviewedSeriesList | None]
    if TYPE_CHECKING:
        payload: Mapped[ListReadJob]


class SeenMail(Base):
    """A cover letter or patch of a watched list."""

    __tablename__ = "list_mails"
    __table_args__ = (
        Index("ix_list_mails_unsettled", "archive", "seen_at", postgresql_where=text("NOT settled")),
        Index("ix_list_mails_seen_at", "seen_at"),
    )

    archive: Mapped[str] = mapped_column(primary_key=True)
    message_id: Mapped[str] = mapped_column(primary_key=True)
    mail: Mapped[ListMail]
    seen_at: Mapped[datetime] = mapped_column(server_default=func.now())
    settled: Mapped[bool] = mapped_column(default=False)
    """True once the watches have decided on its series."""
    removed: Mapped[bool] = mapped_column(default=False)
    """True if the archive has removed it."""


class WatchDecisionRow(Base):
    """What a watch decided on a revision of a series. Rows of taken series are kept, so that none is taken twice."""

    __tablename__ = "list_decisions"
    __table_args__ = (
        UniqueConstraint("watch", "root", "revision"),
        # Two watches do not measure the same series.
        Index(
            "uq_list_decisions_taken",
            "root",
            "revision",
            unique=True,
            postgresql_where=text("state IN ('waiting', 'taken')"),
        ),
        Index("ix_list_decisions_waiting", "id", postgresql_where=text("state = 'waiting'")),
        Index("ix_list_decisions_series", "author_address", "subject_key"),
        Index("ix_list_decisions_of_watch", "watch", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    watch: Mapped[str] = mapped_column(ForeignKey("watches.name"))
    archive: Mapped[str]
    root: Mapped[str]
    """Message-ID that identifies the revision: the cover letter's, or that of the first patch without one."""
    revision: Mapped[int]
    message_id: Mapped[str]
    """The first mail of the revision that has arrived."""
    subject: Mapped[str]
    author: Mapped[str]
    author_address: Mapped[str]
    subject_key: Mapped[str]
    """The subject without its prefix; with the author's address it is common to all revisions."""
    targets: Mapped[list[str]] = mapped_column(ARRAY(Text))
    state: Mapped[DecisionState]
    reason: Mapped[DecisionReason | None]
    detail: Mapped[str] = mapped_column(default="")
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id"), index=True)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    decided_at: Mapped[datetime | None]
