"""Endpoints for sign-in with the OpenID provider: show the provider, redirect to it, and accept its response."""

from __future__ import annotations

from typing import Annotated, Any

import structlog
from authlib.integrations.base_client import MismatchingStateError
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from wqlab_contracts.api.accounts import ProviderView

from ...http import browser_sessions
from ...http.audit import address_of
from ...http.browser_sessions import check_same_site
from ...http.deps import AppSettings
from ...http.problems import ApiProblem, documented, not_found
from ...storage.db import SessionFactory, transaction
from .. import throttle
from . import cookie, page, service
from .client import ProviderUnavailable
from .provider import AnswerRefused, Provider, SignInDenied, error_code

NEXT_LENGTH = 1500
"""Maximum length of the path to open after the sign-in. It is kept in a cookie, which may have 4096 bytes."""
_Next = Annotated[
    str,
    Query(
        max_length=NEXT_LENGTH,
        # Printable ASCII without a backslash. A second slash would begin the name of another host.
        pattern=r"^/([!-.0-\[\]-~][!-\[\]-~]*)?$",
        description="Local path to open after the sign-in, but none of the API",
    ),
]
# RFC 6749, appendix A, allows printable ASCII.
_Code = Annotated[str | None, Query(max_length=8192, pattern=r"^[ -~]*$")]
_Text = Annotated[str | None, Query(max_length=512, pattern=r"^[ -~]*$")]

log = structlog.get_logger(__name__)
router = APIRouter(prefix="/session/oidc", tags=["session"], responses=documented(404, 422, 429))


def _failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Document problems that a browser gets as a page."""
    found = documented(*statuses)
    for each in found.values():
        each["content"]["text/html"] = {"schema": {"type": "string"}}
    return found


def _redirect(description: str) -> dict[int | str, dict[str, Any]]:
    return {303: {"description": description, "headers": {"Location": {"schema": {"type": "string"}}}}}


@router.get("")
async def get_provider(request: Request) -> ProviderView:
    """The OpenID provider of the lab, and whether it answers. Needs no sign-in. 404 if the lab has none."""
    provider = _provider(request)
    settings = provider.settings
    return ProviderView(label=settings.oidc_label, issuer=settings.oidc_issuer, problem=await provider.problem())


@router.get(
    "/login",
    status_code=303,
    response_class=RedirectResponse,
    responses=_redirect("To the provider's sign-in page") | _failures(403, 404, 503),
)
async def start_oidc_sign_in(request: Request, settings: AppSettings, next: _Next = "/") -> Response:
    """Begin a sign-in with the OpenID provider: redirect the browser to it. For browsers, which follow a link to it."""
    try:
        provider = _provider(request)
        check_same_site(request)
        request.scope["session"] = {}
        location = await provider.redirect(request)
    except ProviderUnavailable as error:
        return page.failure(request, _unavailable(error))
    except ApiProblem as problem:
        return page.failure(request, problem)
    # A path of the API as the next page would begin another sign-in, and so on.
    begun = cookie.Begun(request.session, "/" if next.startswith("/api/") else next)
    response = RedirectResponse(location, 303)
    cookie.set_cookie(response, settings, cookie.seal(provider.client_secret, begun))
    return response


@router.get(
    "/callback",
    status_code=303,
    response_class=RedirectResponse,
    responses=_redirect("To the page that the sign-in began on, with the cookie of a new session")
    | _failures(400, 403, 404, 429, 502, 503),
)
async def finish_oidc_sign_in(
    *,
    request: Request,
    settings: AppSettings,
    state: _Text = None,
    code: _Code = None,
    error: _Text = None,
    iss: _Text = None,
) -> Response:
    """Finish a sign-in: the provider redirects the browser to this URL, with a code or an error. A session that the
    browser had before ends."""
    try:
        response = await _finish(request)
    except ApiProblem as problem:
        response = page.failure(request, problem)
    cookie.clear_cookie(response, settings)  # an answer is accepted once
    return response


async def _finish(request: Request) -> Response:
    provider, settings = _provider(request), request.app.state.settings
    factory: SessionFactory = request.app.state.sessions
    sealed = request.cookies.get(cookie.cookie_name(settings), "")
    begun = cookie.unseal(provider.client_secret, sealed)
    request.scope["session"] = {} if begun is None else begun.session
    address = address_of(request)
    attempt = await run_in_threadpool(throttle.count_or_refuse, factory, throttle.attempt_from(address))
    try:
        identity = await provider.identity(request)
    except MismatchingStateError as mismatch:
        raise ApiProblem(
            400,
            "this answer of the provider belongs to no sign-in that this browser has begun within the last "
            f"{cookie.LIFE_S // 60} minutes; open {settings.public_url}/sign-in and sign in again, in one tab and "
            "with cookies allowed",
            slug="mismatching-state",
        ) from mismatch
    except SignInDenied as denied:
        raise ApiProblem(
            403, f"the provider has not signed you in ({error_code(denied.code)}); try again", slug="sign-in-denied"
        ) from denied
    except AnswerRefused as refused:
        log.warning("oidc_answer_refused", issuer=settings.oidc_issuer, error=str(refused))
        detail = f"the provider's answer cannot be used: {refused}; try again, or tell an administrator of the lab"
        raise ApiProblem(502, detail, slug="provider-answer") from refused
    except ProviderUnavailable as unavailable:
        raise _unavailable(unavailable) from unavailable
    secret = await run_in_threadpool(service.sign_in, factory, settings, identity, address)
    await run_in_threadpool(_replace_session, request, attempt)
    assert begun is not None  # noqa: S101 - an unknown state has been refused
    response = RedirectResponse(begun.next, 303)
    browser_sessions.set_cookie(response, settings, secret, life_s=settings.oidc_session_s)
    return response


def _replace_session(request: Request, attempt: throttle.Attempt) -> None:
    """End the session that the browser had before, and take the attempt off its counters."""
    factory: SessionFactory = request.app.state.sessions
    with transaction(factory) as session:
        throttle.uncount(session, attempt)
        if before := request.cookies.get(browser_sessions.cookie_name(request.app.state.settings)):
            browser_sessions.end(session, before)


def _provider(request: Request) -> Provider:
    found: Provider | None = request.app.state.oidc
    if found is None:
        raise not_found("OpenID provider", "in this lab", "sign in with a password")
    return found


def _unavailable(error: ProviderUnavailable) -> ApiProblem:
    return ApiProblem(
        503,
        f"the provider cannot sign you in now: {error}; try again later, or sign in with a password if you have one",
        headers={"Retry-After": "15"},
    )
