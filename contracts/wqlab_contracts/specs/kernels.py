"""Kernel trees and recipes."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from .base import CpuArch, Name, Strict


class Tree(Strict):
    name: Name
    summary: str
    url: str | None = None
    """https:// or git:// URL, or an absolute local path that the operator lists."""
    branch: str = Field(default="master", pattern=r"^\S+$")
    debian_source: str | None = None
    """Name of a Debian source package (linux-source-X.Y) that is imported as one commit instead of a URL."""
    debian_suite: str | None = Field(default=None, pattern=r"^[a-z][a-z-]*$")
    """The Debian release that has the package, where that is not the workers' own: trixie-backports."""

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.url is None) == (self.debian_source is None):
            raise ValueError("a tree has either url or debian_source")
        if self.debian_suite is not None and self.debian_source is None:
            raise ValueError("debian_suite says where a debian_source is from; this tree has a url")
        return self


class KernelRecipe(Strict):
    """How a kernel is configured and built: fragments are merged in order over `base_config`."""

    name: Name
    summary: str
    base_config: str = "tinyconfig"
    toolchain: str = "gcc"
    fragments: list[str] = Field(min_length=1)
    arch_fragments: dict[CpuArch, list[str]] = Field(default_factory=dict)
    emulated_fragments: list[str] = Field(default_factory=list)
    modules: list[Name] = Field(default_factory=list)
    """Folders of kernels/modules that are built against every kernel of this recipe, each to NAME.ko."""
    figures: bool = True
    """False for debugging kernels (lockdep, KASAN): their boots give correctness findings, never figures."""

    @model_validator(mode="after")
    def _modules_differ(self) -> Self:
        if len(set(self.modules)) != len(self.modules):
            raise ValueError("a module is listed twice")
        return self
