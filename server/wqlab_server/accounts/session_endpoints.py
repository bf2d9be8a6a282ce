"""Signing in and out with a browser, and one's own password."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response, status

from wqlab_contracts.api.accounts import PasswordChange, SessionUser, SessionView, SignIn

from ..http import browser_sessions
from ..http.auth import Principal, SignedIn, by_cookie, identify
from ..http.deps import AppSettings
from ..http.problems import ApiProblem, documented
from ..settings import Settings
from ..storage.db import SessionFactory, transaction
from . import service

router = APIRouter(prefix="/session", tags=["session"], responses=documented(401, 403, 422, 429))


@router.post("", responses=documented(400))
def sign_in(body: SignIn, request: Request, response: Response, settings: AppSettings) -> SessionView:
    """Sign in: sets the session's cookie, a new one whatever the browser brought."""
    _same_site(request)
    factory: SessionFactory = request.app.state.sessions
    secret = service.sign_in(factory, settings, body.name, body.password, _address(request))
    _end(request, settings)
    return _begun(request, response, settings, secret)


@router.get("")
def get_session(request: Request, response: Response, settings: AppSettings) -> SessionView:
    """Who is asking. Needs no sign-in: `user` is null then."""
    who = identify(request)
    if who is None and browser_sessions.cookie_name(settings) in request.cookies:
        browser_sessions.clear_cookie(response, settings)
    return _view(who, settings)


@router.delete("", status_code=status.HTTP_204_NO_CONTENT)
def sign_out(request: Request, settings: AppSettings) -> Response:
    """End this browser's session. Harmless when there is none."""
    identify(request)  # for the CSRF token: no other site may sign anyone out
    _end(request, settings)
    response = Response(status_code=status.HTTP_204_NO_CONTENT)
    browser_sessions.clear_cookie(response, settings)
    return response


@router.put("/password", responses=documented(400))
def change_password(
    body: PasswordChange, request: Request, response: Response, settings: AppSettings, who: SignedIn
) -> SessionView:
    """Change one's own password. Every other browser of the user is signed out; this one goes on with a new session
    and a new CSRF token. API tokens stay."""
    if who.csrf is None:
        raise ApiProblem(403, "a password is changed by its user, signed in with a browser, not with a token")
    factory: SessionFactory = request.app.state.sessions
    secret = service.change_password(
        factory, settings, who.owner, old=body.old_password, new=body.new_password, address=_address(request)
    )
    return _begun(request, response, settings, secret)


def _begun(request: Request, response: Response, settings: Settings, secret: str) -> SessionView:
    """Sends the cookie; the answer is what the next request will be told."""
    browser_sessions.set_cookie(response, settings, secret)
    factory: SessionFactory = request.app.state.sessions
    with transaction(factory) as session:
        return _view(by_cookie(session, settings, secret), settings)


def _view(who: Principal | None, settings: Settings) -> SessionView:
    if who is None or who.role is None:
        return SessionView(user=None, csrf_token=None, expires_at=None, public_reading=settings.public_reading)
    return SessionView(
        user=SessionUser(name=who.owner, role=who.role, scopes=who.all_scopes()),
        csrf_token=who.csrf,
        expires_at=who.ends_at,
        public_reading=settings.public_reading,
    )


def _end(request: Request, settings: Settings) -> None:
    secret = request.cookies.get(browser_sessions.cookie_name(settings))
    if secret:
        factory: SessionFactory = request.app.state.sessions
        with transaction(factory) as session:
            browser_sessions.end(session, secret)


def _same_site(request: Request) -> None:
    """A form on another site could sign the browser in as somebody else, who then sees what its user does here."""
    if request.headers.get("Sec-Fetch-Site", "none") not in {"same-origin", "none"}:
        raise ApiProblem(403, "sign in on the lab's own page")


def _address(request: Request) -> str | None:
    return request.client.host if request.client is not None else None
