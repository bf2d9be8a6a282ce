"""Read `intake/watched-trees.yaml`: the trees whose new heads are measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from .specs import GeneratedTopology, Strict, Tree, WatchedTree
from .yamlfile import Document, Location, Problem, suggest_name

FILE = "intake/watched-trees.yaml"


class _WatchedTrees(Strict):
    watched_trees: list[WatchedTree]


def read_watched_trees(
    root: Path, trees: Mapping[str, Tree], device_types: set[str], plans: set[str]
) -> tuple[tuple[WatchedTree, ...], list[Problem]]:
    """Return the watched trees of a data folder, and the problems of the file."""
    path = root / FILE
    if not path.exists():
        return (), []
    document = Document.read(path, FILE)
    value = document.validate_as(_WatchedTrees)
    watched = value.watched_trees if value is not None else []
    problems = [*document.problems, *_reference_problems(document, watched, trees, device_types, plans)]
    return tuple(watched), problems


def _reference_problems(
    document: Document,
    watched: Sequence[WatchedTree],
    trees: Mapping[str, Tree],
    device_types: set[str],
    plans: set[str],
) -> list[Problem]:
    """Return the problems of the watched trees in a document, with file, line and key."""
    found: list[tuple[Location, str]] = []
    first: dict[str, int] = {}
    for index, each in enumerate(watched):
        where = ("watched_trees", index)
        if first.setdefault(each.name, index) != index:
            found.append(((*where, "name"), f"{each.name} is defined twice"))
        if each.tree not in trees:
            found.append(((*where, "tree"), f"no tree {each.tree!r}; {suggest_name(each.tree, set(trees))}"))
        elif trees[each.tree].url is None:
            found.append(((*where, "tree"), f"{each.tree} is a source package, which has no branches"))
        for number, target in enumerate(each.targets):
            for problem in _target_problems(target, device_types, plans):
                found.append(((*where, "targets", number), problem))
    return [document.problem(location, message) for location, message in found]


def _target_problems(target: str, device_types: set[str], plans: set[str]) -> Iterator[str]:
    plan, _, name = target.partition("@")
    if plan not in plans:
        yield f"no plan {plan!r}; {suggest_name(plan, plans)}"
    if name not in device_types and GeneratedTopology.parse(name) is None:
        yield f"no device type {name!r}; {suggest_name(name, device_types)}"
