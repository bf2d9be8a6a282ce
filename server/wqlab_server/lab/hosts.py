"""Invite, join and remove remote labs, which run on other machines than the server.

An administrator invites a lab; its host joins with a single-use token. A lab gets two credentials, each limited to its
own work: a worker token bound to the lab, and a user at the broker.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import urlsplit, urlunsplit

import structlog
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from wqlab_contracts.api.labs import JOIN_PREFIX, LabJoined, LabView
from wqlab_contracts.celery_names import lab_user
from wqlab_contracts.enums import DeviceHealth, Scope

from ..http.auth import create_token, revoke_tokens
from ..http.browser_sessions import digest
from ..http.problems import ApiProblem, not_found
from ..models import Device, Lab, LabHost, LabInvite, Token
from ..settings import Settings
from ..storage import broker
from ..storage.db import clock, fetch_dict
from . import queries
from .service import quarantine

log = structlog.get_logger(__name__)

OWN_LAB = "local"
"""The lab on the server's own machine. Its worker uses the server's credentials and does not join."""


def invite(
    session: Session, lab: str, by: str, settings: Settings, *, again: bool, valid: timedelta
) -> tuple[LabInvite, str]:
    """Create an invitation; return its row and the join token.

    Raises ApiProblem 409 if the name is taken (unless `again`) or the server is not configured for remote labs.
    """
    _check_joinable(settings)
    if lab == OWN_LAB:
        raise ApiProblem(409, f"lab {OWN_LAB} is the lab on the server's own machine; choose another name")
    host = _lock_host(session, lab)
    if host is not None and host.removed_at is None and not again:
        raise ApiProblem(
            409,
            f"lab {lab} has joined at {host.joined_at:%Y-%m-%d %H:%M} UTC; remove it first, or invite it again "
            f"(`wqlab lab invite {lab} --again`) to let another host take its place",
        )
    now = clock(session)
    _withdraw_invites(session, lab)
    secret = JOIN_PREFIX + secrets.token_urlsafe(24)
    row = LabInvite(lab=lab, digest=digest(secret), invited_by=by, expires_at=now + valid)
    session.add(row)
    session.flush()
    return row, secret


def join(session: Session, secret: str, settings: Settings) -> LabJoined:
    """Exchange a join token for new credentials; credentials of an earlier host of the lab are revoked.

    Raises ApiProblem 403 for an unknown token, 409 for a token that was used, withdrawn or has expired, 503 if the
    broker does not answer.
    """
    _check_joinable(settings)
    invite = session.scalar(select(LabInvite).where(LabInvite.digest == digest(secret)).with_for_update())
    if invite is None:
        raise ApiProblem(403, "unknown join token; copy the whole token again, or ask an administrator for another one")
    lab, now = invite.lab, clock(session)
    fix = f"ask an administrator for another one: `wqlab lab invite {lab}`"
    if invite.used_at is not None:
        raise ApiProblem(409, f"this join token was used at {invite.used_at:%Y-%m-%d %H:%M} UTC; {fix}")
    if invite.withdrawn_at is not None:
        raise ApiProblem(409, f"this join token was withdrawn at {invite.withdrawn_at:%Y-%m-%d %H:%M} UTC; {fix}")
    if invite.expires_at <= now:
        raise ApiProblem(409, f"this join token expired at {invite.expires_at:%Y-%m-%d %H:%M} UTC; {fix}")
    invite.used_at = now
    token, worker_token = create_token(session, f"lab {lab}", [Scope.WORKER], lab=lab)
    password = secrets.token_urlsafe(24)
    host = _lock_host(session, lab)
    if host is None:
        host = LabHost(lab=lab)
        session.add(host)
    else:
        _revoke_token(session, host)
    host.invited_by, host.token_id, host.broker_digest = invite.invited_by, token.id, digest(password)
    host.joined_at, host.removed_at = now, None
    session.flush()
    try:
        broker.add_user(settings.broker_url, lab, host.broker_digest)
    except broker.BrokerUnavailable as error:
        log.error("broker_user_not_added", lab=lab, error=str(error))
        raise ApiProblem(
            503, "the server's broker does not answer; the join token is still valid, try again"
        ) from error
    log.info("lab_joined", lab=lab, invited_by=host.invited_by)
    return LabJoined(lab=lab, worker_token=worker_token, broker_url=_with_user(settings.lab_broker_url, lab, password))


def remove(session: Session, lab: str, by: str, settings: Settings) -> None:
    """Remove a lab: revoke its worker token, broker user and join tokens, and quarantine its devices.

    Raises ApiProblem 404 if the lab has neither joined nor been invited.
    """
    host = _lock_host(session, lab)
    withdrawn = _withdraw_invites(session, lab)
    if host is None or host.removed_at is not None:
        if not withdrawn:
            raise not_found("lab that has joined or is invited by the name", lab)
        return
    _revoke_token(session, host)
    host.removed_at = clock(session)
    for device in session.scalars(select(Device).where(Device.lab == lab, Device.retired_at.is_(None))).all():
        if device.health is not DeviceHealth.QUARANTINED:
            quarantine(session, device.name, f"lab {lab} was removed", by)
    try:
        broker.remove_user(settings.broker_url, lab)
    except broker.BrokerUnavailable as error:
        log.warning("broker_user_not_removed", lab=lab, error=str(error))  # the next tick removes it
    log.info("lab_removed", lab=lab, by=by)


def broker_users(session: Session) -> Mapping[str, str] | None:
    """Return lab -> SHA-256 of its broker password, for every lab that has joined.

    None if no lab ever joined: the server then leaves the broker's users alone.
    """
    rows = session.execute(select(LabHost.lab, LabHost.broker_digest, LabHost.removed_at)).all()
    return {row.lab: row.broker_digest for row in rows if row.removed_at is None} if rows else None


def views(session: Session) -> list[LabView]:
    """Return the labs that have a device, a worker, or credentials, ordered by name."""
    hosts = {host.lab: host for host in session.scalars(select(LabHost))}
    published = {row.name: row for row in session.scalars(select(Lab))}
    devices = queries.pool_counts(session)
    last_seen = fetch_dict(session, select(LabHost.lab, Token.last_used_at).join(Token, Token.id == LabHost.token_id))
    found = []
    for name in sorted(hosts.keys() | published.keys() | devices.keys()):
        host, report, counts = hosts.get(name), published.get(name), devices.get(name) or queries.PoolCounts()
        found.append(
            LabView(
                name=name,
                joined_at=host.joined_at if host else None,
                invited_by=host.invited_by if host else None,
                removed_at=host.removed_at if host else None,
                last_seen_at=last_seen.get(name) if host else (report.published_at if report else None),
                capacity=report.capacity if report else None,
                devices=counts.devices,
                backend=counts.backend,
                free=counts.free,
                busy=counts.busy,
                away=counts.unavailable,
                problem=counts.problem,
                pool=report.pool if report else None,
            )
        )
    return found


def _lock_host(session: Session, lab: str) -> LabHost | None:
    return session.scalar(select(LabHost).where(LabHost.lab == lab).with_for_update())


def _revoke_token(session: Session, host: LabHost) -> None:
    revoke_tokens(session, Token.id == host.token_id)


def _withdraw_invites(session: Session, lab: str) -> bool:
    """Withdraw the lab's valid join tokens; return True if there were any."""
    withdrawn = session.execute(
        update(LabInvite)
        .where(
            LabInvite.lab == lab,
            LabInvite.used_at.is_(None),
            LabInvite.withdrawn_at.is_(None),
            LabInvite.expires_at > func.now(),
        )
        .values(withdrawn_at=func.now())
        .returning(LabInvite.id)
    )
    return bool(withdrawn.all())


def _check_joinable(settings: Settings) -> None:
    if not settings.lab_broker_url:
        raise ApiProblem(
            409,
            "no lab can join this server: its operator has not set WQLAB_LAB_BROKER_URL (docs/labs.md)",
            slug="not-joinable",
        )


def _with_user(url: str, lab: str, password: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{lab_user(lab)}:{password}@{parts.netloc.rpartition('@')[2]}"))
