"""Submit two commits of a watched tree within the tree's budget: heads as they come, both sides of a shift, and the
steps of its bisection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import DeviceHealth, UserRole
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import CommitPair, Series, Target
from wqlab_contracts.specs import WatchedTree as Spec

from ..http.problems import ApiProblem
from ..intake import watched_trees
from ..models import (
    Bisection,
    BisectionStep,
    Device,
    HistoryLine,
    HistoryShift,
    Submission,
    User,
    WatchedHead,
    WatchedTree,
)
from ..settings import Settings
from ..storage.db import clock
from ..storage.owners import UnusableOwner, owner_of
from ..submissions import quotas
from ..submissions import service as submissions
from ..submissions.quote_service import make_quote
from ..wait import Wait

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Admitted:
    """Submission of two commits, made for a watched tree."""

    submission: Submission
    quoted_s: float
    cut: str
    """Why it is not measured on each device that measured the commit before; empty if it is."""


def submit_pair(
    session: Session,
    tree: WatchedTree,
    pair: CommitPair,
    targets: Sequence[str],
    *,
    measured_on: Mapping[str, str],
    key: str,
    data: DataFolder,
    settings: Settings,
) -> Admitted:
    """Create the submission of two commits of a watched tree, whose row is locked.

    `targets` are `plan@device-type`, `measured_on` target -> device of an earlier measurement, `key` an idempotency
    key. Raises Wait if the tree, its owner or its budget allows no submission now, ApiProblem if it is refused.
    """
    owner = admit(session, tree, tree.spec.owner)
    spec = tree.spec
    if spec.tree not in data.trees:
        raise Wait(f"the lab has no tree {spec.tree} any more")
    devices, cut = usable_devices(session, measured_on, data)
    request = request_of(spec, pair, targets, devices)
    quote = make_quote(session, data, settings, request, spec.owner)
    if quote.errors:
        raise Wait("; ".join(f"{error.pointer}: {error.detail}" for error in quote.errors))
    quoted_s = quotas.device_s(quote)
    check_budget(session, tree, quoted_s)
    made = submissions.create(
        session,
        data,
        settings,
        request,
        spec.owner,
        idempotency_key=key,
        limited=owner.role is UserRole.SUBMITTER,
        repository=watched_trees.repository_of(spec, data),
    )
    return Admitted(made, quoted_s, cut)


def admit(session: Session, tree: WatchedTree, owner: str) -> User:
    """Return the owner of a submission for a watched tree. Raises Wait if the tree or the owner allows none now."""
    if not tree.enabled or tree.removed_at is not None:
        raise Wait(f"the watched tree {tree.name} is disabled or removed")
    if tree.spec.is_quiet(clock(session)):
        raise Wait("quiet hours")
    try:
        return owner_of(session, owner)
    except UnusableOwner as error:
        raise Wait(str(error)) from None


def request_of(spec: Spec, pair: CommitPair, targets: Sequence[str], devices: Mapping[str, str]) -> SubmissionRequest:
    """Return the request that compares two commits. `targets` are `plan@device-type`, `devices` target -> device."""
    wanted = []
    for each in targets:
        plan, _, device_type = each.partition("@")
        wanted.append(Target(plan=plan, device_type=device_type, parameters=spec.parameters, device=devices.get(each)))
    return SubmissionRequest(
        series=Series(commits=pair), tree=spec.tree, targets=wanted, blocks=spec.blocks, priority=spec.priority
    )


def usable_devices(session: Session, measured_on: Mapping[str, str], data: DataFolder) -> tuple[dict[str, str], str]:
    """Return those of `measured_on` (target -> device) that can measure again, and why the others cannot."""
    usable, gone = {}, []
    for target, name in sorted(measured_on.items()):
        device = session.get(Device, name)
        type_name = target.partition("@")[2]
        units = {unit.name for unit in data.device_type(type_name).units} if data.has_device_type(type_name) else set()
        if device is None or device.retired_at is not None or name not in units:
            gone.append(f"{name}, which measured the head before, is gone")
        elif device.health is DeviceHealth.QUARANTINED:
            gone.append(f"{name}, which measured the head before, is quarantined: {device.health_reason}")
        else:
            usable[target] = name
    return usable, "; ".join(gone)


def check_budget(session: Session, tree: WatchedTree, quoted_s: float) -> None:
    """Raise Wait if the tree's budget of the last 24 hours has less left than the quoted time."""
    now = clock(session)
    budget_s = tree.spec.minutes_a_day * 60.0
    if quoted_s > budget_s:
        raise Wait(
            f"one head takes {quoted_s / 60:.0f} minutes of device time, and minutes_a_day is {tree.spec.minutes_a_day}"
        )
    started = [
        *session.execute(
            select(WatchedHead.quoted_s, WatchedHead.submitted_at).where(
                WatchedHead.tree_name == tree.name, WatchedHead.submitted_at > now - DAY
            )
        ),
        *session.execute(
            select(HistoryShift.quoted_s, HistoryShift.submitted_at)
            .join(HistoryLine, HistoryLine.id == HistoryShift.line_id)
            .where(HistoryLine.tree_name == tree.name, HistoryShift.submitted_at > now - DAY)
        ),
        *session.execute(
            select(BisectionStep.quoted_s, BisectionStep.submitted_at)
            .join(Bisection, Bisection.id == BisectionStep.bisection_id)
            .where(Bisection.watched_tree == tree.name, BisectionStep.submitted_at > now - DAY)
        ),
    ]
    used_s = sum(quoted or 0.0 for quoted, _ in started)
    if used_s + quoted_s > budget_s:
        first = min(at for _, at in started if at is not None)
        raise Wait(
            f"{used_s / 60:.0f} of {tree.spec.minutes_a_day} minutes of device time are used; some is left again at "
            f"{first + DAY:%Y-%m-%d %H:%M} UTC"
        )


def text_of(problem: ApiProblem) -> str:
    """Return the mistakes that a problem lists, or its text."""
    details = [f"{error.get('pointer', '')}: {error['detail']}" for error in problem.errors or [] if "detail" in error]
    return "; ".join(details) or problem.detail
