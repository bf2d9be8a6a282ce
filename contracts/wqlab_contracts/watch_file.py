"""Read the file of a watch, and check that what a watch names exists in the data folder."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from .specs import Archive, ListWatch, Tree, TreeWatch
from .specs.watches import KINDS
from .yamlfile import Document, Location, suggest_name


class Known(Protocol):
    """Archives, trees, plans and device types that a watch may name."""

    @property
    def archives(self) -> Collection[Archive]: ...
    @property
    def trees(self) -> Mapping[str, Tree]: ...
    @property
    def plans(self) -> Mapping[str, object]: ...
    @property
    def device_types(self) -> Mapping[str, object]: ...
    def has_device_type(self, name: str) -> bool: ...


def watch_of(document: Document) -> ListWatch | TreeWatch | None:
    """Return the watch in a document; None if it has problems, which are added to those of the document."""
    if document.problems:
        return None
    content = document.plain()
    kind = content.get("kind") if isinstance(content, dict) else None
    if isinstance(kind, str) and kind in KINDS:
        return document.validate_as(KINDS[kind])
    wanted = " or ".join(KINDS)
    message = f"must be {wanted}" if kind is None else f"must be {wanted} (not {kind!r})"
    document.problems.append(document.problem(("kind",), message))
    return None


def reference_problems(watch: ListWatch | TreeWatch, known: Known) -> list[tuple[Location, str]]:
    """Return where a watch names something that does not exist, and the fix."""
    found = _archive_problems(watch, known) if isinstance(watch, ListWatch) else []
    if watch.tree not in known.trees:
        found.append((("tree",), f"no tree {watch.tree!r}; {suggest_name(watch.tree, known.trees)}"))
    elif isinstance(watch, TreeWatch) and known.trees[watch.tree].url is None:
        found.append((("tree",), f"{watch.tree} is a source package, which has no branches"))
    for index, target in enumerate(watch.targets):
        plan, _, device_type = target.partition("@")
        if plan not in known.plans:
            found.append((("targets", index), f"no plan {plan!r}; {suggest_name(plan, known.plans)}"))
        if not known.has_device_type(device_type):
            hint = suggest_name(device_type, known.device_types)
            found.append((("targets", index), f"no device type {device_type!r}; {hint}"))
    return found


def _archive_problems(watch: ListWatch, known: Known) -> list[tuple[Location, str]]:
    archives = {archive.name: archive for archive in known.archives}
    archive = archives.get(watch.archive)
    if archive is None:
        return [(("archive",), f"no archive {watch.archive!r}; {suggest_name(watch.archive, archives)}")]
    if archive.epochs is None:
        return [(("archive",), f"archive {watch.archive!r} needs `epochs` in intake/archives.yaml to be watched")]
    return []
