"""`wqlab webhook`: add, list, test, pause, rotate and remove webhooks, and read and replay their deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from wqlab_contracts.enums import DeliveryKind, DeliveryState, OutboxEvent

from ..calls.outbox import OutboxCalls
from ..display import utc_now
from ..formatting import one_line, rough_duration
from .output import Output
from .session import Cursor, JsonFlag, Limit, session_of

if TYPE_CHECKING:
    from wqlab_contracts.api.deliveries import DeliveryAttemptView, DeliveryDetail, DeliveryView, MailBounceView
    from wqlab_contracts.api.webhooks import WebhookSecret, WebhookView

webhook_app = typer.Typer(name="webhook", help="Get the lab's events by HTTP.", rich_markup_mode=None)
WebhookId = Annotated[int, typer.Argument(min=1, metavar="ID", help="Number of the webhook", show_default=False)]
DeliveryId = Annotated[int, typer.Argument(min=1, metavar="ID", help="Number of the delivery", show_default=False)]
_STYLE = {
    DeliveryState.DELIVERED: "green",
    DeliveryState.GIVEN_UP: "red",
    DeliveryState.WAITING_FOR_REVIEW: "yellow",
    DeliveryState.DROPPED: "dim",
}


@webhook_app.command("add")
def add(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="https URL that events are posted to", show_default=False)],
    event: Annotated[
        list[OutboxEvent] | None, typer.Option("--event", help="Only this event; repeatable (default: all)")
    ] = None,
    mine: Annotated[bool, typer.Option("--mine", help="Only my own submissions")] = False,
    device_type: Annotated[
        list[str] | None, typer.Option("--device-type", metavar="TYPE", help="Only this device type; repeatable")
    ] = None,
    plan: Annotated[list[str] | None, typer.Option("--plan", help="Only this plan; repeatable")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Add a webhook and print the secret that its receiver checks signatures with; it is shown only once.

    Without --mine, --device-type and --plan it gets the events of the whole lab; only administrators may add that.
    """
    session = session_of(context)
    made = session.calls(OutboxCalls).add_webhook(
        url, event or list(OutboxEvent), mine=mine, device_types=device_type, plans=plan
    )
    _print_secret(session.output, made, as_json)


@webhook_app.command("list")
def list_webhooks(context: typer.Context, limit: Limit = 50, cursor: Cursor = None, as_json: JsonFlag = False) -> None:
    """List my webhooks, for administrators those of all users."""
    session = session_of(context)
    page = session.calls(OutboxCalls).webhooks(limit=limit, cursor=cursor)
    session.output.page(
        page,
        as_json=as_json,
        show=lambda webhooks: session.output.table(
            ("ID", "OWNER", "URL", "ONLY", "EVENTS"),
            [[str(each.id), each.owner, one_line(each.url), _filter(each), _events(each)] for each in webhooks],
        ),
        none="no webhooks; add one with `wqlab webhook add`",
    )


@webhook_app.command("rotate")
def rotate(context: typer.Context, webhook_id: WebhookId, as_json: JsonFlag = False) -> None:
    """Make a new secret and print it; for a day events are signed with the previous one too."""
    session = session_of(context)
    _print_secret(session.output, session.calls(OutboxCalls).rotate_webhook(webhook_id), as_json)


@webhook_app.command("test")
def test(context: typer.Context, webhook_id: WebhookId) -> None:
    """Send the event webhook.test, whatever events the webhook gets."""
    session = session_of(context)
    made = session.calls(OutboxCalls).test_webhook(webhook_id)
    session.output.line(f"delivery {made.id} is being sent; see `wqlab webhook delivery {made.id}`")


@webhook_app.command("pause")
def pause(context: typer.Context, webhook_id: WebhookId) -> None:
    """Let a webhook get no events until it is resumed; what waits for it already is sent."""
    session = session_of(context)
    session.calls(OutboxCalls).pause_webhook(webhook_id)
    session.output.line(f"webhook {webhook_id} is paused; `wqlab webhook resume {webhook_id}` lets it get events again")


@webhook_app.command("resume")
def resume(context: typer.Context, webhook_id: WebhookId) -> None:
    """Let a paused webhook get events again, from now on."""
    session = session_of(context)
    session.calls(OutboxCalls).resume_webhook(webhook_id)
    session.output.line(f"webhook {webhook_id} gets events again")


@webhook_app.command("remove")
def remove(context: typer.Context, webhook_id: WebhookId) -> None:
    """Remove a webhook; what waits for it is dropped."""
    session = session_of(context)
    session.calls(OutboxCalls).remove_webhook(webhook_id)
    session.output.line(f"webhook {webhook_id} is removed")


@webhook_app.command("deliveries")
def list_deliveries(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    webhook: Annotated[int | None, typer.Option(min=1, metavar="ID", help="Only of this webhook")] = None,
    submission: Annotated[int | None, typer.Option(min=1, metavar="ID", help="Only about this submission")] = None,
    state: Annotated[DeliveryState | None, typer.Option(help="Only in this state")] = None,
    kind: Annotated[DeliveryKind, typer.Option(help="What was sent")] = DeliveryKind.WEBHOOK,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: JsonFlag = False,
) -> None:
    """List what was sent, newest first, and what waits to be sent: to webhooks, or with --kind otherwise."""
    session = session_of(context)
    page = session.calls(OutboxCalls).deliveries(
        kind=kind, webhook=webhook, submission=submission, state=state, limit=limit, cursor=cursor
    )
    session.output.page(page, as_json=as_json, show=lambda sent: print_deliveries(session.output, sent, "EVENT"))


@webhook_app.command("delivery")
def show(context: typer.Context, delivery_id: DeliveryId, as_json: JsonFlag = False) -> None:
    """Show one delivery: each attempt with the receiver's answer, and the JSON that is posted."""
    session = session_of(context)
    found = session.calls(OutboxCalls).delivery(delivery_id)
    if as_json:
        session.output.document(found)
        return
    print_attempts(session.output, found)
    session.output.text(found.body)


@webhook_app.command("replay")
def replay(context: typer.Context, delivery_id: DeliveryId) -> None:
    """Send a delivery that was given up or accepted again, with its old id."""
    session = session_of(context)
    session.calls(OutboxCalls).replay_delivery(delivery_id)
    session.output.line(f"delivery {delivery_id} is sent again; see `wqlab webhook delivery {delivery_id}`")


# --- output -----------------------------------------------------------------------------------------------------


def print_deliveries(output: Output, deliveries: list[DeliveryView], title: str) -> None:
    """Print a table of deliveries; `title` is that of the column with the event."""
    if not deliveries:
        output.note("no delivery matches")
        return
    now = utc_now()
    header = ("ID", "CREATED (UTC)", title, "DESTINATION", "STATE", "TRIES", "NEXT", "REASON")
    output.table(header, [_row(each, now) for each in deliveries])


def print_attempts(output: Output, found: DeliveryDetail) -> None:
    """Print state, reason and attempts of a delivery."""
    output.line(Text.assemble(f"delivery {found.id} to {one_line(found.destination)}: ", _state(found.state)))
    output.line(f"id of all attempts: {one_line(found.message_id)}")
    if found.reason:
        output.line(f"reason: {one_line(found.reason)}")
    output.lines(_attempt(each) for each in found.attempts)
    output.lines(_bounce(each) for each in found.bounces)


def _row(delivery: DeliveryView, now: datetime) -> list[Text | str]:
    wait_s = (delivery.next_at - now).total_seconds() if delivery.next_at else None
    return [
        str(delivery.id),
        f"{delivery.created_at:%Y-%m-%d %H:%M:%S}",
        delivery.event,
        one_line(delivery.destination),
        _state(delivery.state),
        str(delivery.tries),
        "" if wait_s is None else "now" if wait_s <= 0 else f"in {rough_duration(wait_s)}",
        one_line(delivery.reason),
    ]


def _bounce(bounce: MailBounceView) -> str:
    at = f" {bounce.at:%Y-%m-%d %H:%M:%S}" if bounce.at else ""
    answer = " ".join(filter(None, (bounce.status, one_line(bounce.text)[:200])))
    return f"  reported{at}: {bounce.action} for {one_line(bounce.recipient)}" + (f": {answer}" if answer else "")


def _attempt(attempt: DeliveryAttemptView) -> str:
    outcome = attempt.outcome.value if attempt.outcome else "being sent"
    status = f", status {attempt.status}" if attempt.status else ""
    problem = f": {one_line(attempt.problem)}" if attempt.problem else ""
    answer = f' (answer: "{one_line(attempt.answer)[:200]}")' if attempt.answer else ""
    return f"  {attempt.number}. {attempt.started_at:%Y-%m-%d %H:%M:%S}: {outcome}{status}{problem}{answer}"


def _state(state: DeliveryState) -> Text:
    return Text(state.value.replace("_", " "), style=_STYLE.get(state, ""))


def _filter(webhook: WebhookView) -> str:
    wanted = webhook.filter
    parts = [*(["mine"] if wanted.mine else []), *wanted.device_types, *wanted.plans]
    return ", ".join(parts) or "-"


def _events(webhook: WebhookView) -> str:
    text = "all" if len(webhook.events) == len(OutboxEvent) else ", ".join(event.value for event in webhook.events)
    return f"{text} (paused)" if webhook.paused_at else text


def _print_secret(output: Output, made: WebhookSecret, as_json: bool) -> None:
    if as_json:
        output.document(made)
        return
    output.note(f"webhook {made.id} of {one_line(made.url)}; its secret, shown only once:")
    output.line(made.secret)
    if made.rotating_until:
        output.note(f"events are signed with the previous secret too until {made.rotating_until:%Y-%m-%d %H:%M} UTC")


def register(app: typer.Typer) -> None:
    app.add_typer(webhook_app)
