"""Write checks to a Patchwork for its series: when the lab begins to measure, and with the result."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.api.submissions import TargetSummary
from wqlab_contracts.archives_file import read_archives
from wqlab_contracts.enums import Outcome, SubmissionState
from wqlab_contracts.mail import address_of
from wqlab_contracts.messages import TakenThread
from wqlab_contracts.specs import Archive
from wqlab_contracts.target_checks import ORDER, Status, kind_of, status_of, text_of

from ..models import Apply, Submission
from ..outbox import patchwork
from ..outbox.patchwork import PatchCheck, State
from ..settings import Settings
from ..views.build import taken_thread
from ..views.load import target_summaries

_STATES: dict[Status, State] = {"pass": "success", "warn": "warning", "fail": "fail"}


def write_checks(session: Session, settings: Settings, submission: Submission, now: datetime) -> None:
    """Write a check of the series' last patch, whose tree is the measured one, for each plan and device type."""
    thread = taken_thread(session.scalars(select(Apply).where(Apply.submission_id == submission.id)).one())
    patches = [mail.message_id for mail in thread.mails if mail.role == "patch"] if thread else []
    if thread is None or not patches:
        return
    for archive in read_archives(settings.data_dir)[0]:
        if not is_told(archive, thread, submission.owner):
            continue
        targets: dict[str, list[TargetSummary]] = defaultdict(list)
        for target in target_summaries(session, [submission.id]).get(submission.id, []):
            targets[context_of(target)].append(target)
        for context, each in targets.items():
            state, text = _said(submission, each)
            check = PatchCheck(
                archive=archive.name,
                message_id=patches[-1],
                context=context,
                state=state,
                description=text,
                target_url=f"{settings.public_url}/r/{submission.id}",
            )
            patchwork.write(session, settings, check, submission.id, now)


def is_told(archive: Archive, thread: TakenThread, owner: str) -> bool:
    """Return True if the lab writes checks for the owner's submissions of this series.

    The series was taken from the Patchwork, or the lab has read its mails elsewhere and they went to its list.
    """
    if archive.checks is None or owner not in archive.checks.owners:
        return False
    source = thread.source
    readers = {address_of(each).lower() for each in (*source.to, *source.cc)} if source is not None else set()
    return thread.archive == archive.name or (archive.list or "").lower() in readers


def context_of(target: TargetSummary) -> str:
    """Return the name of a target's check, in characters that Patchwork allows."""
    return "-".join(re.sub(r"[^A-Za-z0-9_]+", "-", each) for each in ("wqlab", target.plan, target.device_type))


def _said(submission: Submission, targets: list[TargetSummary]) -> tuple[State, str]:
    """Return state and text of a check; of the worst target if the plan runs more than once on the device type."""
    worst = max(targets, key=lambda target: ORDER.index(status_of(target)))
    kind = f"{kind_of(worst)}: " if kind_of(worst) else ""
    if submission.state is not SubmissionState.FINISHED:
        return "pending", f"{kind}to be measured"
    if submission.outcome is Outcome.CANCELED:
        return "warning", "canceled, not measured"
    if worst.verdict is None and submission.failure is not None:
        return _STATES[status_of(worst)], f"{submission.failure.kind.value}: {submission.failure.summary}"
    return _STATES[status_of(worst)], f"{kind}{text_of(worst)}"
