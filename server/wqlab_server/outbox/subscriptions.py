"""Subscribe accounts to results, end subscriptions, and find those that a result is for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, and_, false, func, or_, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.subscriptions import SubscriptionRequest, SubscriptionView
from wqlab_contracts.api.webhooks import CulpritNotice, SubmissionNotice, WebhookTarget
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.enums import OutboxEvent, SubscriptionKind, Verdict
from wqlab_contracts.mail import address_of
from wqlab_contracts.yamlfile import suggest_name

from ..http.problems import ApiProblem, invalid, not_found
from ..models import MailAddress, PendingEvent, Subscription, User, Webhook
from ..settings import Settings
from . import subscribed_results, webhooks
from .personal_mail import is_active

SUBSCRIPTIONS_PER_ACCOUNT = 50
_KINDS = {
    OutboxEvent.SUBMISSION_FINISHED: (SubscriptionKind.MY_SERIES, SubscriptionKind.DEVICE_TYPE),
    OutboxEvent.REGRESSION_FOUND: (SubscriptionKind.REGRESSIONS,),
}
"""Event -> the kinds of subscriptions that post it to a webhook."""


def create(session: Session, data: DataFolder, user_id: int, request: SubscriptionRequest) -> tuple[Subscription, bool]:
    """Subscribe an account. Return the subscription, and False if the account had it already.

    Raises ApiProblem 409 if the account has too many, and 422 with every mistake.
    """
    session.scalars(select(User.id).where(User.id == user_id).with_for_update()).one()
    if mistakes := _mistakes(session, data, user_id, request):
        raise invalid(mistakes)
    own = and_(Subscription.user_id == user_id, Subscription.removed_at.is_(None))
    fields = request.model_dump()
    same = [getattr(Subscription, name).is_not_distinct_from(value) for name, value in fields.items()]
    known = session.scalar(select(Subscription).where(own, *same))
    if known is not None:
        return known, False
    if (session.scalar(select(func.count(Subscription.id)).where(own)) or 0) >= SUBSCRIPTIONS_PER_ACCOUNT:
        raise ApiProblem(409, f"you have {SUBSCRIPTIONS_PER_ACCOUNT} subscriptions; remove one first")
    made = Subscription(user_id=user_id, **fields)
    session.add(made)
    session.flush()
    session.refresh(made)
    return made, True


def _mistakes(session: Session, data: DataFolder, user_id: int, request: SubscriptionRequest) -> list[dict[str, str]]:
    """Return every mistake of a request, with its place."""
    kind, found = request.kind, dict[str, str]()
    if kind is SubscriptionKind.DEVICE_TYPE and request.device_type is None:
        found["device_type"] = "name the device type"
    if kind is SubscriptionKind.REGRESSIONS and request.plan is None:
        found["plan"] = "name the plan"
    if kind is not SubscriptionKind.REGRESSIONS and request.plan is not None:
        found["plan"] = "only a subscription to regressions has a plan"
    if kind is SubscriptionKind.MY_SERIES and request.device_type is not None:
        found["device_type"] = "a subscription to your series is for every device type"
    if request.plan is not None and request.plan not in data.plans:
        found.setdefault("plan", f"no plan {request.plan}; {suggest_name(request.plan, data.plans)}")
    if request.device_type is not None and not data.has_device_type(request.device_type):
        hint = suggest_name(request.device_type, data.device_types)
        found.setdefault("device_type", f"no device type {request.device_type}; {hint}")
    if request.webhook_id is not None:
        own = select(Webhook.id).join(User, User.name == Webhook.owner)
        own = own.where(User.id == user_id, Webhook.id == request.webhook_id, Webhook.removed_at.is_(None))
        if session.scalar(own) is None:
            found["webhook_id"] = f"you have no webhook {request.webhook_id}"
    return [{"pointer": f"/{field}", "detail": detail} for field, detail in found.items()]


def get(session: Session, subscription_id: int, user_id: int) -> Subscription:
    """Lock and return a subscription of an account. Raises ApiProblem 404."""
    own = select(Subscription).where(Subscription.id == subscription_id, Subscription.user_id == user_id)
    row = session.scalar(own.with_for_update())
    if row is None:
        raise not_found("subscription", subscription_id)
    return row


def end(session: Session, rows: Sequence[Subscription], by: str, now: datetime) -> list[Subscription]:
    """End subscriptions of one account, and drop what waits because of them alone. Return those that were active."""
    ended = [row for row in rows if row.removed_at is None]
    for row in ended:
        row.removed_at = now
    session.flush()
    if ended:
        subscribed_results.drop_unwanted(session, ended[0].user_id, by, now)
    return ended


# --- which subscriptions a result is for --------------------------------------------------------------------------


def by_mail(session: Session, notice: SubmissionNotice, *, only_mine: bool) -> dict[int, list[Subscription]]:
    """Return account -> its subscriptions by mail that a finished submission is for.

    Later subscriptions are left out. Accounts that may not read the lab any more or have no
    confirmed address get no mail.
    """
    found: dict[int, list[Subscription]] = {}
    kinds = (SubscriptionKind.MY_SERIES,) if only_mine else tuple(SubscriptionKind)
    for row, user, address in _candidates(session, notice, kinds, Subscription.webhook_id.is_(None)):
        if address is not None and is_for(row, notice.data.targets, mine=is_mine(notice, user, address)):
            found.setdefault(user.id, []).append(row)
    return found


def post_to_webhooks(
    session: Session, settings: Settings, event: PendingEvent, notice: SubmissionNotice, now: datetime
) -> int:
    """Write a delivery for each webhook that a subscription names; return their number.

    A webhook that gets the event by its own filter too gets it once.
    """
    body, written = notice.model_dump_json(), 0
    kinds = _KINDS.get(event.event, ())
    for row, user, address in _candidates(session, notice, kinds, Subscription.webhook_id.is_not(None)):
        webhook = session.get_one(Webhook, row.webhook_id)
        usable = webhook.removed_at is None and webhook.paused_at is None and webhook.owner == user.name
        if usable and is_for(row, notice.data.targets, mine=is_mine(notice, user, address)):
            written += webhooks.write_to(session, settings, webhook, event, body, now=now)
    return written


def post_culprit_to_webhooks(
    session: Session, settings: Settings, event: PendingEvent, notice: CulpritNotice, now: datetime
) -> int:
    """Write a `culprit.found` delivery for each webhook that is subscribed to regressions of its plan and device type.

    Return the number of deliveries. A metric that improved gets none; a kernel failure counts as a regression.
    """
    found, body, written = notice.data, notice.model_dump_json(), 0
    if found.metric is not None and found.verdict is not Verdict.REGRESSION:
        return 0
    rows = session.execute(
        select(Webhook)
        .join(Subscription, Subscription.webhook_id == Webhook.id)
        .join(User, and_(User.id == Subscription.user_id, User.name == Webhook.owner))
        .where(
            Subscription.kind == SubscriptionKind.REGRESSIONS,
            Subscription.plan == found.plan,
            or_(Subscription.device_type.is_(None), Subscription.device_type == found.device_type),
            Subscription.removed_at.is_(None),
            Subscription.created_at <= notice.timestamp,
            Webhook.removed_at.is_(None),
            Webhook.paused_at.is_(None),
            is_active(),
        )
        .order_by(Webhook.id)
    ).scalars()
    for webhook in rows:
        written += webhooks.write_to(session, settings, webhook, event, body, now=now)
    return written


def _candidates(
    session: Session,
    notice: SubmissionNotice,
    kinds: Sequence[SubscriptionKind],
    way: ColumnElement[bool],
) -> list[tuple[Subscription, User, MailAddress | None]]:
    """Return the active subscriptions that may be for a submission, with their account and its confirmed address."""
    author = address_of(notice.data.author).lower()
    of_kind = {
        SubscriptionKind.MY_SERIES: or_(
            User.name == notice.data.owner, func.lower(MailAddress.address) == author if author else false()
        ),
        SubscriptionKind.DEVICE_TYPE: Subscription.device_type.in_(
            sorted({target.device_type for target in notice.data.targets})
        ),
        SubscriptionKind.REGRESSIONS: Subscription.plan.in_(sorted({target.plan for target in notice.data.targets})),
    }
    rows = session.execute(
        select(Subscription, User, MailAddress)
        .join(User, User.id == Subscription.user_id)
        .outerjoin(MailAddress, and_(MailAddress.user_id == User.id, MailAddress.address.is_not(None)))
        .where(
            or_(*(and_(Subscription.kind == kind, of_kind[kind]) for kind in kinds)) if kinds else User.id.is_(None),
            Subscription.removed_at.is_(None),
            Subscription.created_at <= notice.timestamp,
            is_active(),
            way,
        )
        .order_by(User.id, Subscription.id)
    )
    return [(row, user, address) for row, user, address in rows]


def is_mine(notice: SubmissionNotice, user: User, address: MailAddress | None) -> bool:
    """Return True if the account owns the submission, or the author's address is its confirmed one."""
    author = address_of(notice.data.author).lower()
    confirmed = (address.address or "").lower() if address is not None else ""
    return notice.data.owner == user.name or (author != "" and author == confirmed)


def is_for(row: Subscription, targets: Sequence[WebhookTarget], *, mine: bool) -> bool:
    """Return True if a subscription matches these targets: at least one has the plan and device type it names."""
    if row.kind is SubscriptionKind.MY_SERIES:
        return mine
    if row.kind is SubscriptionKind.DEVICE_TYPE:
        return any(target.device_type == row.device_type for target in targets)
    return any(
        target.plan == row.plan
        and target.verdict is Verdict.REGRESSION
        and row.device_type in {None, target.device_type}
        for target in targets
    )


# --- views ------------------------------------------------------------------------------------------------------


def text_of(row: Subscription) -> str:
    """Return in words what a subscription is about."""
    if row.kind is SubscriptionKind.MY_SERIES:
        return "my series"
    if row.kind is SubscriptionKind.DEVICE_TYPE:
        return f"results on {row.device_type}"
    return f"regressions of {row.plan}" + (f" on {row.device_type}" if row.device_type else "")


def view(session: Session, row: Subscription) -> SubscriptionView:
    webhook = session.get(Webhook, row.webhook_id) if row.webhook_id is not None else None
    return SubscriptionView(
        id=row.id,
        kind=row.kind,
        device_type=row.device_type,
        plan=row.plan,
        webhook_id=row.webhook_id,
        webhook_url=webhook.url if webhook is not None else None,
        text=text_of(row),
        created_at=row.created_at,
        removed_at=row.removed_at,
    )
