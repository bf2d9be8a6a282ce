"""Endpoints of the mail address that one's own results are sent to."""

from __future__ import annotations

from fastapi import APIRouter

from wqlab_contracts.api.mail_address import MailAddressChange, MailAddressRequest, MailAddressView
from wqlab_contracts.enums import AuditAction

from ..http.audit import Audit
from ..http.auth import Principal, SignedIn
from ..http.deps import AppSettings, Data, Db
from ..http.paging import plain_text
from ..http.problems import documented
from ..models import User
from ..storage.db import clock
from . import mail_addresses

router = APIRouter(prefix="/mail-address", tags=["mail address"], responses=documented(401, 403, 422, 429))


@router.get("")
def get_mail_address(session: Db, settings: AppSettings, principal: SignedIn) -> MailAddressView:
    """One's own mail address, and the one that waits to be confirmed."""
    return mail_addresses.view(session, settings, _account(principal))


@router.put("", responses=documented(400, 409, rules="`address` is no mail address, a mailing list, or the lab's own"))
def ask_mail_address(
    *, body: MailAddressRequest, session: Db, settings: AppSettings, data: Data, principal: SignedIn, audit: Audit
) -> MailAddressView:
    """Enter one's mail address. It gets a mail with a link, and nothing else until the address is confirmed by that
    link; an address that was confirmed before stays in use until then. An account can ask for 5 links a day,
    and an address gets at most 3 a day (429)."""
    wanted = plain_text("address", body.address, "body")
    account = _account(principal)
    user = session.get_one(User, account)
    _, asked = mail_addresses.ask(session, settings, data.current(), user, wanted, now=clock(session))
    if asked:
        audit.record(session, AuditAction.ASK_MAIL_ADDRESS, f"user/{user.name}", address=wanted)
    session.flush()
    return mail_addresses.view(session, settings, account)


@router.patch("", responses=documented(400, 409))
def switch_result_mails(
    body: MailAddressChange, session: Db, settings: AppSettings, principal: SignedIn, audit: Audit
) -> MailAddressView:
    """Switch the mails with one's results on or off. Confirming an address switches them on. 409 without a confirmed
    address."""
    account = _account(principal)
    if mail_addresses.switch(session, account, on=body.mail_results):
        audit.record(session, AuditAction.SWITCH_RESULT_MAILS, f"user/{principal.owner}", on=body.mail_results)
    session.flush()
    return mail_addresses.view(session, settings, account)


@router.delete("")
def remove_mail_address(session: Db, settings: AppSettings, principal: SignedIn, audit: Audit) -> MailAddressView:
    """Forget one's mail address, confirmed or not."""
    account = _account(principal)
    if mail_addresses.remove(session, account):
        audit.record(session, AuditAction.REMOVE_MAIL_ADDRESS, f"user/{principal.owner}")
    session.flush()
    return mail_addresses.view(session, settings, account)


def _account(principal: Principal) -> int:
    """Return the id of the caller's account, which everyone with the scope `read` has but visitors."""
    assert principal.user_id is not None  # noqa: S101 - `SignedIn` lets in neither workers nor visitors
    return principal.user_id
