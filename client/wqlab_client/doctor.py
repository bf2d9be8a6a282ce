"""Checks of `wqlab doctor`: configuration, server, TLS, token, versions, clock, labs and devices."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import httpx
from pydantic import BaseModel

from wqlab_contracts.api.accounts import SessionView
from wqlab_contracts.enums import DeviceHealth

from .calls.connection import API
from .client import Client
from .config import Config
from .errors import WqlabError
from .formatting import rough_duration
from .transport import ONCE, decode, refusal, unreachable

if TYPE_CHECKING:
    from wqlab_contracts.api.devices import DeviceView
    from wqlab_contracts.api.labs import LabView

TIMEOUT_S = 10.0
CLOCK_LIMIT_S = 5.0
CERTIFICATE_WARNING = timedelta(days=14)
TOKEN_WARNING = timedelta(days=7)
SILENCE = timedelta(minutes=10)
AGAIN = "repair what is listed as failed, then run this again"


class State(StrEnum):
    """Result of a check, the worst last."""

    OK = "ok"
    WARNING = "warning"
    UNKNOWN = "unknown"
    """It could not be checked."""
    FAILED = "failed"


class Check(BaseModel):
    """Result of one check."""

    name: str
    state: State
    seen: str
    action: str = ""
    """What to do; empty if nothing is to be done."""


def worst(checks: Sequence[Check]) -> State:
    """Return the worst state; unknown if there is no check."""
    order = list(State)
    return max((check.state for check in checks), key=order.index, default=State.UNKNOWN)


def ok(name: str, seen: str) -> Check:
    return Check(name=name, state=State.OK, seen=seen)


def warning(name: str, seen: str, action: str) -> Check:
    return Check(name=name, state=State.WARNING, seen=seen, action=action)


def unknown(name: str, seen: str, action: str = AGAIN) -> Check:
    return Check(name=name, state=State.UNKNOWN, seen=seen, action=action)


def failed(name: str, seen: str, action: str) -> Check:
    return Check(name=name, state=State.FAILED, seen=seen, action=action)


# --- the server -------------------------------------------------------------------------------------------------


def examine_server(config: Config) -> Iterator[Check]:
    """Yield the checks of the configured server. Raises UsageError if no server is configured."""
    url = config.server()
    token = config.token.value if config.token else None
    if config.warnings:
        yield warning("configuration", "; ".join(config.warnings), f"change {config.path} or the environment")
    else:
        yield ok("configuration", f"{url} ({config.url.origin if config.url else ''})")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with httpx.Client(base_url=url, timeout=TIMEOUT_S) as http:
        reached = list(_connection(http, url))
        yield from reached
        if worst(reached) is State.FAILED:
            for name in ("token", "versions", "server parts", "labs", "devices"):
                yield unknown(name, "the server did not answer")
            return
        yield from _guarded("token", _token(http, url, token, headers))
        yield from _guarded("versions", _server_parts(http, headers))
    with Client(url, token, retry=ONCE, timeout_s=TIMEOUT_S) as client:
        yield from _guarded("labs", _labs(client))
        yield from _guarded("devices", _devices(client))


def _guarded(name: str, checks: Iterator[Check]) -> Iterator[Check]:
    """Yield the checks; if they cannot be completed, the last one is `name` with the state unknown."""
    try:
        yield from checks
    except WqlabError as error:
        yield unknown(name, error.summary, error.fix or AGAIN)
    except httpx.HTTPError as error:
        yield unknown(name, f"no answer ({error or type(error).__name__})")


def _connection(http: httpx.Client, url: str) -> Iterator[Check]:
    """Check that the server answers, its certificate and its clock."""
    try:
        before = time.time()
        with http.stream("GET", "/healthz") as answer:
            after = time.time()
            stream = answer.extensions["network_stream"]
            certificate = _certificate(stream.get_extra_info("ssl_object"))
            body = answer.read()
    except httpx.TransportError as error:
        if (reason := _tls_error(error)) is not None:
            action = "set SSL_CERT_FILE to the lab's CA (ask its operator), and check this machine's clock"
            yield failed("tls", reason, action)
        problem = unreachable(url, "connect", error)
        yield failed("server", problem.summary, problem.fix)
        return
    if not answer.is_success or b"ok" not in body:
        problem_ = refusal(url, "connect", answer, body)
        action = "check that the URL is a wqlab server and that its proxy reaches it; operators: `wqlab-lab doctor`"
        yield failed("server", problem_.summary, action)
        return
    yield ok("server", f"{url} answers in {(after - before) * 1000:.0f} ms")
    yield _tls_check(url, certificate)
    if date := answer.headers.get("date"):
        at = parsedate_to_datetime(date).timestamp()
        skew = max(before - at - 1.0, at - after, 0.0)  # the header has no fractions
        if skew > CLOCK_LIMIT_S:
            action = "synchronize this machine's clock, or the server's: `timedatectl set-ntp true`"
            yield warning("clock", f"differs from the server's by {rough_duration(skew)}", action)
        else:
            yield ok("clock", "agrees with the server's")
    else:
        yield unknown("clock", "the server's answers have no date", "ask the lab's operator about its proxy")


def _certificate(connection: ssl.SSLObject | None) -> Mapping[str, Any] | None:
    return connection.getpeercert() if connection is not None else None


def _tls_check(url: str, certificate: Mapping[str, Any] | None) -> Check:
    if certificate is None:
        if httpx.URL(url).host in {"localhost", "127.0.0.1", "::1"}:
            return ok("tls", "not used: the server is this machine")
        return warning("tls", "the connection is not encrypted", "use the lab's https URL: `wqlab login https://...`")
    ends = datetime.fromtimestamp(ssl.cert_time_to_seconds(str(certificate["notAfter"])), UTC)
    seen = f"certificate valid until {ends:%Y-%m-%d}"
    if ends - datetime.now(UTC) < CERTIFICATE_WARNING:
        return warning("tls", seen, "tell the lab's operator to renew it")
    return ok("tls", seen)


def _tls_error(error: BaseException) -> str | None:
    """Return the reason if TLS failed; None if the connection failed for another reason."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return getattr(cause, "verify_message", "") or cause.reason or str(cause)
        cause = cause.__cause__ or cause.__context__
    return None


def _token(http: httpx.Client, url: str, token: str | None, headers: Mapping[str, str]) -> Iterator[Check]:
    login = f"`wqlab login {url}` with a token from the lab's account page"
    answer = http.get(f"{API}/session", headers=headers)
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        yield failed("token", refusal(url, "token", answer, answer.content).summary, login)
        return
    if not answer.is_success:
        raise refusal(url, "check the token", answer, answer.content)
    view = decode(SessionView, answer, "check the token")
    if token is None:
        reading = "the lab can be read without one" if view.public_reading else "the lab cannot be read without one"
        yield warning("token", f"none is configured; {reading}", login)
    elif view.user is None:
        yield failed("token", "it is a worker's token, which may not use the public API", login)
    else:
        seen = f"user {view.user.name}, {view.user.role}, scopes: {', '.join(view.user.scopes)}"
        if view.expires_at and view.expires_at - datetime.now(UTC) < TOKEN_WARNING:
            yield warning("token", f"{seen}; expires {view.expires_at:%Y-%m-%d %H:%M} UTC", login)
        else:
            yield ok("token", seen)


def _server_parts(http: httpx.Client, headers: Mapping[str, str]) -> Iterator[Check]:
    """Check the versions, and the parts that the server needs; it tells them to holders of a token."""
    answer = http.get("/readyz", headers=headers)
    try:
        document = answer.json()
        parts: dict[str, dict[str, Any]] = document["checks"]
    except (ValueError, KeyError, TypeError):
        reason = f"the server does not say (HTTP {answer.status_code})"
        for name in ("versions", "server parts"):
            yield unknown(name, reason, "needs a valid token" if answer.status_code == 401 else AGAIN)
        return
    own, other = version("wqlab-client"), document.get("release")
    if other is None:
        yield unknown("versions", f"client {own}; the server does not say", "update the server")
    elif own != other:
        yield warning("versions", f"client {own}, server {other}", "install the client of the server's release")
    else:
        yield ok("versions", f"client and server {own}")
    broken = {name: part for name, part in parts.items() if not part["ok"]}
    if not broken:
        yield ok("server parts", ", ".join(parts))
    for name, part in broken.items():
        yield failed(f"server: {name}", str(part["detail"]), "tell the lab's operator; operators: `wqlab-lab doctor`")


# --- labs and devices -------------------------------------------------------------------------------------------


def _labs(client: Client) -> Iterator[Check]:
    labs = [lab for lab in client.labs() if lab.removed_at is None]
    if not labs:
        yield warning("labs", "the server has no lab", "operators: add a file to device-types/")
    for lab in labs:
        yield _lab(lab)


def _lab(lab: LabView) -> Check:
    name = f"lab {lab.name}"
    on_host = f"on the host of lab {lab.name}: `supervisorctl -c wqlab-lab/supervisord.conf status`"
    if lab.joined_at is not None:
        if lab.last_seen_at is None:
            return warning(name, "joined, but its worker was never seen", on_host)
        silent = datetime.now(UTC) - lab.last_seen_at
        if silent > SILENCE:
            return warning(name, f"last seen {rough_duration(silent.total_seconds())} ago", on_host)
    if lab.problem:
        return warning(name, lab.problem, "`wqlab devices` has the reason of each device")
    return ok(name, f"{lab.devices} devices, {lab.free} free, {lab.busy} busy")


def _devices(client: Client) -> Iterator[Check]:
    devices = client.devices()
    good = sum(device.health is DeviceHealth.GOOD and not device.away for device in devices)
    seen = f"{good} of {len(devices)} good and available"
    if good:
        yield ok("devices", seen)
    elif any(device.health is DeviceHealth.UNKNOWN and not device.away for device in devices):
        yield warning("devices", f"{seen}; others are not checked yet", "`wqlab device check NAME` (maintainers)")
    else:
        yield failed("devices", f"{seen}: no run can start", "see the devices below; `wqlab devices`")
    for device in devices:
        yield from _device(device)


def _device(device: DeviceView) -> Iterator[Check]:
    name = f"device {device.name}"
    if device.health is DeviceHealth.QUARANTINED:
        action = f"repair it, then `wqlab devices release {device.name}` (maintainers)"
        yield warning(name, f"quarantined: {device.health_reason}", action)
    elif device.health is DeviceHealth.SUSPECT:
        action = f"a health check comes before its next run; now: `wqlab device check {device.name}` (maintainers)"
        yield warning(name, f"suspect: {device.health_reason}", action)
    elif device.away:
        yield warning(name, f"unavailable: {device.away}", f"repair lab {device.lab}: `wqlab lab list`")
