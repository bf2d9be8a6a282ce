"""Read the heads of watched trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages.lookups import LookupJob, LookupResult
from wqlab_contracts.specs import Tree, TreeWatch

from ..jobs import claims
from ..models import BranchList, Watch, WatchedHead
from ..storage.db import clock
from . import head_lines

RETRY_AFTER = timedelta(minutes=5)
"""Time after a look that failed until the next one, unless `every_minutes` is shorter."""


def repository_of(spec: TreeWatch, data: DataFolder) -> Tree:
    """Return the tree that the heads are fetched from: that of the lab, with the watched URL.

    Raises KeyError if the lab has no such tree.
    """
    tree = data.trees[spec.tree]
    return data.with_origin(tree if spec.url is None else tree.model_copy(update={"url": spec.url}))


def url_of(spec: TreeWatch, data: DataFolder) -> str:
    """Return the URL that is looked at; an empty string if the lab has no such tree any more."""
    return repository_of(spec, data).url or "" if spec.tree in data.trees else ""


def look(session: Session, row: Watch, data: DataFolder) -> None:
    """Ask a worker for the heads when they are due, and store those that it found. The caller has locked the row."""
    now = clock(session)
    if row.lookup_id is not None:
        _take(session, row, now)
    if row.lookup_id is None and row.due_at <= now:
        url = url_of(row.tree_spec, data)
        if not url:
            row.problem = f"the lab has no git repository {row.tree_spec.tree!r} any more"
            row.due_at = now + _retry_after(row.tree_spec)
            return
        private = repository_of(row.tree_spec, data).origin == "operator"
        job = LookupJob(url=url, refs=row.tree_spec.ref_patterns, private_network=private)
        lookup = BranchList(owner=f"watch {row.name}", payload=job)
        claims.queue(session, lookup)
        row.lookup_id, row.due_at = lookup.id, now + timedelta(minutes=row.tree_spec.every_minutes)


def _take(session: Session, row: Watch, now: datetime) -> None:
    """Store the heads that the lookup has found, if it is finished."""
    lookup = session.get(BranchList, row.lookup_id, populate_existing=True)
    if lookup is None:  # deleted, because no server ran for a day
        row.lookup_id, row.due_at = None, now
        return
    if lookup.state is not JobState.FINISHED:
        return
    row.lookup_id = None
    if lookup.outcome is not Outcome.PASSED or lookup.result is None:
        failure = lookup.failure
        row.problem = failure.summary if failure is not None else "the heads could not be read"
        row.due_at = min(row.due_at, now + _retry_after(row.tree_spec))
        return
    row.looked_at = lookup.finished_at
    row.problem = store_heads(session, row, lookup.result, now)


def _retry_after(spec: TreeWatch) -> timedelta:
    return min(RETRY_AFTER, timedelta(minutes=spec.every_minutes))


def store_heads(session: Session, row: Watch, found: LookupResult, now: datetime) -> str:
    """Store new heads and return what is missing in the repository; an empty string if nothing is."""
    branches = {branch.name: branch.commit for branch in found.branches}
    tags = {tag.name: tag.commit for tag in found.tags}
    lines = lines_of(session, row.name)
    new: list[WatchedHead] = []
    missing = [f"no branch {name}" for name in row.tree_spec.branches if name not in branches]
    for name in row.tree_spec.branches:
        if name in branches:
            head = head_lines.branch_head(lines.get(name, []), name, branches[name], now)
            new += [head] if head is not None else []
    for pattern in row.tree_spec.tags:
        heads = head_lines.tag_heads(lines.get(pattern, []), pattern, tags, now)
        new += heads
        if not heads and pattern not in lines:
            missing.append(f"no tag that matches {pattern}")
    if found.truncated:
        missing.append("more tags than the lab reads; write narrower patterns")
    for head in new:
        _insert(session, row.name, head)
    return f"the repository has {', '.join(missing)}" if missing else ""


def _insert(session: Session, tree: str, head: WatchedHead) -> None:
    """Insert a head, unless another process has done so."""
    values = {
        "watch": tree, "ref": head.ref, "name": head.name, "commit": head.commit, "state": head.state,
        "reason": head.reason, "seen_at": head.seen_at, "verdicts": [], "devices": {}, "cut": "",
        "ranged": False,
    }  # fmt: skip
    session.execute(insert(WatchedHead).values(values).on_conflict_do_nothing())


def lines_of(session: Session, tree: str) -> Mapping[str, Sequence[WatchedHead]]:
    """Return the heads of a watched tree by branch or pattern, in the order in which they were first seen."""
    found: dict[str, list[WatchedHead]] = {}
    for head in session.scalars(select(WatchedHead).where(WatchedHead.watch == tree).order_by(WatchedHead.id)):
        found.setdefault(head.ref, []).append(head)
    return found
