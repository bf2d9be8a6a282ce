"""`wqlab audit`: show who changed what in the lab."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from wqlab_contracts.enums import AuditAction, AuditOutcome

from ..calls.lab import LabCalls
from ..formatting import one_line
from .session import Cursor, JsonFlag, Limit, session_of

if TYPE_CHECKING:
    from wqlab_contracts.api.audit import AuditEntry


def audit(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    actor: Annotated[str | None, typer.Option(metavar="NAME", help="Only by this user or worker token")] = None,
    action: Annotated[AuditAction | None, typer.Option(help="Only this action", show_choices=False)] = None,
    resource: Annotated[
        str | None, typer.Option(metavar="TYPE[/ID]", help="Only of this resource: device, device/tiny-1")
    ] = None,
    address: Annotated[str | None, typer.Option(metavar="IP", help="Only from this address")] = None,
    outcome: Annotated[AuditOutcome | None, typer.Option(help="Only with this outcome")] = None,
    since: Annotated[datetime | None, typer.Option(help="At or after this time (UTC)")] = None,
    until: Annotated[datetime | None, typer.Option(help="Before this time (UTC)")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the audit log, newest first: who did what to which resource. For administrators."""
    session = session_of(context)
    page = session.calls(LabCalls).audit_page(
        actor=actor,
        action=action,
        resource=resource,
        address=address,
        outcome=outcome,
        since=since,
        until=until,
        limit=limit,
        cursor=cursor,
    )
    header = ("TIME (UTC)", "ACTOR", "ADDRESS", "ACTION", "RESOURCE", "OUTCOME", "DETAIL")
    session.output.page(
        page,
        as_json=as_json,
        show=lambda entries: session.output.table(header, [_row(each) for each in entries]),
        none="no entry matches",
    )


def _row(entry: AuditEntry) -> list[Text | str]:
    actor = f"{entry.actor} ({entry.token_name})" if entry.token_name not in {None, entry.actor} else entry.actor
    refused = entry.outcome is AuditOutcome.REFUSED
    detail = ", ".join(f"{name}={value}" for name, value in entry.detail.items())
    return [
        f"{entry.at:%Y-%m-%d %H:%M:%S}",
        one_line(actor or "-"),
        entry.address or "-",
        entry.action.value,
        one_line(entry.resource or "-"),
        Text(entry.outcome.value, style="red" if refused else ""),
        one_line(detail),
    ]


def register(app: typer.Typer) -> None:
    app.command("audit")(audit)
