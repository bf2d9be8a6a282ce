"""`wqlab watches`: add, change and remove the mailing lists and trees of which the lab measures what is new."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wqlab_contracts.specs import ListWatch, TreeWatch
from wqlab_contracts.watch_file import watch_of
from wqlab_contracts.yamlfile import Document

from ..calls.watches import WatchCalls
from ..errors import UsageError
from .session import JsonFlag, session_of

watches_app = typer.Typer(
    name="watches",
    help="Add watches of mailing lists and trees from files.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the watch", show_default=False)]


@watches_app.command("add")
def add(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML file of the watch", show_default=False)],
    replace: Annotated[
        bool, typer.Option("--replace", help="Change the watch of this name; it stays enabled or disabled")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Add a watch, disabled. For administrators. The page Watches enables it."""
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
    state = "disabled" if made.enabled_at is None else "enabled"
    session.output.line(f"watch {spec.name} is {'changed' if replace else 'added'} and {state}")
    if made.enabled_at is None:
        session.output.note(f"enable it on the page {session.url}/watches/{spec.name}")


@watches_app.command("remove")
def remove(context: typer.Context, name: Name) -> None:
    """Remove a watch. Its decisions or heads are kept, so that nothing is measured twice. For administrators."""
    session = session_of(context)
    session.calls(WatchCalls).remove_watch(name)
    session.output.line(f"watch {name} is removed")


def _read(file: Path) -> ListWatch | TreeWatch:
    """Read the file of a watch. Raises UsageError with every problem of the file."""
    document = Document.read(file, str(file))
    spec = watch_of(document)
    if spec is None:
        raise UsageError("\n".join(str(problem) for problem in document.problems), f"correct {file} and try again")
    return spec


def register(app: typer.Typer) -> None:
    app.add_typer(watches_app)
