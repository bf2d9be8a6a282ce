"""Audit log of requests: the sender and its address come from the request."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Request
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from wqlab_contracts.enums import AuditAction

from ..storage import audit
from ..storage.audit import Actor


class RequestAudit:
    """Appends entries on behalf of the sender of a request."""

    def __init__(self, request: Request) -> None:
        self._request = request

    @property
    def actor(self) -> Actor:
        """The sender, once the request is authenticated; before that only its address is known."""
        return actor_of(self._request)

    def record(self, session: Session, action: AuditAction, resource: str = "", **detail: Any) -> None:
        """Append an entry in the transaction of `session`."""
        audit.record(session, self.actor, action, resource, **detail)

    def refuse(self, action: AuditAction, resource: str = "", **detail: Any) -> None:
        """Note a refusal, for the problem that the caller raises next. It is recorded when the request's own database
        connection is released: a request that holds one must not wait for a second."""
        self._request.state.refusal = (action, resource, detail)


Audit = Annotated[RequestAudit, Depends(RequestAudit)]


async def record_noted_refusal(request: Request) -> None:
    """Append the refusal that `RequestAudit.refuse` has noted, if any."""
    noted = getattr(request.state, "refusal", None)
    if noted is not None:
        action, resource, detail = noted
        sessions, actor = request.app.state.sessions, actor_of(request)
        await run_in_threadpool(partial(audit.record_refusal, sessions, actor, action, resource, **detail))


def set_actor(request: Request, name: str, token_id: int | None, token_name: str | None) -> None:
    """Note the authenticated sender of a request."""
    request.state.actor = Actor(name, token_id, token_name, address_of(request))


def actor_of(request: Request) -> Actor:
    found: Actor | None = getattr(request.state, "actor", None)
    return found or Actor(address=address_of(request))


def address_of(request: Request) -> str | None:
    """Return the IP address of the client, or None if a proxy passes none on."""
    return request.client.host if request.client is not None else None
