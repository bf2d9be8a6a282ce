"""Endpoints to sign in and out with a browser, and to change one's own password."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response, status

from wqlab_contracts.api.accounts import PasswordChange, SessionUser, SessionView, SignIn
from wqlab_contracts.enums import AuditAction, SignInMethod

from ..http import browser_sessions
from ..http.audit import Audit
from ..http.auth import Principal, SignedIn, by_cookie, identify
from ..http.deps import AppSettings
from ..http.problems import ApiProblem, documented
from ..settings import Settings
from ..storage.db import SessionFactory, transaction
from . import service

router = APIRouter(prefix="/session", tags=["session"], responses=documented(401, 403, 422, 429))


@router.post("", responses=documented(400))
def sign_in(body: SignIn, request: Request, response: Response, settings: AppSettings) -> SessionView:
    """Sign in: set the cookie of a new session. A session that the browser had before ends."""
    browser_sessions.check_same_site(request)
    factory: SessionFactory = request.app.state.sessions
    secret = service.sign_in(factory, settings, body.name, body.password, _address(request))
    _end_session(request, settings)
    return _begin_session(request, response, settings, secret)


@router.get("")
def get_session(request: Request, response: Response, settings: AppSettings) -> SessionView:
    """The current user and session. Needs no sign-in: without one, `user` is null."""
    principal = identify(request)
    if principal is None and browser_sessions.cookie_name(settings) in request.cookies:
        browser_sessions.clear_cookie(response, settings)
    return _view(principal, settings)


@router.delete("", status_code=status.HTTP_204_NO_CONTENT)
def sign_out(request: Request, settings: AppSettings, audit: Audit) -> Response:
    """Sign out: end this browser's session, if there is one."""
    principal = identify(request)  # checks the CSRF token: no other site may sign a user out
    secret = request.cookies.get(browser_sessions.cookie_name(settings))
    if secret:
        with transaction(request.app.state.sessions) as session:
            browser_sessions.end(session, secret)
            if principal is not None and principal.csrf is not None:
                audit.record(session, AuditAction.SIGN_OUT, f"user/{principal.owner}")
    response = Response(status_code=status.HTTP_204_NO_CONTENT)
    browser_sessions.clear_cookie(response, settings)
    return response


@router.put(
    "/password",
    responses=documented(400, rules="`old_password` is wrong, or `new_password` is easy to guess"),
)
def change_password(
    body: PasswordChange, request: Request, response: Response, settings: AppSettings, principal: SignedIn
) -> SessionView:
    """Change one's own password. Signs out every other browser of the user; this one gets a new session and a new
    CSRF token. API tokens stay valid."""
    if principal.csrf is None:
        raise ApiProblem(403, "a password can only be changed by its user, signed in with a browser, not with a token")
    if principal.sign_in is not SignInMethod.PASSWORD:
        raise ApiProblem(403, "you sign in with the lab's provider and have no password here; change it there")
    factory: SessionFactory = request.app.state.sessions
    secret = service.change_password(
        factory, settings, principal.owner, old=body.old_password, new=body.new_password, address=_address(request)
    )
    return _begin_session(request, response, settings, secret)


def _begin_session(request: Request, response: Response, settings: Settings, secret: str) -> SessionView:
    """Set the session cookie, and return what `GET /session` will return from now on."""
    browser_sessions.set_cookie(response, settings, secret)
    factory: SessionFactory = request.app.state.sessions
    with transaction(factory) as session:
        return _view(by_cookie(session, settings, secret), settings)


def _view(principal: Principal | None, settings: Settings) -> SessionView:
    user = None
    if principal is not None and principal.role is not None:
        user = SessionUser(
            name=principal.owner, role=principal.role, scopes=principal.all_scopes(), sign_in=principal.sign_in
        )
    return SessionView(
        user=user,
        csrf_token=principal.csrf if principal is not None and user is not None else None,
        expires_at=principal.ends_at if principal is not None and user is not None else None,
        public_reading=settings.public_reading,
        notice=settings.notice,
        provider=settings.oidc_label if settings.oidc_issuer else None,
    )


def _end_session(request: Request, settings: Settings) -> None:
    secret = request.cookies.get(browser_sessions.cookie_name(settings))
    if secret:
        factory: SessionFactory = request.app.state.sessions
        with transaction(factory) as session:
            browser_sessions.end(session, secret)


def _address(request: Request) -> str | None:
    return request.client.host if request.client is not None else None
