"""`wqlab mail`: the review queue of the lab's mails."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError

from wqlab_contracts.enums import DeliveryKind, DeliveryState
from wqlab_contracts.mail import MailEdit

from ..calls.outbox import OutboxCalls
from ..errors import UsageError
from ..formatting import one_line
from .session import Cursor, JsonFlag, Limit, session_of
from .webhooks import print_attempts, print_deliveries

if TYPE_CHECKING:
    from wqlab_contracts.api.deliveries import ReceivedCommandView

mail_app = typer.Typer(name="mail", help="Review the lab's mails before they go out.", rich_markup_mode=None)
MailId = Annotated[int, typer.Argument(min=1, metavar="ID", help="Number of the mail", show_default=False)]


@mail_app.command("list")
def list_mails(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    state: Annotated[DeliveryState, typer.Option(help="Only in this state")] = DeliveryState.WAITING_FOR_REVIEW,
    every: Annotated[bool, typer.Option("--all", help="In any state")] = False,
    submission: Annotated[int | None, typer.Option(min=1, metavar="ID", help="Only about this submission")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: JsonFlag = False,
) -> None:
    """List the mails that wait for review, newest first. For maintainers."""
    session = session_of(context)
    page = session.calls(OutboxCalls).deliveries(
        kind=DeliveryKind.MAIL,
        state=None if every else state,
        submission=submission,
        limit=limit,
        cursor=cursor,
    )
    session.output.page(page, as_json=as_json, show=lambda mails: print_deliveries(session.output, mails, "KIND"))


@mail_app.command("show")
def show(context: typer.Context, mail_id: MailId, as_json: JsonFlag = False) -> None:
    """Show a mail with its headers, state and attempts."""
    session = session_of(context)
    found = session.calls(OutboxCalls).delivery(mail_id)
    if as_json:
        session.output.document(found)
        return
    print_attempts(session.output, found)
    if found.mail is not None:
        session.output.line()
        mail = found.mail
        for name, text in (
            ("From", mail.sender),
            ("To", ", ".join(mail.to)),
            ("Cc", ", ".join(mail.cc)),
            ("Subject", mail.subject),
            ("In-Reply-To", f"<{mail.in_reply_to}>" if mail.in_reply_to else ""),
        ):
            if text:
                session.output.line(f"{name}: {one_line(text)}")
        session.output.line()
    session.output.text(found.body)


@mail_app.command("approve")
def approve(context: typer.Context, mail_id: MailId) -> None:
    """Send a mail that waits for review. For maintainers."""
    session = session_of(context)
    approved = session.calls(OutboxCalls).approve_mail(mail_id)
    session.output.line(f"mail {mail_id} to {one_line(approved.destination)} is {approved.state.value}")


@mail_app.command("edit")
def edit(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    mail_id: MailId,
    body: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Replace the text by this file's; - for standard input")
    ] = None,
    subject: Annotated[str | None, typer.Option(help="Replace the subject")] = None,
    to: Annotated[list[str] | None, typer.Option(metavar="ADDRESS", help="Replace To; repeatable")] = None,
    cc: Annotated[list[str] | None, typer.Option(metavar="ADDRESS", help="Replace Cc; repeatable")] = None,
    no_cc: Annotated[bool, typer.Option("--no-cc", help="Leave out everyone in Cc")] = False,
) -> None:
    """Change a mail that waits for review. `show` prints its text. For maintainers."""
    session = session_of(context)
    try:
        text = None if body is None else sys.stdin.read() if str(body) == "-" else body.read_text(encoding="utf-8")
        change = MailEdit(to=to or None, cc=[] if no_cc else cc or None, subject=subject, body=text)
    except OSError as error:
        raise UsageError(f"cannot read {body}: {error.strerror}", "choose another --body FILE") from None
    except ValidationError as error:
        raise UsageError(f"mail: {error.errors()[0]['msg']}", "correct it and try again") from None
    if not change.model_dump(exclude_none=True):
        raise UsageError("nothing to change", "pass --body, --subject, --to, --cc or --no-cc")
    session.calls(OutboxCalls).edit_mail(mail_id, change)
    session.output.line(f"mail {mail_id} is changed; approve it with `wqlab mail approve {mail_id}`")


@mail_app.command("drop")
def drop(
    context: typer.Context,
    mail_id: MailId,
    reason: Annotated[str, typer.Option(help="Why it is not sent")] = "",
) -> None:
    """Decide that a mail is not sent. For maintainers."""
    session = session_of(context)
    session.calls(OutboxCalls).drop_mail(mail_id, reason)
    session.output.line(f"mail {mail_id} is dropped")


@mail_app.command("commands")
def list_commands(context: typer.Context, limit: Limit = 50, cursor: Cursor = None, as_json: JsonFlag = False) -> None:
    """List what replies to the lab's mails asked for, newest first, and what was done. For maintainers."""
    session = session_of(context)
    page = session.calls(OutboxCalls).mail_commands(cursor=cursor, limit=limit)
    header = ("TIME (UTC)", "SENDER", "COMMAND", "MAIL", "STATE", "WHAT WAS DONE")
    session.output.page(
        page,
        as_json=as_json,
        show=lambda commands: session.output.table(header, [_command(each) for each in commands]),
        none="no reply has commanded the lab",
    )


def _command(row: ReceivedCommandView) -> list[str]:
    time, mail = f"{row.at:%Y-%m-%d %H:%M:%S}", str(row.delivery_id)
    return [time, one_line(row.sender), one_line(row.text), mail, row.state.value, one_line(row.reason)]


def register(app: typer.Typer) -> None:
    app.add_typer(mail_app)
