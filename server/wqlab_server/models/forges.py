"""Tables of forges: repositories, received events, pull requests and branches, and the heads that were looked at."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, String, Text, UniqueConstraint, cast, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, column_property, foreign, mapped_column, relationship

from wqlab_contracts.enums import HeadDecision, HeadNews
from wqlab_contracts.messages.forge_listings import ForgeListing

from .base import Base
from .job import HeadReading
from .orders import Order

FORGE_SOURCE = "forge"
"""Source of the orders of heads."""


class ForgeRepository(Base):
    """A repository of intake/forges.yaml: its polls, and the last event that was refused."""

    __tablename__ = "forge_repositories"

    id: Mapped[int] = mapped_column(primary_key=True)
    forge: Mapped[str] = mapped_column(unique=True)
    url: Mapped[str]
    """Address of the repository in the API. Another one under the same name of a forge is begun anew."""
    listing: Mapped[ForgeListing | None]
    """Open pull requests and branches at the last poll; null before the first one."""
    start: Mapped[dict[str, str]]
    """Key -> head at the first poll. These are not measured before they change: only what is new was missed."""
    due_at: Mapped[datetime | None]
    """When it is polled again; null if polls are switched off."""
    nudged_at: Mapped[datetime | None]
    polled_at: Mapped[datetime | None]
    """Time of the last poll that succeeded."""
    problem: Mapped[str] = mapped_column(default="")
    """Why the last poll failed; empty if it did not."""
    problem_at: Mapped[datetime | None]
    missed: Mapped[int] = mapped_column(default=0)
    """Number of changes that polls have found although no event had told them."""
    missed_at: Mapped[datetime | None]
    """Time of the last one."""
    refused: Mapped[str] = mapped_column(default="")
    """Why the last refused event was refused, such as for a wrong signature."""
    refused_at: Mapped[datetime | None]


class ForgeEvent(Base):
    """An event that a forge has delivered; kept for a month, so that a repetition does nothing."""

    __tablename__ = "forge_events"
    __table_args__ = (Index("ix_forge_events_received_at", "received_at"),)

    forge: Mapped[str] = mapped_column(primary_key=True)
    delivery: Mapped[str] = mapped_column(primary_key=True)
    """Id that the forge gives to the delivery."""
    event: Mapped[str]
    answer: Mapped[str]
    """What the lab did with it."""
    received_at: Mapped[datetime] = mapped_column(server_default=func.now())


class ForgeChange(Base):
    """A pull request, or a branch that was pushed to. Events say that it has changed, the forge's API what it is."""

    __tablename__ = "forge_changes"
    __table_args__ = (
        UniqueConstraint("forge", "key"),
        Index("ix_forge_changes_due", "due_at", postgresql_where=text("due_at IS NOT NULL")),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    forge: Mapped[str]
    key: Mapped[str]
    """`pull/7` or `branch/NAME`."""
    number: Mapped[int | None]
    """Number of the pull request; null for a branch."""
    branch: Mapped[str]
    """Branch that was pushed to, or that the pull request is for."""
    title: Mapped[str] = mapped_column(default="")
    author: Mapped[str] = mapped_column(default="")
    """Account of the pull request's author; for a branch, of who pushed `pushed_head`."""
    from_fork: Mapped[bool] = mapped_column(default=True)
    closed: Mapped[bool] = mapped_column(default=False)
    head: Mapped[str] = mapped_column(default="")
    """Commit, as the API said last; empty until it was asked."""
    updated_at: Mapped[datetime | None]
    """Field `updated_at` of the pull request in the last answer of the API; null for a branch."""
    labels: Mapped[list[str]] = mapped_column(ARRAY(Text), default=list)
    pushed_head: Mapped[str] = mapped_column(default="")
    """Commit of the last push that an event has told."""
    label_head: Mapped[str] = mapped_column(default="")
    """Commit that was the head when the label was set."""
    label_by: Mapped[str] = mapped_column(default="")
    """Account that set the label at that commit. The lab asks the API whether this account has write access."""
    label_by_id: Mapped[int | None]
    """Number of that account, by which GitLab's API finds its rights."""
    events: Mapped[int] = mapped_column(default=0)
    """Number of events received. A sync compares it to detect an event that arrived during the sync."""
    due_at: Mapped[datetime | None]
    """When the API has to be asked; null if nothing is new."""
    nudged_at: Mapped[datetime | None]
    attempts: Mapped[int] = mapped_column(default=0)
    """Failed attempts to ask the API since the last success."""
    problem: Mapped[str] = mapped_column(default="")
    """Why the last attempt failed."""
    problem_at: Mapped[datetime | None]
    comment_id: Mapped[str | None]
    """Id of the lab's comment on the pull request."""


class ForgeHead(Base):
    """A head of a pull request or branch. The key of the job that reads it, and of its order, is its id.

    It waits while nobody has allowed it to use devices.
    """

    __tablename__ = "forge_heads"
    __table_args__ = (
        Index(
            "ix_forge_heads_current", "change_id", "head", unique=True, postgresql_where=text("withdrawn_at IS NULL")
        ),
        Index("ix_forge_heads_open", "id", postgresql_where=text("news <> 'ended'")),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    change_id: Mapped[int] = mapped_column(ForeignKey("forge_changes.id"))
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    head: Mapped[str]
    base_branch: Mapped[str]
    """Branch that the pull request is for; empty for a push."""
    trusted: Mapped[bool]
    """True if `.wqlab.yaml` is read from the head, because its author may write to the repository."""
    allowed: Mapped[str] = mapped_column(default="")
    """Why the head may use devices; empty while it may not."""
    decision: Mapped[HeadDecision] = mapped_column(default=HeadDecision.OPEN)
    reason: Mapped[str] = mapped_column(default="")
    """Why it is not measured, or waits."""
    withdrawn_at: Mapped[datetime | None]
    """When a newer head replaced it, or the pull request was closed."""
    news: Mapped[HeadNews] = mapped_column(default=HeadNews.NEW)

    reading: Mapped[HeadReading | None] = relationship(
        lazy="raise", viewonly=True, primaryjoin=lambda: cast(ForgeHead.id, String) == foreign(HeadReading.key)
    )
    """The job that reads it; None while nobody has allowed it to use devices."""
    submission_id: Mapped[int | None] = column_property(
        select(Order.submission_id)
        .where(Order.source == FORGE_SOURCE, Order.key == cast(id, String))
        .correlate_except(Order)
        .scalar_subquery()
    )
    """The submission that measures it."""

    def decide(self, decision: HeadDecision, reason: str) -> None:
        """Set what was decided and why, and have the forge told."""
        self.decision, self.reason = decision, reason
        self.has_news()

    def has_news(self) -> None:
        """Have the forge told, unless its last status is written."""
        if self.news is not HeadNews.ENDED:
            self.news = HeadNews.NEW
