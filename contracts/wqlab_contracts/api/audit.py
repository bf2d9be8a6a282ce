"""REST resource of the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ..enums import AuditAction, AuditOutcome
from ..messages import Message


class AuditEntry(Message):
    """One entry of the audit log: who did what to which resource, when and from where. It contains no secrets."""

    id: int
    at: datetime
    actor: str
    """Name of the user, or of the worker's token; `operator` for commands and files on the server's host; empty if
    unknown."""
    token_id: int | None
    """Id of the API token that was used; null for a browser session and for the operator."""
    token_name: str | None
    address: str | None
    """IP address of the request; null for the operator."""
    action: AuditAction
    resource: str
    """Type and id or name, such as `submission/12` or `device/tiny-1`; empty if there is none."""
    outcome: AuditOutcome
    detail: dict[str, Any]
    """What was changed, such as the new role of a user."""
