"""`wqlab forge`: events, polls and errors of forges, and the heads that wait or are not measured."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from wqlab_contracts.enums import ForgeHeadState

from ..calls.forges import ForgeCalls
from ..formatting import one_line
from .output import Output
from .session import JsonFlag, session_of

if TYPE_CHECKING:
    from wqlab_contracts.api.forges import ForgeHeadView, ForgeView

forge_app = typer.Typer(
    name="forge",
    help="Show the forges whose pull requests and pushes are measured (maintainers).",
    rich_markup_mode=None,
    no_args_is_help=True,
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the forge", show_default=False)]


@forge_app.command("list")
def list_forges(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List the forges: last event, last poll, last error, and how many heads are in which state."""
    session = session_of(context)
    found = session.calls(ForgeCalls).forges()
    if as_json:
        session.output.document(found)
        return
    if not found:
        session.output.note("no forges; the operator lists them in intake/forges.yaml")
        return
    rows = [
        [each.name, one_line(each.repository), _time(each.last_event_at), _time(each.polled_at), _counts(each)]
        for each in found
    ]
    session.output.table(("NAME", "REPOSITORY", "EVENT (UTC)", "POLL (UTC)", "HEADS"), rows)
    for each in found:
        _print_error(session.output, each)


@forge_app.command("show")
def show(context: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """Show a forge, the heads that are still to be measured, and those that were not, with reasons."""
    session = session_of(context)
    found = session.calls(ForgeCalls).forge(name)
    if as_json:
        session.output.document(found)
        return
    output = session.output
    output.line(f"{found.name}: {found.kind.value} {one_line(found.url)}, tree {found.tree}, owner {found.owner}")
    label = f", or by the label {one_line(found.label)!r}" if found.label else ""
    output.line(f"device time is spent by {found.may_spend}{label}")
    answer = f": {one_line(found.last_event)}, {one_line(found.last_event_answer)}" if found.last_event_at else ""
    output.line(f"last event {_time(found.last_event_at)}{answer}")
    later = f"next {_time(found.next_poll_at)}" if found.next_poll_at else "polls are switched off"
    missed = f"; {found.missed} changes found by polls, last {_time(found.missed_at)}" if found.missed else ""
    output.line(f"last poll {_time(found.polled_at)}, {later}{missed}")
    if not found.complete:
        output.note("it has more pull requests or branches than a poll reads: only events tell of new ones")
    if status := found.last_status:
        output.line(
            f"last status {_time(status.at)}: {status.state} at {status.commit[:12]} "
            f"({status.delivery.value}, delivery {status.delivery_id}): {one_line(status.description)}"
        )
    _print_error(output, found)
    for title, heads in (("not finished", found.waiting), ("not measured", found.not_measured)):
        if heads:
            output.line(f"\n{title}:")
            for head in heads:
                output.line(f"  {_head(head)}")


@forge_app.command("poll")
def poll(context: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """Ask a forge now for heads of which no event has told, for example after the lab was away."""
    session = session_of(context)
    found = session.calls(ForgeCalls).poll_forge(name)
    if as_json:
        session.output.document(found)
    else:
        session.output.line(f"forge {name} is polled; see `wqlab forge show {name}` in some seconds")


def _head(head: ForgeHeadView) -> str:
    who = f" by {one_line(head.author)}" if head.author else ""
    fork = " (fork)" if head.from_fork else ""
    what = f"{one_line(head.change)} {head.commit[:12]}{who}{fork}, seen {_time(head.seen_at)}"
    submission = f", submission {head.submission_id}" if head.submission_id is not None else ""
    reason = f": {one_line(head.reason)}" if head.reason else ""
    return f"{what}: {head.state.value.replace('_', ' ')}{submission}{reason}"


def _print_error(output: Output, forge: ForgeView) -> None:
    if error := forge.last_error:
        output.note(f"{forge.name}: last error {_time(error.at)}, {one_line(error.what)}: {one_line(error.problem)}")


def _time(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if at else "never"


def _counts(forge: ForgeView) -> str:
    found = [
        f"{forge.heads[state]} {state.value.replace('_', ' ')}" for state in ForgeHeadState if state in forge.heads
    ]
    return ", ".join(found) or "none"


def register(app: typer.Typer) -> None:
    app.add_typer(forge_app)
