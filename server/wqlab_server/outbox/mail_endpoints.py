"""Endpoints with which maintainers approve, change or drop a mail that waits for review.

`GET /deliveries?kind=mail` lists these mails.
"""

from __future__ import annotations

from fastapi import APIRouter

from wqlab_contracts.api.deliveries import DeliveryDetail, DropRequest
from wqlab_contracts.enums import AuditAction
from wqlab_contracts.mail import MailEdit

from ..http.audit import Audit
from ..http.auth import Maintainer
from ..http.deps import Db
from ..http.paging import Id, plain_text
from ..http.problems import documented
from ..storage.db import clock
from . import deliveries, mails, queries

router = APIRouter(prefix="/deliveries", tags=["deliveries"], responses=documented(401, 403, 404, 409, 422, 429))


@router.post("/{delivery_id}/approve")
def approve_mail(delivery_id: Id, session: Db, who: Maintainer, audit: Audit) -> DeliveryDetail:
    """Release a mail that waits for review. Approving it again changes nothing."""
    row = mails.approve(session, delivery_id, who.owner, clock(session))
    audit.record(session, AuditAction.APPROVE_MAIL, f"delivery/{delivery_id}", destination=row.destination)
    session.flush()
    return queries.detail(session, queries.get(session, delivery_id, who))


@router.patch(
    "/{delivery_id}/mail",
    responses=documented(400, rules="an address cannot be sent to, or the text has a control character or a trailer"),
)
def edit_mail(delivery_id: Id, body: MailEdit, session: Db, who: Maintainer, audit: Audit) -> DeliveryDetail:
    """Change recipients, subject or text of a mail that waits for review."""
    mails.edit(session, delivery_id, body)
    changed = sorted(body.model_dump(exclude_none=True))
    audit.record(session, AuditAction.EDIT_MAIL, f"delivery/{delivery_id}", changed=changed)
    session.flush()
    return queries.detail(session, queries.get(session, delivery_id, who))


@router.post("/{delivery_id}/drop", responses=documented(400))
def drop_mail(delivery_id: Id, body: DropRequest, session: Db, who: Maintainer, audit: Audit) -> DeliveryDetail:
    """Decide that a mail that waits is not sent. Dropping it again changes nothing."""
    reason = plain_text("reason", body.reason, "body")
    deliveries.drop(session, delivery_id, who.owner, clock(session), reason, only_mail=True)
    audit.record(session, AuditAction.DROP_MAIL, f"delivery/{delivery_id}", reason=reason or None)
    session.flush()
    return queries.detail(session, queries.get(session, delivery_id, who))
