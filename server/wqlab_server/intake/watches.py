"""Watches: those of the data folder, and those that are made, changed, enabled and removed over the API."""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.celery_names import SERVER_QUEUE, TICK
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.enums import AuditAction
from wqlab_contracts.loading import WATCHES as FOLDER
from wqlab_contracts.messages import Series, Target, ThreadSeries
from wqlab_contracts.specs import ListWatch, TreeWatch
from wqlab_contracts.watch_file import reference_problems
from wqlab_contracts.yamlfile import Location

from ..http.git_urls import url_problem
from ..http.problems import ApiProblem, invalid, json_pointer, not_found
from ..models import Watch, WatchedHead
from ..orders import orders
from ..settings import Settings
from ..storage.audit import OPERATOR, record
from ..storage.db import Message, clock, post
from ..storage.owners import UnusableOwner, owner_of

LIST_SOURCE = "list"
"""Name of the source of the series that watches of lists take."""
TREE_SOURCE = "tree"
"""Name of the source of the heads of watched trees."""
_TAKEN = "somebody watched another repository by this name; choose another one in the data folder"
Spec = ListWatch | TreeWatch

log = structlog.get_logger(__name__)


def request_of(watch: ListWatch, message_id: str, revision: int, targets: Sequence[str]) -> SubmissionRequest:
    """Return the request of a submission that measures a revision. Raises ValidationError for an invalid Message-ID."""
    pairs = (target.partition("@") for target in targets)
    return SubmissionRequest(
        series=Series(thread=ThreadSeries(message_id=message_id, revision=revision or None)),
        tree=watch.tree,
        targets=[Target(plan=plan, device_type=device_type) for plan, _, device_type in pairs],
    )


def audited(spec: Spec) -> dict[str, object]:
    """Return the fields of a watch that the audit log stores: those that differ from their defaults."""
    return spec.model_dump(mode="json", exclude_defaults=True)


# --- read -------------------------------------------------------------------------------------------------------


def get(session: Session, name: str, *, lock: bool = False) -> Watch:
    """Return a watch. Raises ApiProblem 404 if there is none, or it is removed."""
    query = select(Watch).where(Watch.name == name, Watch.removed_at.is_(None))
    row = session.scalar(query.with_for_update() if lock else query)
    if row is None:
        raise not_found("watch", name)
    return row


def list_spec(row: Watch) -> ListWatch:
    """Return the spec of a watch of a list. Raises ApiProblem 409 for one of a tree."""
    if not isinstance(row.spec, ListWatch):
        raise ApiProblem(409, f"watch {row.name} is of a tree, which has heads; decisions and previews are of lists")
    return row.spec


def tree_spec(row: Watch) -> TreeWatch:
    """Return the spec of a watch of a tree. Raises ApiProblem 409 for one of a list."""
    if not isinstance(row.spec, TreeWatch):
        raise ApiProblem(409, f"watch {row.name} is of a list, which has decisions; heads are of trees")
    return row.spec


# --- create, change, remove -------------------------------------------------------------------------------------


def sync_files(session: Session, data: DataFolder) -> None:
    """Store the watches of the data folder, and remove those that it no longer has.

    A watch of the same name that was made over the API is replaced. One that a maintainer has enabled or disabled stays
    so until its file changes.
    """
    stored = {row.name: row for row in session.scalars(select(Watch).with_for_update())}
    for name, row in stored.items():
        if row.from_file and row.removed_at is None and name not in data.watches:
            row.enabled_at, row.removed_at = None, clock(session)
            record(session, OPERATOR, AuditAction.REMOVE_WATCH, f"watch/{name}", file=f"{FOLDER}/{name}.yaml")
    for name, spec in data.watches.items():
        known = stored.get(name)
        if known is not None and known.from_file and known.removed_at is None and known.spec == spec:
            continue
        if known is not None and not known.from_file and _has_heads_of_another(session, known, spec):
            if known.problem != _TAKEN:
                known.enabled_at, known.removed_at, known.problem = None, known.removed_at or clock(session), _TAKEN
                log.error("watch_not_taken", name=name, file=f"{FOLDER}/{name}.yaml", reason=_TAKEN)
            continue
        exists = known is not None and known.removed_at is None
        action = AuditAction.CHANGE_WATCH if exists else AuditAction.CREATE_WATCH
        record(session, OPERATOR, action, f"watch/{name}", file=f"{FOLDER}/{name}.yaml", spec=audited(spec))
        _write(session, known, spec, OPERATOR.name, from_file=True)


def create(session: Session, spec: Spec, data: DataFolder, settings: Settings, *, by: str) -> Watch:
    """Store a new watch, disabled, or one again that was removed: its decisions or heads are known then.

    Raises ApiProblem 409 if its name is used, or was for another repository, 422 with all mistakes.
    """
    known = session.scalar(select(Watch).where(Watch.name == spec.name).with_for_update())
    if known is not None and known.removed_at is None:
        raise ApiProblem(409, f"there is a watch {spec.name} already; change it, or choose another name")
    _check(session, spec, data, settings)
    if spec.enabled:
        detail = "a new watch is disabled: see the preview of one of a list, then enable it"
        raise invalid([{"pointer": "/enabled", "detail": detail}])
    _refuse_other_repository(session, known, spec)
    return _write(session, known, spec, by, from_file=False)


def change(session: Session, name: str, spec: Spec, data: DataFolder, settings: Settings, *, by: str) -> Watch:
    """Replace the spec of a watch, which stays enabled or disabled. Heads that wait are measured as the new one says.

    Raises ApiProblem 404, 409 if the data folder defines it or its heads are of another repository, 422 with all
    mistakes.
    """
    row = get(session, name, lock=True)
    _refuse_file(row)
    for field, wanted in (("name", name), ("kind", row.spec.kind)):
        if getattr(spec, field) != wanted:
            detail = f"must be {wanted}; make a new watch to change the {field}"
            raise invalid([{"pointer": f"/{field}", "detail": detail}])
    if spec.enabled != (row.enabled_at is not None):
        detail = f"change this with POST /api/v1/watches/{name}/enable or /disable"
        raise invalid([{"pointer": "/enabled", "detail": detail}])
    _check(session, spec, data, settings)
    _refuse_other_repository(session, row, spec)
    return _write(session, row, spec, by, from_file=False)


def switch(session: Session, name: str, data: DataFolder, *, by: str, enabled: bool) -> tuple[Watch, bool]:
    """Enable or disable a watch, also one of the data folder; return it, and True if that changed it.

    While it is disabled, nothing is read for it or submitted; what is being measured ends. Raises ApiProblem 404, and
    422 if a watch to be enabled has mistakes.
    """
    row = get(session, name, lock=True)
    if enabled == (row.enabled_at is not None):
        return row, False
    if enabled:
        _check(session, row.spec, data)
        _look_now(session, row)
    now = clock(session)
    row.enabled_at, row.changed_at, row.changed_by = now if enabled else None, now, by
    return row, True


def remove(session: Session, name: str) -> None:
    """Remove a watch; its decisions or heads are kept. Raises ApiProblem 404, 409 if the data folder defines it."""
    row = get(session, name, lock=True)
    _refuse_file(row)
    row.enabled_at, row.removed_at = None, clock(session)


def look_now(session: Session, name: str) -> Watch:
    """Request a lookup of a tree's heads now. Raises ApiProblem 404, and 409 if it is disabled, or of a list.

    A lookup that is running may have read the heads before the change, so that another one follows it.
    """
    row = get(session, name, lock=True)
    tree_spec(row)
    if row.enabled_at is None:
        raise ApiProblem(409, f"watch {name} is disabled; enable it, which also looks for heads")
    _look_now(session, row)
    return row


def _look_now(session: Session, row: Watch) -> None:
    row.due_at = clock(session)
    post(session, Message(TICK, None, SERVER_QUEUE))


def _write(session: Session, row: Watch | None, spec: Spec, by: str, *, from_file: bool) -> Watch:
    now = clock(session)
    enabled_at = row.enabled_at if row is not None and row.spec.kind == spec.kind else None
    if row is None or row.removed_at is not None:
        row = row or Watch(name=spec.name)
        row.created_by, row.created_at, row.removed_at = by, now, None
        session.add(row)
    row.spec, row.from_file, row.changed_at, row.changed_by = spec, from_file, now, by
    row.enabled_at = (enabled_at or now) if spec.enabled else None
    row.due_at, row.problem = now, ""
    session.flush()
    orders.try_again(session, row.name)
    return row


# --- check ------------------------------------------------------------------------------------------------------


def problems(session: Session, spec: Spec, data: DataFolder) -> list[tuple[Location, str]]:
    """Return the problems of what a watch names (tree, plans, device types, archive, account): place and text."""
    found = reference_problems(spec, data)
    try:
        owner_of(session, spec.owner)
    except UnusableOwner as error:
        found.append((("owner",), str(error)))
    return found


def _check(session: Session, spec: Spec, data: DataFolder, settings: Settings | None = None) -> None:
    """Raise ApiProblem 422 with all problems of a watch, with `settings` those of its URL too."""
    found = problems(session, spec, data)
    if isinstance(spec, TreeWatch) and spec.url is not None and settings is not None:
        text = url_problem(spec.url, settings.local_git_path_list)
        found += [(("url",), text)] if text is not None else []
    if found:
        raise invalid([{"pointer": json_pointer(place), "detail": text} for place, text in found])


def _refuse_file(row: Watch) -> None:
    if row.from_file:
        raise ApiProblem(409, f"watch {row.name} is of the file {FOLDER}/{row.name}.yaml; change or delete the file")


def _refuse_other_repository(session: Session, row: Watch | None, spec: Spec) -> None:
    """Raise ApiProblem 409 if heads of another repository are known by this name: the new one's would be compared with
    them, and they would be fetched from it."""
    if row is not None and _has_heads_of_another(session, row, spec):
        raise ApiProblem(409, f"the heads of {row.name} are those of another repository; choose another name")


def _has_heads_of_another(session: Session, row: Watch, spec: Spec) -> bool:
    """Return True if the watch has heads, and they are not of the repository of `spec`."""
    if _repository(row.spec) == _repository(spec):
        return False
    return session.scalar(select(WatchedHead.id).where(WatchedHead.watch == row.name).limit(1)) is not None


def _repository(spec: Spec) -> tuple[str, str | None] | None:
    return (spec.tree, spec.url) if isinstance(spec, TreeWatch) else None
