"""`wqlab subscription`: subscribe to results by mail or webhook, list and remove it, enter a mail address."""

from __future__ import annotations

from typing import Annotated

import typer

from wqlab_contracts.api.subscriptions import MailAddressView, SubscriptionView
from wqlab_contracts.enums import SubscriptionKind

from ..errors import UsageError
from ..formatting import one_line
from .output import Output
from .session import JsonFlag, session_of

subscription_app = typer.Typer(name="subscription", help="Get results by mail or webhook.", rich_markup_mode=None)
Cursor = Annotated[str | None, typer.Option(metavar="CURSOR", help="Continue after the page that printed this cursor")]
Limit = Annotated[int, typer.Option(min=1, max=200, help="Entries per page")]


@subscription_app.command("add")
def add(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    mine: Annotated[bool, typer.Option("--mine", help="Submissions that I own or whose series I wrote")] = False,
    regressions: Annotated[
        str | None, typer.Option("--regressions", metavar="PLAN", help="Submissions that regress in this plan")
    ] = None,
    device_type: Annotated[
        str | None,
        typer.Option("--device-type", metavar="TYPE", help="Submissions on this device type; limits --regressions"),
    ] = None,
    webhook: Annotated[
        int | None, typer.Option(min=1, metavar="ID", help="Post to this webhook of mine instead of a mail")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Subscribe to finished submissions: --mine, --device-type TYPE, or --regressions PLAN.

    They come by mail, one for each submission whatever number of subscriptions match, or to a webhook.
    """
    if mine + (regressions is not None) > 1 or not (mine or regressions or device_type) or (mine and device_type):
        raise UsageError(
            "say which results", "write one of --mine, --device-type TYPE, --regressions PLAN [--device-type TYPE]"
        )
    kind = SubscriptionKind.DEVICE_TYPE
    if mine or regressions:
        kind = SubscriptionKind.MY_SERIES if mine else SubscriptionKind.REGRESSIONS
    session = session_of(context)
    made = session.client.subscribe(kind, device_type=device_type, plan=regressions, webhook=webhook)
    if as_json:
        session.output.document(made)
        return
    session.output.line(f"subscription {made.id}: {made.text}, {_way(made)}")
    if made.webhook_id is None and session.client.mail_address().address is None:
        session.output.note(
            "you have no confirmed mail address yet: enter one with `wqlab subscription address ADDRESS`"
        )


@subscription_app.command("list")
def list_subscriptions(
    context: typer.Context, limit: Limit = 50, cursor: Cursor = None, as_json: JsonFlag = False
) -> None:
    """List my subscriptions."""
    session = session_of(context)
    page = session.client.subscriptions(limit=limit, cursor=cursor)
    if as_json:
        session.output.document(page)
        return
    if not page.items:
        session.output.note("no subscriptions; add one with `wqlab subscription add`")
        return
    session.output.table(("ID", "RESULTS", "SENT"), [[str(each.id), each.text, _way(each)] for each in page.items])
    if page.next:
        session.output.note(f"{len(page.items)} of {page.total}; next page: --cursor {page.next}")


@subscription_app.command("remove")
def remove(
    context: typer.Context,
    subscription_id: Annotated[
        int, typer.Argument(min=1, metavar="ID", help="Number of the subscription", show_default=False)
    ],
) -> None:
    """Remove a subscription; mails that wait because of it alone are dropped."""
    session = session_of(context)
    session.client.remove_subscription(subscription_id)
    session.output.line(f"subscription {subscription_id} is removed")


@subscription_app.command("address")
def address(
    context: typer.Context,
    wanted: Annotated[
        str | None, typer.Argument(metavar="ADDRESS", help="Where results are mailed to", show_default=False)
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Forget my address")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show my mail address, or enter one: it gets a mail with a link that confirms it, and nothing before that."""
    if wanted is not None and remove:
        raise UsageError("an address and --remove exclude each other", "write one of them")
    session = session_of(context)
    if remove:
        found = session.client.remove_mail_address()
    else:
        found = session.client.mail_address() if wanted is None else session.client.ask_mail_address(wanted)
    if as_json:
        session.output.document(found)
    else:
        _print_address(session.output, found)


def _print_address(output: Output, found: MailAddressView) -> None:
    if not found.sends_mail:
        output.note("this lab sends no mail")
    if found.address is not None:
        output.line(f"results are mailed to {one_line(found.address)}")
    elif found.asked_address is None:
        output.line("no mail address")
    if found.asked_address is not None and found.asked_until is not None:
        until = f"{found.asked_until:%Y-%m-%d %H:%M} UTC"
        output.line(f"{one_line(found.asked_address)} is confirmed by the link in its mail, until {until}")
    if found.problem:
        output.note(f"the mail with the link has not arrived: {one_line(found.problem)}")


def _way(subscription: SubscriptionView) -> str:
    if subscription.webhook_id is None:
        return "by mail"
    return f"to webhook {subscription.webhook_id} ({one_line(subscription.webhook_url or '')})"


def register(app: typer.Typer) -> None:
    app.add_typer(subscription_app)
