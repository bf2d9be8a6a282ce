"""Submit two commits of a watched tree within the tree's budget: heads as they come, both sides of a shift, and the
steps of its bisection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import DeviceHealth
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import CommitPair, Series, Target
from wqlab_contracts.specs import WatchedTree as Spec

from ..http.problems import ApiProblem
from ..models import Bisection, BisectionStep, Device, HistoryLine, HistoryShift, WatchedHead, WatchedTree
from ..settings import Settings
from ..submissions import quotas
from ..submissions.quote_service import make_quote

DAY = timedelta(days=1)


class Wait(Exception):
    """No submission is made now; the text says why."""


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


def quote_s(
    session: Session, tree: WatchedTree, request: SubmissionRequest, data: DataFolder, settings: Settings
) -> float:
    """Return the quoted device time of a request in seconds. Raises Wait if the request has mistakes."""
    quote = make_quote(session, data, settings, request, tree.spec.owner)
    if quote.errors:
        raise Wait("; ".join(f"{error.pointer}: {error.detail}" for error in quote.errors))
    return quotas.device_s(quote)


def check_budget(session: Session, tree: WatchedTree, quoted_s: float, now: datetime) -> None:
    """Raise Wait if the tree's budget of the last 24 hours has less left than the quoted time."""
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
