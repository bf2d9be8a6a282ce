"""Tables of the lookups for the submission form. Rows are kept for a day."""

from __future__ import annotations

from sqlalchemy import Index, false, text
from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.messages import ThreadSource
from wqlab_contracts.messages.branch_readings import BranchReadingResult
from wqlab_contracts.messages.lookups import LookupResult
from wqlab_contracts.messages.thread_lookups import ThreadLookupResult
from wqlab_contracts.specs import Tree

from .base import Base
from .job import Job


class Lookup(Job, Base):
    """A request for branches and tags of a repository, answered by a worker."""

    __tablename__ = "lookups"

    url: Mapped[str] = mapped_column(index=True)
    refs: Mapped[list[str]] = mapped_column(default=list, server_default=text("'[]'::jsonb"))
    """Full names of the branches and tags that are asked for; empty: all branches."""
    private_network: Mapped[bool] = mapped_column(default=False, server_default=false())
    """True if the operator named the repository, which may then be in the lab's own network."""
    owner: Mapped[str]
    """The user who requested the lookup first, or `watched tree NAME`."""
    result: Mapped[LookupResult | None]


class ThreadLookup(Job, Base):
    """A request to find a series in the mail archives, answered by a worker."""

    __tablename__ = "thread_lookups"
    __table_args__ = (Index("ix_thread_lookups_message_id", "message_id", "revision"),)

    message_id: Mapped[str]
    revision: Mapped[int | None]
    """The revision that was asked for; None: the latest."""
    source: Mapped[ThreadSource]
    owner: Mapped[str]
    """The user who requested the lookup first."""
    result: Mapped[ThreadLookupResult | None]


class BranchReading(Job, Base):
    """A request to read the patches of a git branch, answered by a worker."""

    __tablename__ = "branch_readings"
    __table_args__ = (Index("ix_branch_readings_url", "url", "ref"),)

    url: Mapped[str]
    ref: Mapped[str]
    base: Mapped[str | None]
    """Base commit that the user named; None: the merge base of branch and tree."""
    tree: Mapped[Tree]
    """The tree at the time of the request."""
    owner: Mapped[str]
    """The user who requested the reading first."""
    result: Mapped[BranchReadingResult | None]
