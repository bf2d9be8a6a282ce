"""What somebody who fills in a form wants to know of a repository."""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.messages.lookups import LookupResult

from .base import Base
from .job import Job


class Lookup(Job, Base):
    """The branches of a repository, read by a worker. Kept for a day."""

    __tablename__ = "lookups"

    url: Mapped[str] = mapped_column(index=True)
    owner: Mapped[str]
    """Who asked first."""
    result: Mapped[LookupResult | None]
