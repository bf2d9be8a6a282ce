"""Read `intake/forges.yaml`: the repositories on forges whose pull requests and pushes are measured."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from .specs import Forge, Name, Strict
from .yamlfile import Document, Problem, suggest_name

FILE = "intake/forges.yaml"


class _Forges(Strict):
    forges: list[Forge]


def read_forges(root: Path, trees: Collection[Name] | None = None) -> tuple[tuple[Forge, ...], list[Problem]]:
    """Return the forges of a data folder, and the problems of the file. Trees are checked if they are given."""
    path = root / FILE
    if not path.exists():
        return (), []
    document = Document.read(path, FILE)
    value = document.validate_as(_Forges)
    problems = list(document.problems)
    forges = value.forges if value is not None else []
    first: dict[str, int] = {}
    for index, forge in enumerate(forges):
        if first.setdefault(forge.name, index) != index:
            problems.append(document.problem(("forges", index, "name"), f"{forge.name} is defined twice"))
        if trees is not None and forge.tree not in trees:
            message = f"no tree {forge.tree!r}; {suggest_name(forge.tree, set(trees))}"
            problems.append(document.problem(("forges", index, "tree"), message))
    return tuple(forges), problems


def find_forge(root: Path, name: str) -> Forge | None:
    """Return the forge of this name; None if there is none, or the file has problems."""
    forges, problems = read_forges(root)
    return None if problems else next((forge for forge in forges if forge.name == name), None)
