"""Kernel trees and recipes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from .base import NAME_LIMIT, CpuArch, Name, Strict


class Tree(Strict):
    """A git repository or source package that series are applied to."""

    name: Name
    summary: str
    url: str | None = None
    """https:// or git:// URL, or an absolute local path."""
    branch: str = Field(default="master", pattern=r"^\S+$")
    debian_source: str | None = None
    """Debian source package (linux-source-X.Y), imported as one commit; used instead of `url`."""
    debian_suite: str | None = Field(default=None, pattern=r"^[a-z][a-z-]*$")
    """Debian release of the package if it is not that of the workers, such as trixie-backports."""

    origin: Literal["operator", "user"] = "operator"
    """`user`: the URL is that of a watched tree that somebody has added by the API. Its repository must be public, and
    its commits are not trusted: they write no cache that other builds read."""

    @model_validator(mode="after")
    def _check_origin(self) -> Self:
        if (self.url is None) == (self.debian_source is None):
            raise ValueError("a tree needs exactly one of url and debian_source")
        if self.debian_suite is not None and self.debian_source is None:
            raise ValueError("debian_suite needs debian_source; this tree has a url")
        return self


class KernelRecipe(Strict):
    """Configuration and toolchain of a kernel; fragments are merged in order over `base_config`."""

    name: Name
    summary: str
    base_config: str = "tinyconfig"
    toolchain: str = "gcc"
    fragments: list[str] = Field(min_length=1)
    arch_fragments: dict[CpuArch, list[str]] = Field(default_factory=dict)
    emulated_fragments: list[str] = Field(default_factory=list)
    modules: list[Name] = Field(default_factory=list)
    """Folders of kernels/modules to build against each kernel of this recipe; each gives NAME.ko."""
    figures: bool = True
    """False for debugging kernels (lockdep, KASAN): their boots give findings, but no figures."""

    @model_validator(mode="after")
    def _check_unique_modules(self) -> Self:
        if len(set(self.modules)) != len(self.modules):
            raise ValueError("a module is listed twice")
        return self

    def with_fragments(self, names: Sequence[str]) -> Self:
        """Return a copy of this recipe with more fragments, which are merged last.

        The copy has its own name, such as `measure-with-subsystems`. If no fragment is new, return this recipe.
        """
        more = [name for name in names if name not in self.fragments]
        if not more:
            return self
        name = "-".join([self.name, "with", *more])
        if len(name) > NAME_LIMIT:
            name = f"{name[: NAME_LIMIT - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        return self.model_copy(update={"name": name, "fragments": [*self.fragments, *more]})
