"""Table of repository lookups for the submission form."""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column

from wqlab_contracts.messages.lookups import LookupResult

from .base import Base
from .job import Job


class Lookup(Job, Base):
    """A request for the branches of a repository, answered by a worker. Kept for a day."""

    __tablename__ = "lookups"

    url: Mapped[str] = mapped_column(index=True)
    owner: Mapped[str]
    """The user who requested the lookup first."""
    result: Mapped[LookupResult | None]
