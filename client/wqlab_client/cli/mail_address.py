"""`wqlab mail-address`: enter or remove the address that one's results are mailed to, switch these mails on or off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..calls.mail_address import MailAddressCalls
from ..errors import UsageError
from ..formatting import one_line
from .output import Output
from .session import JsonFlag, session_of

if TYPE_CHECKING:
    from wqlab_contracts.api.mail_address import MailAddressView


def mail_address(
    context: typer.Context,
    address: Annotated[
        str | None, typer.Argument(metavar="ADDRESS", help="Where results are mailed to", show_default=False)
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Forget my address")] = False,
    results: Annotated[
        bool | None, typer.Option("--results/--no-results", help="Mail me my results, or do not", show_default=False)
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show my mail address, or enter one: it gets a mail with a link that confirms it, and nothing before that.

    From then on, finished submissions that I own, and those whose series I wrote, are mailed to it.
    """
    if (address is not None) + remove + (results is not None) > 1:
        raise UsageError("an address, --remove and --results exclude each other", "write one of them")
    session = session_of(context)
    if address is not None:
        found = session.calls(MailAddressCalls).ask_mail_address(address)
    elif remove:
        found = session.calls(MailAddressCalls).remove_mail_address()
    elif results is not None:
        found = session.calls(MailAddressCalls).switch_result_mails(on=results)
    else:
        found = session.calls(MailAddressCalls).mail_address()
    if as_json:
        session.output.document(found)
    else:
        _print_address(session.output, found)


def _print_address(output: Output, found: MailAddressView) -> None:
    if not found.sends_mail:
        output.note("this lab sends no mail")
    if found.address is not None:
        are = "are" if found.mail_results else "are not"
        output.line(f"results {are} mailed to {one_line(found.address)}")
    elif found.asked_address is None:
        output.line("no mail address")
    if found.asked_address is not None and found.asked_until is not None:
        until = f"{found.asked_until:%Y-%m-%d %H:%M} UTC"
        output.line(f"{one_line(found.asked_address)} is confirmed by the link in its mail, until {until}")
    if found.problem:
        output.note(f"the mail with the link has not arrived: {one_line(found.problem)}")


def register(app: typer.Typer) -> None:
    app.command("mail-address")(mail_address)
