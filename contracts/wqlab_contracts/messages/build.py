"""Build job: build a kernel from a source tree."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..enums import JobKind, Outcome
from ..layouts import MOST_LAYOUTS
from ..specs import CpuArch, KernelRecipe
from .apply import Source
from .base import Artifact, Failure, Message, Sha256


class BuildJob(Message):
    """Job that builds one kernel."""

    kind: Literal[JobKind.BUILD] = JobKind.BUILD
    build_id: int
    key: Sha256
    source: Source
    trusted: bool
    """True for a commit of a tree in the data folder. Only trusted builds write to the shared compiler cache."""
    recipe: KernelRecipe
    arch: CpuArch
    emulated: bool
    """True if `recipe.emulated_fragments` are merged."""
    fragments: dict[str, str]
    """Name -> text of each fragment; `keys.in_merge_order` gives the merge order."""
    modules: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Modules of the recipe: name -> file -> text."""
    toolchain: str
    """Compiler to use. A worker with another compiler fails the job with an infrastructure failure."""
    layouts: int = Field(default=1, ge=1, le=MOST_LAYOUTS)
    """Layouts in which the kernel is linked, the ordinary one included; see `wqlab_contracts.layouts`."""


class CompilerWarning(Message):
    """One compiler warning."""

    where: str
    """file:line:column, relative to the source tree."""
    text: str
    option: str = ""


class LinkedLayout(Message):
    """The kernel of a build, linked from the same objects with text and data at other addresses."""

    layout: int = Field(ge=1, lt=MOST_LAYOUTS)
    """Its number, which is the seed of its shifts."""
    build_id_gnu: str
    content_sha256: str = ""
    """As that of the build."""
    duration_s: float = 0.0
    """Seconds to link it."""
    artifacts: list[Artifact]
    """Kernel and vmlinux; all else is that of the build."""


class BuildResult(Message):
    """Result of a build job."""

    kind: Literal[JobKind.BUILD] = JobKind.BUILD
    outcome: Outcome
    failure: Failure | None = None
    reused: bool = False
    """True if the worker's cache had the same key and nothing was compiled."""
    build_id_gnu: str = ""
    content_sha256: str = ""
    """SHA-256 over the image and all modules: equal for byte-identical kernels. Empty if it is not known."""
    release: str = ""
    """Kernel release, as printed by `uname -r`."""
    compiler: str = ""
    reproducer: str = ""
    """Command line that builds the same kernel."""
    duration_s: float = 0.0
    ccache: dict[str, int] = Field(default_factory=dict)
    warnings: list[CompilerWarning] = Field(default_factory=list)
    unmet_options: list[str] = Field(default_factory=list)
    """Options set by the fragments that the final configuration lacks: `CONFIG_X=y (is n)`."""
    failed_modules: dict[str, str] = Field(default_factory=dict)
    """Module of the recipe that does not build against this kernel -> reason. The build passes without it."""
    layouts: list[LinkedLayout] = Field(default_factory=list)
    """The other layouts of the kernel, from 1 in order."""
    artifacts: list[Artifact] = Field(default_factory=list)
    """Uploaded artifacts: after success at least kernel, vmlinux, System.map, config, log and metadata; after a compile
    error at least the log."""
