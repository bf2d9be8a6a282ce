"""Tables of stored artifacts and of their links to jobs."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, UniqueConstraint, func, true
from sqlalchemy.orm import Mapped, mapped_column, relationship

from wqlab_contracts.enums import ArtifactKind

from .base import Base


class Artifact(Base):
    """An artifact in the content-addressed store."""

    __tablename__ = "artifacts"

    sha256: Mapped[str] = mapped_column(primary_key=True)
    size: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    deleted_at: Mapped[datetime | None]
    """When retention decided to delete it; another upload of the same content sets this to null."""
    stored: Mapped[bool] = mapped_column(server_default=true())
    """False once its bytes have been removed from the store."""


class ArtifactLink(Base):
    """The kind and name of an artifact for the job that uploaded it."""

    __tablename__ = "artifact_links"
    __table_args__ = (UniqueConstraint("job_id", "kind", "name"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    sha256: Mapped[str] = mapped_column(ForeignKey("artifacts.sha256"), index=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("jobs.id"))
    kind: Mapped[ArtifactKind]
    name: Mapped[str]

    artifact: Mapped[Artifact] = relationship(lazy="raise")
