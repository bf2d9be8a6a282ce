"""Audit log of requests: the sender and its address come from the request."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request
from sqlalchemy.orm import Session

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
        """Append an entry for a refusal, in a transaction of its own."""
        audit.record_refusal(self._request.app.state.sessions, self.actor, action, resource, **detail)


Audit = Annotated[RequestAudit, Depends(RequestAudit)]


def set_actor(request: Request, name: str, token_id: int | None, token_name: str | None) -> None:
    """Note the authenticated sender of a request."""
    request.state.actor = Actor(name, token_id, token_name, address_of(request))


def actor_of(request: Request) -> Actor:
    found: Actor | None = getattr(request.state, "actor", None)
    return found or Actor(address=address_of(request))


def address_of(request: Request) -> str | None:
    """Return the IP address of the client, or None if a proxy passes none on."""
    return request.client.host if request.client is not None else None
