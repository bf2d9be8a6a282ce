"""`wqlab watches`: mailing lists and trees of which the lab measures what is new."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.watches import (
    PREVIEW_DAYS,
    PREVIEW_DAYS_MAX,
    WatchDecision,
    WatchedHead,
    WatchPreview,
)
from wqlab_contracts.enums import DecisionReason, DecisionState, Outcome, WatchedHeadState
from wqlab_contracts.specs import ListWatch, TreeWatch
from wqlab_contracts.watch_file import watch_of
from wqlab_contracts.yamlfile import Document

from ..calls.watches import WatchCalls
from ..errors import LabUnavailable, UsageError
from ..formatting import failure_line
from . import watch_text as text
from .session import Cursor, JsonFlag, Limit, session_of

watches_app = typer.Typer(
    name="watches",
    help="Measure series of mailing lists and new heads of trees.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the watch", show_default=False)]
Days = Annotated[int, typer.Option(min=1, max=PREVIEW_DAYS_MAX, help="Days before now to look at")]
StateT = TypeVar("StateT", bound=StrEnum)


@watches_app.command("list")
def list_watches(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List the watches, and why they stand still."""
    session = session_of(context)
    found = session.calls(WatchCalls).watches()
    if as_json:
        session.output.document(found)
    elif found:
        text.print_watches(session.output, found)
    else:
        session.output.note("no watches; an administrator adds one with `wqlab watches add FILE`")


@watches_app.command("show")
def show(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    name: Name,
    state: Annotated[str | None, typer.Option(help="Only decisions, or heads, in this state")] = None,
    reason: Annotated[DecisionReason | None, typer.Option(help="Only decisions with this reason")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    as_json: JsonFlag = False,
) -> None:
    """Show a watch, and what it decided on the series of its list, or the heads of its tree, newest first."""
    session = session_of(context)
    found = session.calls(WatchCalls).watch(name)
    page: Page[WatchDecision] | Page[WatchedHead]
    if isinstance(found.spec, ListWatch):
        what, chosen = "decisions", _one_of(DecisionState, state)
        page = session.calls(WatchCalls).watch_decisions(name, state=chosen, reason=reason, limit=limit, cursor=cursor)
    elif reason is not None:
        raise UsageError(f"--reason is of decisions, and {name} watches a tree, which has heads", "leave it out")
    else:
        what, head_state = "heads", _one_of(WatchedHeadState, state)
        page = session.calls(WatchCalls).watched_heads(name, state=head_state, limit=limit, cursor=cursor)
    if as_json:
        session.output.document({"watch": found.model_dump(mode="json"), what: page.model_dump(mode="json")})
        return
    text.print_watch(session.output, found)
    session.output.line()
    text.print_page(session.output, page.items)
    if page.next:
        session.output.note(f"{len(page.items)} of {page.total}; next page: --cursor {page.next}")


@watches_app.command("preview")
def preview(context: typer.Context, name: Name, days: Days = PREVIEW_DAYS, as_json: JsonFlag = False) -> None:
    """Show what the watch of a list would have taken in the last days. The first time this takes some minutes."""
    session = session_of(context)
    found = session.calls(WatchCalls).preview_watch(name, days)
    if as_json:
        session.output.document(found)
    else:
        text.print_preview(session.output, found)
    _check_preview(found)


@watches_app.command("add")
def add(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML file of the watch", show_default=False)],
    replace: Annotated[
        bool, typer.Option("--replace", help="Change the watch of this name; it stays enabled or disabled")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Add a watch, disabled. For administrators."""
    session = session_of(context)
    spec = _read(file)
    if replace:
        enabled = session.calls(WatchCalls).watch(spec.name).enabled_at is not None
        made = session.calls(WatchCalls).change_watch(spec.model_copy(update={"enabled": enabled}))
    else:
        made = session.calls(WatchCalls).add_watch(spec.model_copy(update={"enabled": False}))
    if as_json:
        session.output.document(made)
        return
    session.output.line(f"watch {spec.name} is {'changed' if replace else 'added'} and {text.switch(made)}")
    if made.enabled_at is None:
        session.output.note(f"enable it: wqlab watches enable {spec.name}")


@watches_app.command("enable")
def enable(
    context: typer.Context,
    name: Name,
    days: Days = PREVIEW_DAYS,
    yes: Annotated[bool, typer.Option("--yes", help="Enable it without a preview and a question")] = False,
) -> None:
    """Enable a watch. For maintainers.

    Of a list, it first shows what the watch would have taken in the last days, and asks; the watch takes series whose
    last patch arrives from then on. Of a tree, it looks for heads now.
    """
    session = session_of(context)
    if not yes and isinstance(session.calls(WatchCalls).watch(name).spec, ListWatch):
        found = session.calls(WatchCalls).preview_watch(name, days)
        text.print_preview(session.output, found)
        _check_preview(found)
        if not session.output.interactive:
            raise UsageError(f"watch {name} is not enabled: there is no terminal to ask on", "pass --yes")
        typer.confirm(f"Enable watch {name}?", abort=True, err=True)
    session.calls(WatchCalls).switch_watch(name, enabled=True)
    session.output.line(f"watch {name} is enabled")


@watches_app.command("disable")
def disable(context: typer.Context, name: Name) -> None:
    """Disable a watch; submissions that were made go on. For maintainers."""
    session = session_of(context)
    session.calls(WatchCalls).switch_watch(name, enabled=False)
    session.output.line(f"watch {name} is disabled")


@watches_app.command("remove")
def remove(context: typer.Context, name: Name) -> None:
    """Remove a watch. Its decisions or heads are kept, so that nothing is measured twice. For administrators."""
    session = session_of(context)
    session.calls(WatchCalls).remove_watch(name)
    session.output.line(f"watch {name} is removed")


@watches_app.command("check")
def check(context: typer.Context, name: Name) -> None:
    """Look for new heads of a watched tree now. For maintainers."""
    session = session_of(context)
    session.calls(WatchCalls).check_watch(name)
    session.output.line(f"the tree of {name} is looked at now; see `wqlab watches show {name}` in some seconds")


def _read(file: Path) -> ListWatch | TreeWatch:
    """Read the file of a watch. Raises UsageError with every problem of the file."""
    document = Document.read(file, str(file))
    spec = watch_of(document)
    if spec is None:
        raise UsageError("\n".join(str(problem) for problem in document.problems), f"correct {file} and try again")
    return spec


def _one_of(states: type[StateT], name: str | None) -> StateT | None:
    """Return the state of a name. Raises UsageError if there is none."""
    if name is None or name in set(states):
        return None if name is None else states(name)
    raise UsageError(f"no state {name!r}; there are: {', '.join(states)}", "choose one of them")


def _check_preview(preview: WatchPreview) -> None:
    """Raise LabUnavailable if the list could not be read."""
    if preview.outcome is not Outcome.PASSED:
        failure = preview.failure
        line = failure_line(failure) if failure is not None else "the list could not be read"
        raise LabUnavailable(f"preview of watch {preview.spec.name}: {line}", failure.advice if failure else "")


def register(app: typer.Typer) -> None:
    app.add_typer(watches_app)
