"""Mail the result of a finished submission to the accounts that have subscribed to it.

An account gets one mail for a submission, whatever number of its subscriptions match. A later submission of the same
revision says nothing if its verdicts are the same, as in the answers to series; a verdict that has changed is corrected
in the account's thread, also if the new one matches no subscription.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.api.report import Report
from wqlab_contracts.api.webhooks import SubmissionNotice
from wqlab_contracts.enums import ErrorKind, Outcome
from wqlab_contracts.mail import OutgoingMail
from wqlab_contracts.messages.source_mail import SourceMail

from ..models import Delivery, MailAddress, Submission, SubscribedResult, Subscription
from ..outbox import deliveries, mails, personal_mail, subscribed_results, subscriptions
from ..outbox.personal_mail import COLLECTED, CORRECTION, RESULT
from ..reports import mail as report_mail
from ..reports import personal_mail as texts
from ..reports.personal_mail import COLLECTED_LIMIT, Recipient, Result
from ..reports.stored_report import load_or_assemble
from ..settings import Settings
from ..storage import source_mails
from ..storage.artifacts import ArtifactStore
from ..storage.db import SessionFactory, clock, fetch_dict, transaction
from .tick_errors import isolate_errors


@dataclass(frozen=True)
class _Finished:
    """A finished submission, as subscribers are told of it."""

    submission: Submission
    source: SourceMail | None
    report: Report
    thread: str
    says: dict[str, str]
    """Target -> verdict; empty if the lab has failed."""


def write_results(
    session: Session, settings: Settings, submission: Submission, notice: SubmissionNotice, now: datetime
) -> int:
    """Write or record the mails about a finished submission, and return the number of accounts.

    Nobody is told of a canceled submission. One that failed because of the lab says nothing about the series, so only
    those whose series it is are told.
    """
    if not settings.smtp_host or submission.outcome in {None, Outcome.CANCELED}:
        return 0
    lab_failed = submission.failure is not None and submission.failure.kind is ErrorKind.INFRASTRUCTURE
    source = source_mails.find(session, submission.id)
    thread = thread_of(session, submission, source)
    wanted = subscriptions.by_mail(session, notice, only_mine=lab_failed)
    told = {} if lab_failed else subscribed_results.told_accounts(session, thread)
    if not wanted and not told:
        return 0
    report = load_or_assemble(session, submission, ArtifactStore.of(settings), settings.public_url)
    says = {} if lab_failed else report_mail.says(report)
    teller = _Teller(session, settings, _Finished(submission, source, report, thread, says), now)
    # In one order, since each account is locked: two processes must not wait for each other.
    accounts = sorted(wanted.keys() | told.keys())
    return sum(teller.tell(each, wanted.get(each, []), told.get(each, [])) for each in accounts)


def thread_of(session: Session, submission: Submission, source: SourceMail | None) -> str:
    """Return what the results of one revision have in common: the mail that it came in, else the first submission of a
    chain of retries.

    Whoever uploads an mbox writes its Message-ID, so a mail that the lab has not read itself is a thread of its owner's
    submissions only.
    """
    if source is not None:
        return source.message_id if source.verified else f"{submission.owner} {source.message_id}"
    number, before = submission.id, submission.retry_of
    while before is not None:
        number, before = before, session.scalar(select(Submission.retry_of).where(Submission.id == before))
    return f"submission {number}"


@dataclass(frozen=True)
class _Teller:
    """Tells accounts of one finished submission."""

    session: Session
    settings: Settings
    finished: _Finished
    now: datetime

    def tell(self, user_id: int, matched: list[Subscription], before: list[Subscription]) -> bool:
        """Write the mail to an account, or record the result for the mail of the day; False if nothing is to be told.

        `matched`: its subscriptions that match; `before`: those by which it was told about the thread.
        """
        session, thread, says = self.session, self.finished.thread, self.finished.says
        address = subscribed_results.lock_account(session, user_id)
        if address is None:
            return False
        earlier = subscribed_results.told(session, user_id, thread)
        known = {target: verdict for row in earlier for target, verdict in row.says.items()}
        changed = mails.changes(known, says)
        is_new = bool(matched) and (not earlier or not says or bool(says.keys() - known.keys()))
        why = matched or before
        if not is_new and not changed:
            return False
        row = subscribed_results.record(
            session, user_id, self.finished.submission.id, thread=thread, subscriptions=why, says=says, now=self.now
        )
        if row is None:
            return False
        if subscribed_results.has_room(session, user_id, self.settings.personal_mails_a_day, self.now):
            row.delivery_id = self._write(address, why, changed)
        return True

    def _write(self, address: MailAddress, why: list[Subscription], changed: dict[str, tuple[str, str]]) -> int | None:
        number = self.finished.submission.id
        key = deliveries.key_of("personal", address.user_id, number)
        first = self._first_mail(address.user_id)
        mail = texts.compose(
            self.finished.report,
            self.finished.source,
            _recipient(self.settings, address, why),
            sender=self.settings.mail_from,
            message_id=personal_mail.message_id_of(self.settings, key, number),
            date=self.now,
            first=first,
            changes=changed,
        )
        event = CORRECTION if first is not None and changed else RESULT
        return personal_mail.write(
            self.session, mail, key=key, event=event, user_id=address.user_id, submission_id=number, now=self.now
        )

    def _first_mail(self, user_id: int) -> OutgoingMail | None:
        """Return the first mail of an account about the thread."""
        return self.session.scalar(
            select(Delivery.mail)
            .join(SubscribedResult, SubscribedResult.delivery_id == Delivery.id)
            .where(SubscribedResult.user_id == user_id, SubscribedResult.thread == self.finished.thread)
            .order_by(SubscribedResult.id)
            .limit(1)
        )


def _recipient(settings: Settings, address: MailAddress, why: list[Subscription]) -> Recipient:
    names = list(dict.fromkeys(map(subscriptions.text_of, why)))
    return Recipient(address.address or "", names, f"{settings.public_url}/account#subscriptions")


# --- above the daily limit ----------------------------------------------------------------------------------------


def collect_results(factory: SessionFactory, settings: Settings) -> None:
    """Write one mail to each account about the results of earlier days that were above its daily limit."""
    if not settings.smtp_host:
        return
    with transaction(factory) as session:
        accounts = subscribed_results.accounts_to_collect(session, clock(session))
    for user_id in accounts:
        with isolate_errors(factory, "outbox", f"collected/{user_id}"), transaction(factory) as session:
            write_collected(session, settings, user_id, clock(session))


def write_collected(session: Session, settings: Settings, user_id: int, now: datetime) -> int | None:
    """Write the mail about the results of earlier days that no mail has yet; None if there are none."""
    address = subscribed_results.lock_account(session, user_id)
    if address is None:
        return None
    rows = subscribed_results.to_collect(session, user_id, COLLECTED_LIMIT, now)
    if not rows:
        return None
    numbers = [row.submission_id for row in rows]
    titles = fetch_dict(session, select(Submission.id, Submission.title).where(Submission.id.in_(numbers)))
    behind = {number for row in rows for number in row.subscription_ids}
    active = Subscription.id.in_(behind), Subscription.removed_at.is_(None)
    why = session.scalars(select(Subscription).where(*active).order_by(Subscription.id)).all()
    key = deliveries.key_of("personal", user_id, COLLECTED, rows[0].id)
    mail = texts.compose_collected(
        [Result(row.submission_id, titles[row.submission_id], row.says) for row in rows],
        _recipient(settings, address, list(why)),
        sender=settings.mail_from,
        message_id=personal_mail.message_id_of(settings, key, COLLECTED),
        date=now,
        when=subscribed_results.days_of(rows),
        lab_url=settings.public_url,
    )
    number = personal_mail.write(session, mail, key=key, event=COLLECTED, user_id=user_id, submission_id=None, now=now)
    for row in rows:
        row.delivery_id = number
    return number
