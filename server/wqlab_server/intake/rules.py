"""Rules of watched lists: those of the data folder, and those that are made, changed and switched over the API."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.enums import AuditAction
from wqlab_contracts.messages import Series, Target, ThreadSeries
from wqlab_contracts.rule_references import reference_problems
from wqlab_contracts.specs.rules import ListRule
from wqlab_contracts.yamlfile import dotted

from ..http.problems import ApiProblem, invalid, not_found
from ..models import StoredRule
from ..orders import orders
from ..storage.audit import OPERATOR, record
from ..storage.db import clock
from ..storage.owners import UnusableOwner, owner_of

FOLDER = "intake/rules"
SOURCE = "list"
"""Name of the source of the series that rules take."""


def budget_name(name: str) -> str:
    """Return the name of the budget that the submissions of a rule use."""
    return f"rule {name}"


def request_of(rule: ListRule, message_id: str, revision: int, targets: Sequence[str]) -> SubmissionRequest:
    """Return the request of a submission that measures a revision. Raises ValidationError for an invalid Message-ID."""
    pairs = (target.partition("@") for target in targets)
    return SubmissionRequest(
        series=Series(thread=ThreadSeries(message_id=message_id, revision=revision or None)),
        tree=rule.tree,
        targets=[Target(plan=plan, device_type=device_type) for plan, _, device_type in pairs],
    )


def sync_files(session: Session, data: DataFolder) -> None:
    """Store the rules of the data folder. A rule of the same name that was made over the API is replaced."""
    now = clock(session)
    stored = {row.name: row for row in session.scalars(select(StoredRule).with_for_update())}
    for name, row in stored.items():
        if row.from_file and name not in data.list_rules:
            session.delete(row)
            record(session, OPERATOR, AuditAction.REMOVE_RULE, f"rule/{name}", file=f"{FOLDER}/{name}.yaml")
    for name, rule in data.list_rules.items():
        known = stored.get(name)
        if known is not None and known.from_file and known.rule == rule:
            continue
        action = AuditAction.CREATE_RULE if known is None else AuditAction.CHANGE_RULE
        record(session, OPERATOR, action, f"rule/{name}", file=f"{FOLDER}/{name}.yaml", rule=audited(rule))
        row = known or StoredRule(name=name)
        session.add(row)
        enabled_at = row.enabled_at or now
        row.rule, row.from_file, row.changed_at, row.changed_by = rule, True, now, OPERATOR.name
        orders.try_again(session, budget_name(name))
        row.enabled_at = enabled_at if rule.enabled else None


def lock(session: Session, name: str) -> StoredRule:
    """Lock and return a rule. Raises ApiProblem 404."""
    row = session.scalar(select(StoredRule).where(StoredRule.name == name).with_for_update())
    if row is None:
        raise not_found("rule", name)
    return row


def create(session: Session, data: DataFolder, rule: ListRule, by: str) -> StoredRule:
    """Store a new rule, switched off. Raises ApiProblem 409 if its name is used, 422 with all mistakes."""
    if session.get(StoredRule, rule.name) is not None:
        raise ApiProblem(409, f"there is a rule {rule.name} already; change it, or choose another name")
    _check(session, data, rule)
    if rule.enabled:
        detail = "a new rule is switched off: look at its preview, then switch it on"
        raise invalid([{"pointer": "/enabled", "detail": detail}])
    row = StoredRule(name=rule.name, rule=rule, from_file=False, changed_by=by)
    session.add(row)
    session.flush()
    return row


def change(session: Session, data: DataFolder, name: str, rule: ListRule, by: str) -> StoredRule:
    """Replace a rule. It stays on or off.

    Raises ApiProblem 404, 409 for a rule of the data folder, 422 with all mistakes.
    """
    row = lock(session, name)
    _check_not_from_file(row)
    if rule.name != name:
        raise invalid([{"pointer": "/name", "detail": f"must be {name}; make a new rule to change the name"}])
    if rule.enabled != (row.enabled_at is not None):
        raise invalid([{"pointer": "/enabled", "detail": f"switch the rule with POST /api/v1/rules/{name}/on or /off"}])
    _check(session, data, rule)
    row.rule, row.changed_at, row.changed_by = rule, clock(session), by
    orders.try_again(session, budget_name(name))
    return row


def switch(session: Session, data: DataFolder, name: str, by: str, *, on: bool) -> tuple[StoredRule, bool]:
    """Switch a rule on or off; return the rule, and True if its state changed.

    Raises ApiProblem 404, 409 for a rule of the data folder, 422 if a rule to be switched on has mistakes.
    """
    row = lock(session, name)
    _check_not_from_file(row)
    if on == (row.enabled_at is not None):
        return row, False
    if on:
        _check(session, data, row.rule)
    now = clock(session)
    row.enabled_at = now if on else None
    row.rule, row.changed_at, row.changed_by = row.rule.model_copy(update={"enabled": on}), now, by
    return row, True


def remove(session: Session, name: str) -> None:
    """Remove a rule. Its decisions stay. Raises ApiProblem 404, and 409 for a rule of the data folder."""
    row = lock(session, name)
    _check_not_from_file(row)
    session.delete(row)


def problems(session: Session, data: DataFolder, rule: ListRule) -> list[tuple[str, str]]:
    """Return the problems of what the rule names (tree, plans, device types, archive, account) as pairs of field and
    detail."""
    found = [(dotted(location), detail) for location, detail in reference_problems(rule, data)]
    try:
        owner_of(session, rule.owner)
    except UnusableOwner as error:
        found.append(("owner", str(error)))
    return found


def _check(session: Session, data: DataFolder, rule: ListRule) -> None:
    """Raise ApiProblem 422 if the rule names a tree, plan, device type, archive or account that the lab cannot use."""
    found = problems(session, data, rule)
    if found:
        pointers = (("/" + field.replace("[", "/").replace("]", ""), detail) for field, detail in found)
        raise invalid([{"pointer": pointer, "detail": detail} for pointer, detail in pointers])


def _check_not_from_file(row: StoredRule) -> None:
    if row.from_file:
        raise ApiProblem(409, f"rule {row.name} is of the file {FOLDER}/{row.name}.yaml; change or delete the file")


def audited(rule: ListRule) -> dict[str, object]:
    """Return the fields of a rule that the audit log stores: those that differ from their defaults."""
    return rule.model_dump(mode="json", exclude_defaults=True)
