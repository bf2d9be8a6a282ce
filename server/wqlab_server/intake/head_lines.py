"""Heads of one branch, or of the tags that match one pattern: what is new, and what is measured next. Pure."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from wqlab_contracts.enums import WatchedHeadState as State
from wqlab_contracts.specs import Batch

from ..models import WatchedHead

_PARTS = re.compile(r"\d+|[a-z]+")
_BEFORE_RELEASE = frozenset({"rc", "pre", "alpha", "beta"})
_START = "starting point: later heads are compared with it, and it is not measured itself"

# --- new heads --------------------------------------------------------------------------------------------------


def branch_head(known: Sequence[WatchedHead], branch: str, commit: str, now: datetime) -> WatchedHead | None:
    """Return the new head of a branch; None if the commit is known. `known` are the heads of the branch.

    If the branch was set back to an earlier head, that head becomes the last one again and records the return.
    """
    if not known:
        return WatchedHead(ref=branch, name=branch, commit=commit, seen_at=now, state=State.START, reason=_START)
    same = next((head for head in known if head.commit == commit), None)
    if same is None:
        return WatchedHead(ref=branch, name=branch, commit=commit, seen_at=now, state=State.WAITING, reason="")
    if same is not last_seen(known):
        _return_to(same, now)
    return None


def tag_heads(known: Sequence[WatchedHead], pattern: str, tags: Mapping[str, str], now: datetime) -> list[WatchedHead]:
    """Return the new heads among the tags (name -> commit) that match a pattern, in the order of their versions.

    At the first look the highest version is the starting point and the others are skipped. Later a version below the
    highest that is known is skipped.
    """
    commits = {head.commit for head in known}
    highest = max((version(head.name) for head in known), default=None)
    matching = sorted((name for name in tags if fnmatch.fnmatchcase(name, pattern)), key=version)
    found: list[WatchedHead] = []
    for name in matching:
        if tags[name] in commits:
            continue
        commits.add(tags[name])
        head = WatchedHead(
            ref=pattern, name=name, commit=tags[name], seen_at=now, state=State.WAITING, reason="", verdicts=[]
        )
        if highest is not None and version(name) < highest:
            head.state = State.SKIPPED
            head.reason = f"appeared after a tag of a higher version ({_highest_name(known)})"
        found.append(head)
    if not known and found:
        for head in found[:-1]:
            head.state, head.reason = State.SKIPPED, f"older than the starting point, {found[-1].name}"
        found[-1].state, found[-1].reason = State.START, _START
    return found


def version(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return the sort key of a tag: `v6.12-rc7` is before `v6.12`, and that before `v6.12.1` and `v6.12.10`."""
    parts = []
    for part in _PARTS.findall(name.lower()):
        if part.isdigit():
            parts.append((2, int(part), ""))
        else:
            parts.append((-1 if part in _BEFORE_RELEASE else 1, 0, part))
    return (*parts, (0, 0, ""))


def last_seen(heads: Sequence[WatchedHead]) -> WatchedHead:
    """Return the head that a line is at: the one that was seen, or returned to, last."""
    return max(heads, key=_order)


def _order(head: WatchedHead) -> tuple[datetime, int]:
    return head.last_seen_at, head.id or 0


def _highest_name(heads: Sequence[WatchedHead]) -> str:
    return max(heads, key=lambda head: version(head.name)).name


def _return_to(head: WatchedHead, now: datetime) -> None:
    head.returned_at = now
    if head.state is State.SKIPPED:
        head.state, head.skipped_by_id, head.ended_at = State.WAITING, None, None
        head.reason = "the branch was set back to this head, which had been skipped"
    elif head.state is State.MEASURED:
        head.reason = "the branch was set back to this head, which is measured already"


# --- what is measured next --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """The next head of a line to measure, and the head to compare it with."""

    head: WatchedHead
    parent: WatchedHead
    passed_over: tuple[WatchedHead, ...]
    """Waiting heads that are skipped in favour of it."""


def choose(heads: Sequence[WatchedHead], batch: Batch) -> Choice | None:
    """Return what to measure next of a line; None if nothing waits, or one of its heads is being measured.

    It is compared with the head that was measured last, or with the starting point.
    """
    if any(head.state is State.RUNNING for head in heads):
        return None
    waiting = sorted((head for head in heads if head.state is State.WAITING), key=_order)
    measured = [head for head in heads if head.state in {State.MEASURED, State.START}]
    if not waiting or not measured:
        return None
    head = waiting[0] if batch is Batch.ALL else waiting[-1]
    before = [each for each in measured if _order(each) < _order(head)]
    return Choice(head, last_seen(before or measured), () if batch is Batch.ALL else tuple(waiting[:-1]))


def left_behind(heads: Sequence[WatchedHead], batch: Batch) -> list[WatchedHead]:
    """Return the waiting heads to skip because the branch is back at a measured head; none with `batch: all`."""
    if batch is Batch.ALL or not heads:
        return []
    last = last_seen(heads)
    if last.state not in {State.MEASURED, State.START}:
        return []
    return [head for head in heads if head.state is State.WAITING]


def skip(head: WatchedHead, by: WatchedHead, reason: str, now: datetime) -> None:
    """Skip a waiting head in favour of another one."""
    head.state, head.reason, head.skipped_by_id, head.ended_at = State.SKIPPED, reason, by.id, now
