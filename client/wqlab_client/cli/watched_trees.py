"""`wqlab watched-tree`: list and show watched trees and their heads; add, change, switch and remove them, look now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from wqlab_contracts.enums import WatchedHeadState
from wqlab_contracts.specs import WatchedTree
from wqlab_contracts.yamlfile import Document

from ..calls.watched_trees import WatchedTreeCalls
from ..errors import UsageError
from ..formatting import one_line
from .output import Output
from .session import JsonFlag, session_of

if TYPE_CHECKING:
    from wqlab_contracts.api.watched_trees import HeadRange, WatchedHead, WatchedTreeView

watched_tree_app = typer.Typer(
    name="watched-tree", help="Measure new heads of kernel trees.", rich_markup_mode=None, no_args_is_help=True
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the watched tree", show_default=False)]
SpecFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="YAML file with name, tree, branches or tags, targets, owner ...", show_default=False
    ),
]
_STYLE = {
    WatchedHeadState.MEASURED: "green",
    WatchedHeadState.FAILED: "red",
    WatchedHeadState.WAITING: "yellow",
    WatchedHeadState.SKIPPED: "dim",
}


@watched_tree_app.command("list")
def list_watched_trees(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List the watched trees, and what keeps each from being measured."""
    session = session_of(context)
    found = session.calls(WatchedTreeCalls).watched_trees()
    if as_json:
        session.output.document(found)
        return
    if not found:
        session.output.note("no watched trees; a maintainer adds one with `wqlab watched-tree add FILE`")
        return
    rows = [
        [each.spec.name, _refs(each), ", ".join(each.spec.targets), _switch(each), _looked(each), _counts(each)]
        for each in found
    ]
    session.output.table(("NAME", "WATCHES", "MEASURES", "ON", "LOOKED (UTC)", "HEADS"), rows)
    for each in found:
        _print_obstacles(session.output, each)


@watched_tree_app.command("show")
def show(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    name: Name,
    state: Annotated[WatchedHeadState | None, typer.Option(help="Only heads in this state")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Heads per page")] = 20,
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Continue after the page that printed this cursor")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show a watched tree and its heads, newest first: what each was compared with, or why it was not measured."""
    session = session_of(context)
    heads = session.calls(WatchedTreeCalls).watched_heads(name, state=state, limit=limit, cursor=cursor)
    if as_json:
        session.output.document(heads)
        return
    tree = session.calls(WatchedTreeCalls).watched_tree(name)
    output, spec = session.output, tree.spec
    output.line(f"{spec.name}: {_refs(tree)} of {one_line(tree.url)}, {_switch(tree)}; owner {one_line(spec.owner)}")
    origin = "defined in the data folder" if tree.from_file else f"added by {one_line(tree.created_by)}"
    output.line(
        f"measures {', '.join(spec.targets)}; looks every {spec.every_minutes} minutes; batch {spec.batch}; "
        f"at most {spec.minutes_a_day} minutes of device time a day; {origin}"
    )
    _print_obstacles(output, tree)
    for head in heads.items:
        _print_head(output, head)
    if heads.next:
        output.note(f"{len(heads.items)} of {heads.total} heads; next page: --cursor {heads.next}")


@watched_tree_app.command("add")
def add(context: typer.Context, file: SpecFile, as_json: JsonFlag = False) -> None:
    """Watch a tree (maintainers). Its first head is the starting point; later ones are measured."""
    session = session_of(context)
    _print_change(session.output, session.calls(WatchedTreeCalls).add_watched_tree(_read(file)), "is watched", as_json)


@watched_tree_app.command("change")
def change(context: typer.Context, file: SpecFile, as_json: JsonFlag = False) -> None:
    """Replace what is watched and measured by the content of FILE (maintainers)."""
    session = session_of(context)
    _print_change(
        session.output, session.calls(WatchedTreeCalls).change_watched_tree(_read(file)), "is changed", as_json
    )


@watched_tree_app.command("on")
def switch_on(context: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """Watch a tree again, and look now (maintainers)."""
    session = session_of(context)
    _print_change(
        session.output, session.calls(WatchedTreeCalls).switch_watched_tree(name, enabled=True), "is on", as_json
    )


@watched_tree_app.command("off")
def switch_off(context: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """Look for no new heads and submit none (maintainers); what is being measured ends."""
    session = session_of(context)
    _print_change(
        session.output, session.calls(WatchedTreeCalls).switch_watched_tree(name, enabled=False), "is off", as_json
    )


@watched_tree_app.command("remove")
def remove(context: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """Stop watching a tree (maintainers). Its heads are kept, so that none is measured twice."""
    session = session_of(context)
    _print_change(session.output, session.calls(WatchedTreeCalls).remove_watched_tree(name), "is removed", as_json)


@watched_tree_app.command("check")
def check(context: typer.Context, name: Name, as_json: JsonFlag = False) -> None:
    """Look for new heads now (maintainers)."""
    session = session_of(context)
    what = f"is looked at now; see `wqlab watched-tree show {name}` in some seconds"
    _print_change(session.output, session.calls(WatchedTreeCalls).check_watched_tree(name), what, as_json)


def _read(file: Path) -> WatchedTree:
    """Read a spec. Raises UsageError with every problem of the file."""
    document = Document.read(file, str(file))
    spec = document.validate_as(WatchedTree)
    if spec is None or document.problems:
        problems = "\n".join(str(problem) for problem in document.problems)
        raise UsageError(problems or f"{file} is empty", "correct the file and try again")
    return spec


# --- output -----------------------------------------------------------------------------------------------------


def _print_change(output: Output, tree: WatchedTreeView, what: str, as_json: bool) -> None:
    if as_json:
        output.document(tree)
    else:
        output.line(f"watched tree {tree.spec.name} {what}")


def _print_obstacles(output: Output, tree: WatchedTreeView) -> None:
    if tree.problem:
        output.note(f"{tree.spec.name}: the last look failed: {one_line(tree.problem)}")
    if tree.waiting_for:
        output.note(f"{tree.spec.name}: heads wait: {one_line(tree.waiting_for)}")


def _print_head(output: Output, head: WatchedHead) -> None:
    name = "" if head.name == head.ref else f" {one_line(head.name)}"
    line = Text.assemble(
        f"{head.seen_at:%Y-%m-%d %H:%M} {one_line(head.ref)}{name} {head.commit[:12]}: ",
        (head.state.value, _STYLE.get(head.state, "")),
    )
    if head.compared_with is not None and head.submission_id is not None:
        line.append(f" against {head.compared_with.commit[:12]} in submission {head.submission_id}")
    if head.related is not None:
        line.append(f" ({head.related.ahead} commits)")
    if head.verdicts:
        line.append(f": {', '.join(verdict.replace('_', ' ') for verdict in head.verdicts)}")
    output.line(line)
    for text in (head.reason, f"history is cut: {head.cut}" if head.cut else "", _range(head.range)):
        if text:
            output.line(f"    {one_line(text)}")


def _range(found: HeadRange | None) -> str:
    if found is None:
        return ""
    if not found.descends:
        return f"differs, but {found.bad[:12]} does not descend from {found.good[:12]}: there is no range to bisect"
    count = "" if found.commits is None else f", {found.commits} commits"
    skipped = f"; heads between: {', '.join(each[:12] for each in found.skipped)}" if found.skipped else ""
    return f"to bisect: {found.good[:12]}..{found.bad[:12]}{count}{skipped}"


def _refs(tree: WatchedTreeView) -> str:
    return ", ".join([*tree.spec.branches, *tree.spec.tags])


def _switch(tree: WatchedTreeView) -> str:
    return "on" if tree.enabled else "off"


def _looked(tree: WatchedTreeView) -> str:
    return f"{tree.looked_at:%Y-%m-%d %H:%M}" if tree.looked_at else "never"


def _counts(tree: WatchedTreeView) -> str:
    return (
        ", ".join(f"{tree.heads[state]} {state.value}" for state in WatchedHeadState if state in tree.heads) or "none"
    )


def register(app: typer.Typer) -> None:
    app.add_typer(watched_tree_app)
