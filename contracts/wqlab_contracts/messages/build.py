"""From a source tree to a kernel."""

from __future__ import annotations

from pydantic import Field

from ..enums import Outcome
from ..specs import CpuArch, KernelRecipe
from .apply import Source
from .base import Artifact, Failure, Message, Sha256


class BuildJob(Message):
    build_id: int
    key: Sha256
    source: Source
    trusted: bool
    """True for a commit of an operator's tree: only such builds write the shared compiler cache."""
    recipe: KernelRecipe
    arch: CpuArch
    emulated: bool
    """Whether `recipe.emulated_fragments` are merged."""
    fragments: dict[str, str]
    """Name -> text of every fragment; `keys.in_merge_order` says in which order they are merged."""
    modules: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Of the recipe: name -> file -> text."""
    toolchain: str
    """The compiler the build must use; a worker that has another one fails it as infrastructure."""


class CompilerWarning(Message):
    where: str
    """file:line:column, relative to the source tree."""
    text: str
    option: str = ""


class BuildResult(Message):
    outcome: Outcome
    failure: Failure | None = None
    reused: bool = False
    """Found in the worker's cache under the same key; nothing was compiled."""
    build_id_gnu: str = ""
    release: str = ""
    """The string `uname -r` will print."""
    compiler: str = ""
    reproducer: str = ""
    """A command line anyone can run to build the same kernel."""
    duration_s: float = 0.0
    ccache: dict[str, int] = Field(default_factory=dict)
    warnings: list[CompilerWarning] = Field(default_factory=list)
    unmet_options: list[str] = Field(default_factory=list)
    """Options that the fragments ask for and the finished configuration does not have: `CONFIG_X=y (is n)`."""
    failed_modules: dict[str, str] = Field(default_factory=dict)
    """Modules of the recipe that do not build against this kernel -> why. The build passes without them."""
    artifacts: list[Artifact] = Field(default_factory=list)
    """Those uploaded; at least kernel, vmlinux, System.map, config, log, metadata when it passed, and the log
    when it failed at compiling."""
