"""Labs that are not the server's own machine: invited by an administrator, joined by a token that works once, removed.

A lab gets two credentials, each good for its own work only: a worker token bound to it, and a user at the broker.
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

from ..http.auth import create_token
from ..http.browser_sessions import digest
from ..http.problems import ApiProblem, not_found
from ..models import Device, Lab, LabHost, LabInvite, Token
from ..settings import Settings
from ..storage import broker
from ..storage.db import clock, pairs
from . import queries
from .service import quarantine

log = structlog.get_logger(__name__)

OWN_LAB = "local"
"""The lab on the server's own machine: its worker has the server's credentials and joins nothing."""


def invite(
    session: Session, lab: str, by: str, settings: Settings, *, again: bool, valid: timedelta
) -> tuple[LabInvite, str]:
    """The row and the join token. Raises ApiProblem 409 for a name that is taken or a server that cannot be joined."""
    _check_joinable(settings)
    if lab == OWN_LAB:
        raise ApiProblem(409, f"lab {OWN_LAB} is the one on the server's own machine; choose another name")
    host = _lock_host(session, lab)
    if host is not None and host.removed_at is None and not again:
        raise ApiProblem(
            409,
            f"lab {lab} has joined at {host.joined_at:%Y-%m-%d %H:%M} UTC; remove it first, or invite it again "
            f"(`wqlab lab invite {lab} --again`) to let another host take its place",
        )
    now = clock(session)
    _withdraw(session, lab)
    secret = JOIN_PREFIX + secrets.token_urlsafe(24)
    row = LabInvite(lab=lab, digest=digest(secret), invited_by=by, expires_at=now + valid)
    session.add(row)
    session.flush()
    return row, secret


def join(session: Session, secret: str, settings: Settings) -> LabJoined:
    """The lab's credentials, new ones; those of the host before it end.

    Raises ApiProblem 403 for a token that was never given out, 409 for one that does not work any more, 503 when the
    broker cannot be told."""
    _check_joinable(settings)
    found = session.scalar(select(LabInvite).where(LabInvite.digest == digest(secret)).with_for_update())
    if found is None:
        raise ApiProblem(403, "no such join token was given out here; copy it again, whole, or ask for another one")
    lab, now = found.lab, clock(session)
    anew = f"ask an administrator for another one: `wqlab lab invite {lab}`"
    if found.used_at is not None:
        raise ApiProblem(409, f"this join token was used at {found.used_at:%Y-%m-%d %H:%M} UTC; {anew}")
    if found.withdrawn_at is not None:
        raise ApiProblem(409, f"this join token was withdrawn at {found.withdrawn_at:%Y-%m-%d %H:%M} UTC; {anew}")
    if found.expires_at <= now:
        raise ApiProblem(409, f"this join token ended at {found.expires_at:%Y-%m-%d %H:%M} UTC; {anew}")
    found.used_at = now
    token, worker_token = create_token(session, f"lab {lab}", [Scope.WORKER], lab=lab)
    password = secrets.token_urlsafe(24)
    host = _lock_host(session, lab)
    if host is None:
        host = LabHost(lab=lab)
        session.add(host)
    else:
        _revoke(session, host)
    host.invited_by, host.token_id, host.broker_digest = found.invited_by, token.id, digest(password)
    host.joined_at, host.removed_at = now, None
    session.flush()
    try:
        broker.admit(settings.broker_url, lab, host.broker_digest)
    except broker.BrokerUnavailable as error:
        log.error("lab_not_admitted", lab=lab, error=str(error))
        raise ApiProblem(503, "the server's broker does not answer; the join token is still good, try again") from error
    log.info("lab_joined", lab=lab, invited_by=host.invited_by)
    return LabJoined(lab=lab, worker_token=worker_token, broker_url=_with_user(settings.lab_broker_url, lab, password))


def remove(session: Session, lab: str, by: str, settings: Settings) -> None:
    """Its token and its broker user end now, its invitations too, and its devices leave the pool. Raises ApiProblem
    404."""
    host = _lock_host(session, lab)
    withdrawn = _withdraw(session, lab)
    if host is None or host.removed_at is not None:
        if not withdrawn:
            raise not_found("lab that has joined or is invited by the name", lab)
        return
    _revoke(session, host)
    host.removed_at = clock(session)
    for device in session.scalars(select(Device).where(Device.lab == lab, Device.retired_at.is_(None))).all():
        if device.health is not DeviceHealth.QUARANTINED:
            quarantine(session, device.name, f"lab {lab} was removed", by)
    try:
        broker.expel(settings.broker_url, lab)
    except broker.BrokerUnavailable as error:
        log.warning("lab_not_expelled", lab=lab, error=str(error))  # the next tick does it
    log.info("lab_removed", lab=lab, by=by)


def broker_users(session: Session) -> Mapping[str, str] | None:
    """Lab -> SHA-256 of its password, of all that may come in; None when no lab ever joined, and the broker's users are
    none of our business."""
    rows = session.execute(select(LabHost.lab, LabHost.broker_digest, LabHost.removed_at)).all()
    return {row.lab: row.broker_digest for row in rows if row.removed_at is None} if rows else None


def views(session: Session) -> list[LabView]:
    """Every lab that has a device, a worker, or credentials."""
    hosts = {host.lab: host for host in session.scalars(select(LabHost))}
    published = {row.name: row for row in session.scalars(select(Lab))}
    devices = queries.pool_counts(session)
    seen = pairs(session, select(LabHost.lab, Token.last_used_at).join(Token, Token.id == LabHost.token_id))
    found = []
    for name in sorted(hosts.keys() | published.keys() | devices.keys()):
        host, says, counts = hosts.get(name), published.get(name), devices.get(name) or queries.PoolCounts()
        found.append(
            LabView(
                name=name,
                joined_at=host.joined_at if host else None,
                invited_by=host.invited_by if host else None,
                removed_at=host.removed_at if host else None,
                last_seen_at=seen.get(name) if host else (says.published_at if says else None),
                capacity=says.capacity if says else None,
                devices=counts.devices,
                backend=counts.backend,
                free=counts.free,
                busy=counts.busy,
                away=counts.away,
                problem=counts.problem,
                pool=says.pool if says else None,
            )
        )
    return found


def _lock_host(session: Session, lab: str) -> LabHost | None:
    return session.scalar(select(LabHost).where(LabHost.lab == lab).with_for_update())


def _revoke(session: Session, host: LabHost) -> None:
    session.execute(
        update(Token).where(Token.id == host.token_id, Token.revoked_at.is_(None)).values(revoked_at=func.now())
    )


def _withdraw(session: Session, lab: str) -> bool:
    """Ends the join tokens that still work; whether there were any."""
    ended = session.execute(
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
    return bool(ended.all())


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
