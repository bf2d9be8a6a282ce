"""Endpoints behind the links in personal mails: confirm an address, unsubscribe. They need no sign-in, but a token.

GET only shows a page with a button, because mail servers open links to look for malware; POST acts. A mail client that
knows RFC 8058 sends the POST by itself.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from wqlab_contracts.enums import AuditAction

from ..http.audit import Audit
from ..http.deps import AppSettings, Db
from ..http.problems import ApiProblem, documented, not_found
from ..models import Delivery, MailAddress, Subscription, User
from ..storage.db import clock
from . import link_page, mail_addresses, personal_mail, subscribed_results, subscriptions
from .personal_mail import CONFIRM_PATH, TOKEN_PATTERN, UNSUBSCRIBE_PATH

Token = Annotated[str, Path(pattern=TOKEN_PATTERN, description="From the link in the mail")]


def _pages(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Document a page, and problems that a browser gets as a page."""
    found = documented(*statuses)
    for each in found.values():
        each["content"]["text/html"] = {"schema": {"type": "string"}}
    return {200: {"description": "A page", "content": {"text/html": {"schema": {"type": "string"}}}}, **found}


router = APIRouter(tags=["subscriptions"], default_response_class=Response)


@router.get(f"{CONFIRM_PATH.removeprefix('/api/v1')}/{{token}}", responses=_pages(404, 409, 410, 422, 429))
def show_confirmation(token: Token, request: Request, session: Db) -> Response:
    """Show the page that confirms a mail address, with a button. Needs no sign-in."""
    try:
        address, user = mail_addresses.find_asked(session, token, clock(session))
    except ApiProblem as problem:
        return link_page.failure(request, problem)
    if address.asked_address is None:
        return link_page.done(f"{address.address} is the confirmed address of the account {user.name}.")
    text = f"Results that the account {user.name} has subscribed to will be sent to {address.asked_address}."
    return link_page.question("Confirm this address", text, button="Confirm")


@router.post(f"{CONFIRM_PATH.removeprefix('/api/v1')}/{{token}}", responses=_pages(404, 409, 410, 422, 429))
def confirm_mail_address(token: Token, request: Request, session: Db, audit: Audit) -> Response:
    """Confirm the mail address that the token was sent to. Confirming it again changes nothing. Needs no sign-in."""
    try:
        address, user, is_new = mail_addresses.confirm(session, token, clock(session))
    except ApiProblem as problem:
        return link_page.failure(request, problem)
    if is_new:
        audit.record(session, AuditAction.CONFIRM_MAIL_ADDRESS, f"user/{user.name}", address=address.address)
    return link_page.done(f"{address.address} is the confirmed address of the account {user.name}.")


@router.get(f"{UNSUBSCRIBE_PATH.removeprefix('/api/v1')}/{{token}}", responses=_pages(404, 422, 429))
def show_unsubscription(token: Token, request: Request, session: Db) -> Response:
    """Show the page that ends the subscriptions behind a mail, with a button. Needs no sign-in."""
    try:
        user, rows = _behind(session, token)
    except ApiProblem as problem:
        return link_page.failure(request, problem)
    active = [row for row in rows if row.removed_at is None]
    if not active:
        return link_page.done(_ended(user, rows))
    text = f"The account {user.name} will get no more mails about: {_texts(active)}."
    return link_page.question("Unsubscribe", text, button="Unsubscribe")


@router.post(f"{UNSUBSCRIBE_PATH.removeprefix('/api/v1')}/{{token}}", responses=_pages(404, 422, 429))
def unsubscribe(token: Token, request: Request, session: Db, settings: AppSettings, audit: Audit) -> Response:
    """End the subscriptions behind a mail (RFC 8058). Doing it again changes nothing. Needs no sign-in, and works for a
    disabled account too."""
    try:
        user, rows = _behind(session, token)
    except ApiProblem as problem:
        return link_page.failure(request, problem)
    ended = subscriptions.end(session, rows, "the link of a mail", clock(session))
    if ended:
        numbers = [row.id for row in ended]
        audit.record(session, AuditAction.UNSUBSCRIBE, f"user/{user.name}", subscriptions=numbers)
    return link_page.done(_ended(user, rows))


def _behind(session: Db, token: str) -> tuple[User, list[Subscription]]:
    """Return the account of a mail and the subscriptions behind it. Raises ApiProblem 404 for an invalid token."""
    delivery = session.get(Delivery, personal_mail.number_of(token))
    address = session.get(MailAddress, delivery.user_id) if delivery is not None and delivery.user_id else None
    if delivery is None or address is None:
        raise not_found("mail", "with this link")
    if not personal_mail.is_token(token, personal_mail.unsubscribe_token(address, delivery.id)):
        raise not_found("mail", "with this link")
    return session.get_one(User, address.user_id), list(subscribed_results.subscriptions_behind(session, delivery.id))


def _ended(user: User, rows: list[Subscription]) -> str:
    return f"The account {user.name} gets no more mails about: {_texts(rows)}."


def _texts(rows: list[Subscription]) -> str:
    return "; ".join(dict.fromkeys(map(subscriptions.text_of, rows)))
