"""Turn events into deliveries: what each event says, and to whom."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.webhooks import (
    DeviceNotice,
    LabNotice,
    Notice,
    SubmissionNotice,
    WebhookDevice,
    WebhookLab,
    WebhookSubmission,
    WebhookTarget,
)
from wqlab_contracts.enums import OutboxEvent, Verdict

from ..bisections.culprits import culprit_notice
from ..models import Device, Lab, LabHost, LastTick, PendingEvent, Submission
from ..outbox import deliveries, webhooks
from ..settings import Settings
from ..storage.announcements import announce
from ..storage.db import SessionFactory, clock, transaction
from ..views.load import target_summaries
from .answers import write_answer
from .culprit_letters import write_culprit_letter
from .kcidb_results import write_result
from .patchwork_checks import write_checks
from .personal_results import write_results
from .tick_errors import isolate_errors

EVENTS_PER_TICK = 100


def send_announcements(factory: SessionFactory, settings: Settings) -> None:
    """Write the deliveries of new events, and wake the workers for the deliveries that are due."""
    with isolate_errors(factory, "outbox", "labs"), transaction(factory) as session:
        announce_lost_labs(session, settings)
    with transaction(factory) as session:
        pending = session.scalars(
            select(PendingEvent.id)
            .where(PendingEvent.handled_at.is_(None))
            .order_by(PendingEvent.id)
            .limit(EVENTS_PER_TICK)
        ).all()
    for event_id in pending:
        with isolate_errors(factory, "outbox", event_id), transaction(factory) as session:
            handle(session, settings, event_id)
    with isolate_errors(factory, "outbox", "due"), transaction(factory) as session:
        deliveries.nudge_due(session, clock(session))


def handle(session: Session, settings: Settings, event_id: int) -> None:
    """Write the deliveries of an event, and mark it as handled."""
    event = session.scalar(
        select(PendingEvent).where(PendingEvent.id == event_id, PendingEvent.handled_at.is_(None)).with_for_update()
    )
    if event is None:
        return
    event.handled_at = now = clock(session)
    notice = notice_of(session, settings, event)
    webhooks.write_deliveries(session, settings, event, notice, now)
    if event.event is OutboxEvent.SUBMISSION_FINISHED:
        submission = session.get_one(Submission, event.submission_id)
        write_answer(session, settings, submission, now)
        write_result(session, settings, submission, now)
        write_results(session, settings, submission, now)
        write_checks(session, settings, submission, now)
    if event.event is OutboxEvent.CULPRIT_FOUND:
        write_culprit_letter(session, settings, event, now)


def notice_of(session: Session, settings: Settings, event: PendingEvent) -> Notice:
    """Return what a webhook says about the event."""
    url = settings.public_url
    if event.event is OutboxEvent.DEVICE_QUARANTINED:
        device = session.get_one(Device, event.device_name)
        return DeviceNotice(
            type=OutboxEvent.DEVICE_QUARANTINED,
            timestamp=event.at,
            data=WebhookDevice(
                device=device.name,
                device_type=device.device_type,
                lab=device.lab,
                reason=event.detail["reason"],
                by=event.detail["by"],
                url=f"{url}/lab/{device.name}",
            ),
        )
    if event.event is OutboxEvent.LAB_LOST:
        return LabNotice(
            type=OutboxEvent.LAB_LOST,
            timestamp=event.at,
            data=WebhookLab(
                lab=event.lab or "",
                last_seen_at=event.detail["last_seen_at"],
                devices=event.detail["devices"],
                url=f"{url}/lab",
            ),
        )
    if event.event is OutboxEvent.CULPRIT_FOUND:
        return culprit_notice(session, event, url)
    assert event.submission_id is not None  # noqa: S101 - every other event is about a submission
    submission = session.get_one(Submission, event.submission_id)
    targets = [
        WebhookTarget(
            run_id=target.run_id,
            plan=target.plan,
            device_type=target.device_type,
            emulated=target.emulated,
            modelled=target.modelled,
            state=target.state,
            outcome=target.outcome,
            verdict=target.verdict,
            headline=target.headline,
        )
        for target in target_summaries(session, [submission.id]).get(submission.id, [])
        if event.event is not OutboxEvent.REGRESSION_FOUND
        or (target.verdict is Verdict.REGRESSION and not target.modelled)
    ]
    return SubmissionNotice(
        type=event.event,
        timestamp=event.at,
        data=WebhookSubmission(
            submission=submission.id,
            url=f"{url}/r/{submission.id}",
            title=submission.title,
            series_key=submission.series_key,
            version=submission.version,
            author=submission.author,
            owner=submission.owner,
            tree=submission.tree,
            outcome=submission.outcome,
            exit_code=submission.exit_code,
            targets=targets,
        ),
    )


def announce_lost_labs(session: Session, settings: Settings) -> None:
    """Announce each lab in use whose worker has not reported for `lab_lost_s`; once until it reports again.

    A lab is not lost because the server was away: the ticks must have followed each other for the same time.
    """
    limit = timedelta(seconds=settings.lab_lost_s)
    running = select(LastTick.running_since).where(LastTick.finished_at > func.now() - limit)
    since = session.scalar(running)
    now = clock(session)
    if since is None or now - since < limit:
        return
    removed = select(LabHost.lab).where(LabHost.removed_at.is_not(None))
    lost = session.execute(
        select(Lab.name, Lab.published_at, func.count(Device.name))
        .join(Device, Device.lab == Lab.name)
        .where(Device.retired_at.is_(None), Lab.published_at < now - limit, Lab.name.not_in(removed))
        .group_by(Lab.name, Lab.published_at)
    )
    for name, last_seen, devices in lost:
        seen = last_seen.isoformat()
        subject = f"{name}/{seen}"
        announce(session, OutboxEvent.LAB_LOST, subject, lab=name, last_seen_at=seen, devices=devices)
