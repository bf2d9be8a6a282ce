"""Announce to webhooks that a bisection has found its commit."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.api.webhooks import CulpritNotice, WebhookCulprit
from wqlab_contracts.enums import BisectionState, OutboxEvent, Scale
from wqlab_contracts.units import effect_unit

from ..models import Bisection, BisectionStep, HistoryShift, PendingEvent
from ..storage.announcements import announce


def announce_culprit(session: Session, row: Bisection, ends: BisectionStep, confirmed: BisectionStep) -> None:
    """Record that a bisection has found its commit. `ends`: good against bad; `confirmed`: the commit against its
    parent."""
    announce(
        session,
        OutboxEvent.CULPRIT_FOUND,
        row.id,
        submission_id=ends.submission_id,
        bisection=row.id,
        confirmed_by=confirmed.submission_id,
        verdict=None if confirmed.verdict is None else confirmed.verdict.value,
    )


def culprit_notice(session: Session, event: PendingEvent, url: str) -> CulpritNotice:
    """Return what a webhook says about the commit. `url`: of the lab."""
    row = session.get_one(Bisection, event.detail["bisection"])
    shift = session.scalar(
        select(HistoryShift.id).where(HistoryShift.bisection_id == row.id).order_by(HistoryShift.id).limit(1)
    )
    request = row.request
    return CulpritNotice.model_validate(
        {
            "type": OutboxEvent.CULPRIT_FOUND,
            "timestamp": event.at,
            "data": WebhookCulprit.model_validate(
                {
                    **{name: getattr(row, name) for name in _OF_BISECTION},
                    **{name: getattr(request, name) for name in _OF_REQUEST},
                    "bisection": row.id,
                    "url": f"{url}/bisections/{row.id}",
                    "headline": headline(row),
                    "shift": shift,
                    "failure": row.failure_title,
                    "submission": event.submission_id,
                    "confirmed_by": event.detail["confirmed_by"],
                    "subject": row.culprit_subject,
                    "author": row.culprit_author,
                    "is_merge": row.culprit_is_merge,
                    "verdict": event.detail["verdict"],
                    "effect": row.culprit_effect,
                    "ci95": _interval(row),
                    "effect_unit": "" if row.scale is None else effect_unit(row.scale, row.unit),
                }
            ),
        }
    )


_OF_BISECTION = ("owner", "watch", "good", "bad", "state", "first", "culprit", "probability")
_OF_REQUEST = ("tree", "plan", "device_type", "scenario", "setting", "metric")


def _interval(row: Bisection) -> tuple[float, float] | None:
    if row.culprit_ci_low is None or row.culprit_ci_high is None:
        return None
    return row.culprit_ci_low, row.culprit_ci_high


def headline(row: Bisection) -> str:
    """Return the result in one sentence."""
    commit = (row.culprit or "")[:12]
    if row.state is BisectionState.RANGE:
        commit = f"one of the commits {(row.first or '')[:12]}..{commit}"
    where = f"{row.request.plan} on {row.request.device_type}"
    subject = f' ("{row.culprit_subject}")'
    if row.request.metric is None:
        return f"{where}: the kernel fails from {commit}{subject} on: {row.failure_title}"
    return f"{where}: {commit}{subject} changes {row.request.metric}{_by(row)}"


def _by(row: Bisection) -> str:
    if row.culprit_effect is None or row.scale is None:
        return ""
    unit = effect_unit(row.scale, row.unit)
    number = f"{row.culprit_effect:+.2f}" if row.scale is Scale.RATIO else f"{row.culprit_effect:+.6g}"
    return f" by {number} {unit}".rstrip()
