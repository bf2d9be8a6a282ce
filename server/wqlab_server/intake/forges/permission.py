"""Decide whether a head may use devices: who may spend device time is the operator's choice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wqlab_contracts.specs import Forge

from .read_change import Seen

MayWrite = Callable[[str, int | None], bool]
"""Account and its number -> True if it may push to the repository."""


@dataclass(frozen=True)
class Labeled:
    """The account that set the forge's label, and the head at that time. Empty if the label was not set."""

    head: str = ""
    by: str = ""
    by_id: int | None = None


@dataclass(frozen=True)
class Permission:
    """Whether a head may use devices, and why."""

    allowed: bool
    reason: str


def decide(
    forge: Forge, seen: Seen, author: str, author_id: int | None, *, labeled: Labeled, may_write: MayWrite
) -> Permission:
    """Return whether the head of a pull request or branch may use devices.

    `author` is the pull request's author, or who pushed the head of the branch; empty if no event has named it. A label
    allows the one commit that was the head when it was set: whoever set it has not seen later ones.
    """
    if forge.may_spend == "listed":
        if author.casefold() in {user.casefold() for user in forge.users}:
            return Permission(True, f"{author} is listed")
        why = f"{author or 'who pushed it'} is not among those who may use devices"
    elif not seen.from_fork:
        return Permission(True, "it was pushed to the repository itself")
    elif author and may_write(author, author_id):
        return Permission(True, f"{author} may write to the repository")
    else:
        why = f"{author or 'its author'} may not write to the repository"
    if forge.label is None:
        return Permission(False, f"not measured: {why}")
    if labeled.head == seen.head and labeled.by and forge.label in seen.labels:
        if may_write(labeled.by, labeled.by_id):
            return Permission(True, f"{labeled.by} set the label {forge.label!r}")
        why = f"{labeled.by}, who set the label, may not write to the repository"
    elif forge.label in seen.labels:
        why = "the label was set at another commit; remove it and set it again"
    return Permission(False, f"waits for the label {forge.label!r} by somebody with write access: {why}")
