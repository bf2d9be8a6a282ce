"""Watched trees: add, change, switch and remove them, and read their heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import structlog
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import SERVER_QUEUE, TICK
from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages.lookups import LookupJob, LookupResult
from wqlab_contracts.specs import Tree
from wqlab_contracts.specs import WatchedTree as Spec
from wqlab_contracts.yamlfile import suggest_name

from ..http.git_urls import url_problem
from ..http.problems import ApiProblem, invalid, not_found
from ..jobs import claims
from ..models import BranchList, WatchedHead, WatchedTree
from ..orders import orders
from ..settings import Settings
from ..storage.db import Message, clock, post
from ..storage.owners import UnusableOwner, owner_of
from . import head_lines

log = structlog.get_logger(__name__)

OPERATOR = "operator"
"""Author of the watched trees of the data folder."""
FILE = "intake/watched-trees.yaml"
SOURCE = "tree"
"""Name of the source of the heads' orders."""
_TAKEN = "somebody watched another repository by this name; choose another one in the data folder"
RETRY_AFTER = timedelta(minutes=5)
"""Time after a look that failed until the next one, unless `every_minutes` is shorter."""


def budget_name(name: str) -> str:
    """Return the name of the budget that the submissions of a watched tree use."""
    return f"watched tree {name}"


def repository_of(spec: Spec, data: DataFolder) -> Tree:
    """Return the tree that the heads are fetched from: that of the lab, with the watched URL.

    Raises KeyError if the lab has no such tree.
    """
    tree = data.trees[spec.tree]
    return data.with_origin(tree if spec.url is None else tree.model_copy(update={"url": spec.url}))


def url_of(spec: Spec, data: DataFolder) -> str:
    """Return the URL that is looked at; an empty string if the lab has no such tree any more."""
    return repository_of(spec, data).url or "" if spec.tree in data.trees else ""


# --- add, change, remove ----------------------------------------------------------------------------------------


def get(session: Session, name: str, *, lock: bool = False) -> WatchedTree:
    """Return a watched tree. Raises ApiProblem 404 if there is none, or it is removed."""
    query = select(WatchedTree).where(WatchedTree.name == name, WatchedTree.removed_at.is_(None))
    found = session.scalar(query.with_for_update() if lock else query)
    if found is None:
        raise not_found("watched tree", name)
    return found


def add(session: Session, spec: Spec, data: DataFolder, settings: Settings, *, by: str) -> WatchedTree:
    """Add a watched tree, or one again that was removed: its heads are known then.

    Raises ApiProblem 409 if there is one of this name, or was one of another repository, 422 with the mistakes of the
    spec.
    """
    check(session, spec, data, settings)
    known = session.scalar(select(WatchedTree).where(WatchedTree.name == spec.name).with_for_update())
    if known is not None and known.removed_at is None:
        raise ApiProblem(409, f"watched tree {spec.name} exists already; change it, or choose another name")
    _refuse_other_repository(session, known, spec)
    return _write(session, known, spec, by, from_file=False)


def change(session: Session, name: str, spec: Spec, data: DataFolder, settings: Settings, *, by: str) -> WatchedTree:
    """Replace the spec of a watched tree. Heads that wait are measured as the new one says.

    Raises ApiProblem 404, 409 if the data folder defines it or its heads are of another repository, 422 with the
    mistakes of the spec.
    """
    row = get(session, name, lock=True)
    _refuse_file(row, "changed")
    if spec.name != name:
        raise invalid([{"pointer": "/name", "detail": f"is {spec.name!r}, but the watched tree is called {name!r}"}])
    check(session, spec, data, settings)
    _refuse_other_repository(session, row, spec)
    return _write(session, row, spec, by, from_file=False)


def switch(session: Session, name: str, *, enabled: bool) -> WatchedTree:
    """Enable or disable a watched tree, also one of the data folder. Raises ApiProblem 404.

    While it is disabled, nothing is looked for or submitted; what is being measured ends.
    """
    row = get(session, name, lock=True)
    if row.enabled is not enabled:
        row.enabled, row.changed_at = enabled, clock(session)
        if enabled:
            _look_now(session, row)
    return row


def remove(session: Session, name: str) -> WatchedTree:
    """Remove a watched tree; its heads are kept. Raises ApiProblem 404, 409 if the data folder defines it."""
    row = get(session, name, lock=True)
    _refuse_file(row, "removed")
    row.removed_at = clock(session)
    return row


def look_now(session: Session, name: str) -> WatchedTree:
    """Request a lookup of the heads now. Raises ApiProblem 404, and 409 if the tree is disabled.

    A lookup that is running may have read the heads before the change, so that another one follows it.
    """
    row = get(session, name, lock=True)
    if not row.enabled:
        raise ApiProblem(409, f"watched tree {name} is disabled; enable it, which also looks for heads")
    _look_now(session, row)
    return row


def _look_now(session: Session, row: WatchedTree) -> None:
    row.due_at = clock(session)
    post(session, Message(TICK, None, SERVER_QUEUE))


def check(session: Session, spec: Spec, data: DataFolder, settings: Settings) -> None:
    """Raise ApiProblem 422 if the spec names a tree, URL, plan, device type or account that the lab cannot use.

    The parameters are not checked here.
    """
    found = []
    if spec.tree not in data.trees:
        found.append({"pointer": "/tree", "detail": f"the lab has no tree {spec.tree!r}; see `wqlab trees`"})
    elif data.trees[spec.tree].url is None:
        found.append({"pointer": "/tree", "detail": f"{spec.tree} is a source package, which has no branches"})
    if spec.url is not None and (problem := url_problem(spec.url, settings.local_git_path_list)) is not None:
        found.append({"pointer": "/url", "detail": problem})
    for index, target in enumerate(spec.targets):
        plan, _, device_type = target.partition("@")
        if plan not in data.plans:
            hint = suggest_name(plan, set(data.plans))
            found.append({"pointer": f"/targets/{index}", "detail": f"no plan {plan!r}; {hint}"})
        if not data.has_device_type(device_type):
            hint = suggest_name(device_type, set(data.device_types))
            found.append({"pointer": f"/targets/{index}", "detail": f"no device type {device_type!r}; {hint}"})
    try:
        owner_of(session, spec.owner)
    except UnusableOwner as error:
        found.append({"pointer": "/owner", "detail": str(error)})
    if found:
        raise invalid(found)


def sync(session: Session, data: DataFolder) -> None:
    """Take in the watched trees of the data folder, and remove those that it no longer has.

    One that a maintainer has disabled stays so until its entry in the file changes.
    """
    rows = {row.name: row for row in session.scalars(select(WatchedTree).order_by(WatchedTree.name).with_for_update())}
    specs = {spec.name: spec for spec in data.watched_trees}
    for name, spec in specs.items():
        row = rows.get(name)
        if row is not None and not row.from_file and _has_heads_of_another(session, row, spec):
            if row.problem != _TAKEN:
                row.removed_at, row.problem = row.removed_at or clock(session), _TAKEN
                log.error("watched_tree_not_taken", name=name, file=FILE, reason=_TAKEN)
        elif row is None or row.removed_at is not None or not row.from_file or row.spec != spec:
            _write(session, row, spec, OPERATOR, from_file=True)
    for name, row in rows.items():
        if row.from_file and row.removed_at is None and name not in specs:
            row.removed_at = clock(session)


def _write(session: Session, row: WatchedTree | None, spec: Spec, by: str, *, from_file: bool) -> WatchedTree:
    now = clock(session)
    if row is None:
        row = WatchedTree(name=spec.name, created_by=by, problem="", created_at=now)
        session.add(row)
    elif row.removed_at is not None:
        row.created_by, row.created_at = by, now
    row.spec, row.enabled, row.from_file = spec, spec.enabled, from_file
    row.changed_at, row.due_at, row.removed_at = now, now, None
    row.problem = ""
    session.flush()
    orders.try_again(session, budget_name(row.name))
    return row


def _refuse_other_repository(session: Session, row: WatchedTree | None, spec: Spec) -> None:
    """Raise ApiProblem 409 if heads of another repository are known by this name: the new one's would be compared with
    them, and they would be fetched from it."""
    if row is not None and _has_heads_of_another(session, row, spec):
        raise ApiProblem(409, f"the heads of {row.name} are those of another repository; choose another name")


def _has_heads_of_another(session: Session, row: WatchedTree, spec: Spec) -> bool:
    if (row.spec.tree, row.spec.url) == (spec.tree, spec.url):
        return False
    return session.scalar(select(WatchedHead.id).where(WatchedHead.tree_name == row.name).limit(1)) is not None


def _refuse_file(row: WatchedTree, what: str) -> None:
    if row.from_file:
        raise ApiProblem(409, f"watched tree {row.name} is defined in {FILE} of the data folder; it is {what} there")


# --- read the heads ---------------------------------------------------------------------------------------------


def look(session: Session, row: WatchedTree, data: DataFolder) -> None:
    """Ask a worker for the heads when they are due, and store those that it found. The caller has locked the row."""
    now = clock(session)
    if row.lookup_id is not None:
        _take(session, row, now)
    if row.lookup_id is None and row.due_at <= now:
        url = url_of(row.spec, data)
        if not url:
            row.problem = f"the lab has no git repository {row.spec.tree!r} any more"
            row.due_at = now + _retry_after(row.spec)
            return
        private = repository_of(row.spec, data).origin == "operator"
        job = LookupJob(url=url, refs=row.spec.ref_patterns, private_network=private)
        lookup = BranchList(owner=f"watched tree {row.name}", payload=job)
        claims.queue(session, lookup)
        row.lookup_id, row.due_at = lookup.id, now + timedelta(minutes=row.spec.every_minutes)


def _take(session: Session, row: WatchedTree, now: datetime) -> None:
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
        row.due_at = min(row.due_at, now + _retry_after(row.spec))
        return
    row.looked_at = lookup.finished_at
    row.problem = store_heads(session, row, lookup.result, now)


def _retry_after(spec: Spec) -> timedelta:
    return min(RETRY_AFTER, timedelta(minutes=spec.every_minutes))


def store_heads(session: Session, row: WatchedTree, found: LookupResult, now: datetime) -> str:
    """Store new heads and return what is missing in the repository; an empty string if nothing is."""
    branches = {branch.name: branch.commit for branch in found.branches}
    tags = {tag.name: tag.commit for tag in found.tags}
    lines = lines_of(session, row.name)
    new: list[WatchedHead] = []
    missing = [f"no branch {name}" for name in row.spec.branches if name not in branches]
    for name in row.spec.branches:
        if name in branches:
            head = head_lines.branch_head(lines.get(name, []), name, branches[name], now)
            new += [head] if head is not None else []
    for pattern in row.spec.tags:
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
        "tree_name": tree, "ref": head.ref, "name": head.name, "commit": head.commit, "state": head.state,
        "reason": head.reason, "seen_at": head.seen_at, "verdicts": [], "devices": {}, "cut": "",
        "ranged": False,
    }  # fmt: skip
    session.execute(insert(WatchedHead).values(values).on_conflict_do_nothing())


def lines_of(session: Session, tree: str) -> Mapping[str, Sequence[WatchedHead]]:
    """Return the heads of a watched tree by branch or pattern, in the order in which they were first seen."""
    found: dict[str, list[WatchedHead]] = {}
    for head in session.scalars(select(WatchedHead).where(WatchedHead.tree_name == tree).order_by(WatchedHead.id)):
        found.setdefault(head.ref, []).append(head)
    return found
