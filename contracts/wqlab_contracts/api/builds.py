"""REST resource of a build."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ..enums import Arm, JobState, Outcome
from ..messages import Artifact, CompilerWarning, Failure, Message
from ..specs import CpuArch


class BuildView(Message):
    """State and result of a kernel build."""

    id: int
    key: str
    arm: Arm | None = None
    """Arm of the build in the submission that lists it."""
    tree: str
    origin: str = ""
    """Origin of the tree: its URL, or the name of the Debian source package."""
    base_commit: str
    tree_oid: str
    recipe: str
    arch: CpuArch
    state: JobState
    outcome: Outcome | None
    failure: Failure | None
    reused: bool
    build_id_gnu: str
    layout_build_ids: list[str] = Field(default_factory=list)
    """GNU build-ids of the kernel's other layouts, from layout 1 in order."""
    release: str
    compiler: str
    reproducer: str
    duration_s: float | None
    new_warnings: list[CompilerWarning] = Field(default_factory=list)
    """Warnings that the baseline build lacks; set for candidate builds of a submission."""
    artifacts: list[Artifact] = Field(default_factory=list)
    files_deleted_at: datetime | None = None
    """When retention deleted the artifacts; their downloads then answer 410."""
    progress: str = ""
