"""Read `intake/archives.yaml`: the mail archives and Patchworks in which series are found."""

from __future__ import annotations

from pathlib import Path

from .specs import Archive, Strict
from .yamlfile import Document, Problem

FILE = "intake/archives.yaml"


class _Archives(Strict):
    archives: list[Archive]


def read_archives(root: Path) -> tuple[tuple[Archive, ...], list[Problem]]:
    """Return the archives of a data folder in the order to ask them, and the problems of the file."""
    path = root / FILE
    if not path.exists():
        return (), []
    document = Document.read(path, FILE)
    value = document.validate_as(_Archives)
    problems = list(document.problems)
    archives = value.archives if value is not None else []
    first: dict[str, int] = {}
    for index, archive in enumerate(archives):
        if first.setdefault(archive.name, index) != index:
            problems.append(document.problem(("archives", index, "name"), f"{archive.name} is defined twice"))
    return tuple(archives), problems
