"""Tables of kernel builds and of the submissions that use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import ForeignKey, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from wqlab_contracts.enums import Arm, JobKind
from wqlab_contracts.messages import BuildResult, Source
from wqlab_contracts.specs import KernelRecipe

from .base import Base
from .job import Job


class Build(Job):
    """One kernel made from one source tree by one recipe and one toolchain. Its key is that of its content."""

    __tablename__ = "builds"
    __mapper_args__ = {"polymorphic_identity": JobKind.BUILD}

    id: Mapped[int] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    source: Mapped[Source]
    recipe: Mapped[KernelRecipe]
    arch: Mapped[str]
    emulated: Mapped[bool]
    fragments: Mapped[dict[str, str]]
    modules: Mapped[dict[str, dict[str, str]]]
    """The recipe's modules: name -> file -> text."""
    toolchain: Mapped[str]
    layouts: Mapped[int] = mapped_column(default=1, server_default=text("1"))
    """Layouts in which the kernel is linked, the ordinary one included."""
    trusted: Mapped[bool]
    """True if the source is a commit of an operator's tree."""
    if TYPE_CHECKING:
        result: Mapped[BuildResult | None]


class SubmissionBuild(Base):
    """The arm, recipe and architecture for which a submission uses a build. Submissions may share a build."""

    __tablename__ = "submission_builds"
    __table_args__ = (UniqueConstraint("submission_id", "arm", "recipe", "arch", "emulated"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id"))
    build_id: Mapped[int] = mapped_column(ForeignKey("builds.id"), index=True)
    arm: Mapped[Arm]
    recipe: Mapped[str]
    arch: Mapped[str]
    emulated: Mapped[bool]

    build: Mapped[Build] = relationship(lazy="raise")
