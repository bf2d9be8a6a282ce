"""Check that what a rule of a watched list names exists in the data folder."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from .specs import Archive
from .specs.rules import ListRule
from .yamlfile import Location, suggest_name


class Known(Protocol):
    """Archives, trees, plans and device types that a rule may name."""

    @property
    def archives(self) -> Collection[Archive]: ...
    @property
    def trees(self) -> Mapping[str, object]: ...
    @property
    def plans(self) -> Mapping[str, object]: ...
    @property
    def device_types(self) -> Mapping[str, object]: ...
    def has_device_type(self, name: str) -> bool: ...


def reference_problems(rule: ListRule, known: Known) -> list[tuple[Location, str]]:
    """Return where a rule names something that does not exist, and the fix."""
    found: list[tuple[Location, str]] = []
    archives = {archive.name: archive for archive in known.archives}
    archive = archives.get(rule.archive)
    if archive is None:
        found.append((("archive",), f"no archive {rule.archive!r}; {suggest_name(rule.archive, archives)}"))
    elif archive.epochs is None:
        found.append((("archive",), f"archive {rule.archive!r} needs `epochs` in intake/archives.yaml to be watched"))
    if rule.tree not in known.trees:
        found.append((("tree",), f"no tree {rule.tree!r}; {suggest_name(rule.tree, known.trees)}"))
    for index, target in enumerate(rule.targets):
        plan, _, device_type = target.partition("@")
        if plan not in known.plans:
            found.append((("targets", index), f"no plan {plan!r}; {suggest_name(plan, known.plans)}"))
        if not known.has_device_type(device_type):
            hint = suggest_name(device_type, known.device_types)
            found.append((("targets", index), f"no device type {device_type!r}; {hint}"))
    return found
