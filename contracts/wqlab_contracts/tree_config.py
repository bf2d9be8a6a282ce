"""`.wqlab.yaml`, by which a repository on a forge says what is measured of its pull requests and pushes."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, model_validator

from .jsontypes import JsonFloat, JsonInt
from .messages import Target
from .specs import Name, Strict
from .yamlfile import Document

FILE = ".wqlab.yaml"
SIZE_LIMIT = 64 << 10
"""Bytes."""

_Prefix = Annotated[str, StringConstraints(pattern=r"^[^\s/][^\s]*$", max_length=300)]
_Branch = Annotated[str, StringConstraints(pattern=r"^[^\s/][^\s]*$", max_length=200)]
_Target = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}@[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
]


class TreeTarget(Strict):
    """A plan on a device type; `plan@device-type` alone is short for one without further fields."""

    target: _Target
    params: dict[Name, str | JsonInt | JsonFloat] = Field(default_factory=dict, max_length=50)
    """Parameters that override those of the plan's profile."""
    scenarios: list[Name] | None = Field(default=None, min_length=1, max_length=50)

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, value: Any) -> Any:
        return {"target": value} if isinstance(value, str) else value

    def as_target(self) -> Target:
        """Return it as the target of a submission."""
        plan, _, device_type = self.target.partition("@")
        return Target(plan=plan, device_type=device_type, scenarios=self.scenarios, parameters=dict(self.params))


class TreeConfig(Strict):
    """Content of `.wqlab.yaml`."""

    targets: list[TreeTarget] = Field(default_factory=list, max_length=16)
    what_it_touches: bool = False
    """Measure what testplans/touches.yaml proposes for the files and functions that the commits change. If `targets` is
    not empty, only its targets that are also proposed are measured."""
    paths: list[_Prefix] = Field(default_factory=list, max_length=200)
    """Files, and folders with a slash at the end: only changes of one of them are measured; empty: all changes."""
    branches: list[_Branch] = Field(default_factory=list, max_length=50)
    """Branches whose pushes are measured; `*` matches any text. If the list is empty, no push is measured."""
    pull_requests: bool = True
    """False if pull requests are not measured."""
    blocks: int | None = Field(default=None, ge=1, le=100)
    recipe: Name | None = None

    @model_validator(mode="after")
    def _check_targets(self) -> Self:
        if not self.targets and not self.what_it_touches:
            raise ValueError("targets is empty: name what is measured, or set what_it_touches: true")
        names = [each.target for each in self.targets]
        twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
        if twice is not None:
            raise ValueError(f"targets has {twice!r} twice")
        return self

    def matches_paths(self, changed: Sequence[str], *, complete: bool = True) -> bool:
        """Return True if a changed file matches `paths`, if `paths` is empty, or if `changed` is incomplete."""
        return (
            not self.paths
            or not complete
            or any(
                path.startswith(wanted) if wanted.endswith("/") else path == wanted
                for wanted in self.paths
                for path in changed
            )
        )

    def matches_branch(self, branch: str) -> bool:
        """Return True if pushes to a branch are measured."""
        return any(fnmatch.fnmatchcase(branch, pattern) for pattern in self.branches)


def read_tree_config(text: str) -> TreeConfig:
    """Parse `.wqlab.yaml`. Raises ValueError that names file, line and key of the first mistake."""
    document = Document.parse(text, FILE)
    config = document.validate_as(TreeConfig)
    if config is None:
        raise ValueError(str(min(document.problems)))
    return config
