"""Endpoints behind the links in personal mails: confirm an address, unsubscribe. They need no sign-in, but a token.

GET only shows a page with a button, because mail servers open links to look for malware; POST acts. A mail client that
knows RFC 8058 sends the POST by itself.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from wqlab_contracts.enums import AuditAction

from ..http.audit import Audit
from ..http.deps import Db
from ..http.problems import ApiProblem, documented
from ..models import User
from ..storage.db import clock
from . import link_page, mail_addresses
from .personal_mail import CONFIRM_PATH, TOKEN_PATTERN, UNSUBSCRIBE_PATH

Token = Annotated[str, Path(pattern=TOKEN_PATTERN, description="From the link in the mail")]


def _pages(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Document a page, and problems that a browser gets as a page."""
    found = documented(*statuses)
    for each in found.values():
        each["content"]["text/html"] = {"schema": {"type": "string"}}
    return {200: {"description": "A page", "content": {"text/html": {"schema": {"type": "string"}}}}, **found}


router = APIRouter(tags=["mail address"], default_response_class=Response)


@router.get(f"{CONFIRM_PATH.removeprefix('/api/v1')}/{{token}}", responses=_pages(404, 409, 410, 422, 429))
def show_confirmation(token: Token, request: Request, session: Db) -> Response:
    """Show the page that confirms a mail address, with a button. Needs no sign-in."""
    try:
        address, user = mail_addresses.find_asked(session, token, clock(session))
    except ApiProblem as problem:
        return link_page.failure(request, problem)
    if address.asked_address is None:
        return link_page.done(f"{address.address} is the confirmed address of the account {user.name}.")
    text = f"The results of the account {user.name} will be sent to {address.asked_address}."
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
    """Show the page that switches an account's mails with results off, with a button. Needs no sign-in."""
    try:
        address, user = mail_addresses.find_unsubscribed(session, token)
    except ApiProblem as problem:
        return link_page.failure(request, problem)
    if not address.mail_results:
        return link_page.done(_switched_off(user))
    text = f"The account {user.name} will get no more mails with its results."
    return link_page.question("Unsubscribe", text, button="Unsubscribe")


@router.post(f"{UNSUBSCRIBE_PATH.removeprefix('/api/v1')}/{{token}}", responses=_pages(404, 422, 429))
def unsubscribe(token: Token, request: Request, session: Db, audit: Audit) -> Response:
    """Switch an account's mails with results off (RFC 8058). Doing it again changes nothing. Needs no sign-in,
    and works for a disabled account too."""
    try:
        address, user = mail_addresses.find_unsubscribed(session, token)
    except ApiProblem as problem:
        return link_page.failure(request, problem)
    if address.mail_results:
        address.mail_results = False
        audit.record(session, AuditAction.SWITCH_RESULT_MAILS, f"user/{user.name}", on=False)
    return link_page.done(_switched_off(user))


def _switched_off(user: User) -> str:
    return f"The account {user.name} gets no more mails with its results."
