"""`wqlab rule`: rules by which series on mailing lists are measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from wqlab_contracts.api.rules import (
    PREVIEW_DAYS,
    PREVIEW_DAYS_MAX,
    PreviewedSeries,
    RuleDecision,
    RulePreview,
    RuleView,
    WatchedListView,
)
from wqlab_contracts.enums import DecisionReason, DecisionState, Outcome
from wqlab_contracts.specs.rules import ListRule
from wqlab_contracts.yamlfile import Document

from ..calls.rules import RuleCalls
from ..errors import LabUnavailable, UsageError
from ..formatting import failure_line, one_line
from .output import Output
from .session import JsonFlag, session_of
from .webhooks import Cursor, Limit

rule_app = typer.Typer(name="rule", help="Measure series from mailing lists.", rich_markup_mode=None)
RuleName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the rule", show_default=False)]
Days = Annotated[int, typer.Option(min=1, max=PREVIEW_DAYS_MAX, help="Days before now to look at")]
_STYLE = {DecisionState.TAKEN: "green", DecisionState.WAITING: "yellow", DecisionState.NOT_TAKEN: "dim"}


@rule_app.command("list")
def list_rules(context: typer.Context, as_json: JsonFlag = False) -> None:
    """List the rules, and whether their lists can be read."""
    session = session_of(context)
    found = session.calls(RuleCalls).rules()
    if as_json:
        session.output.document(found)
        return
    if not found:
        session.output.note("no rules; add one with `wqlab rule add FILE`")
        return
    rows: list[list[Text | str]] = [
        [each.rule.name, each.rule.archive, _switch(each), one_line(_takes(each.rule)), each.rule.owner, _state(each)]
        for each in found
    ]
    session.output.table(("NAME", "LIST", "SWITCH", "TAKES", "OWNER", "STATE"), rows)


@rule_app.command("show")
def show(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    name: RuleName,
    state: Annotated[DecisionState | None, typer.Option(help="Only decisions in this state")] = None,
    reason: Annotated[DecisionReason | None, typer.Option(help="Only decisions with this reason")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    as_json: JsonFlag = False,
) -> None:
    """Show a rule, how far its list has been read, and what it decided, newest first."""
    session = session_of(context)
    found = session.calls(RuleCalls).rule(name)
    page = session.calls(RuleCalls).rule_decisions(name, state=state, reason=reason, limit=limit, cursor=cursor)
    if as_json:
        session.output.document({"rule": found.model_dump(mode="json"), "decisions": page.model_dump(mode="json")})
        return
    _print_rule(session.output, found)
    session.output.line()
    _print_decisions(session.output, page.items)
    if page.next:
        session.output.note(f"{len(page.items)} of {page.total}; next page: --cursor {page.next}")


@rule_app.command("preview")
def preview(context: typer.Context, name: RuleName, days: Days = PREVIEW_DAYS, as_json: JsonFlag = False) -> None:
    """Show what a rule would have taken in the last days. The first time this takes some minutes."""
    session = session_of(context)
    found = session.calls(RuleCalls).preview_rule(name, days)
    if as_json:
        session.output.document(found)
    else:
        _print_preview(session.output, found)
    _check_preview(found)


@rule_app.command("add")
def add(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML file of the rule", show_default=False)],
    replace: Annotated[
        bool, typer.Option("--replace", help="Change the rule of this name; it stays on or off")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Add a rule, switched off. For administrators."""
    session = session_of(context)
    document = Document.read(file, str(file))
    rule = document.validate_as(ListRule)
    if rule is None:
        raise UsageError("\n".join(str(problem) for problem in document.problems), f"correct {file} and try again")
    if replace:
        enabled = session.calls(RuleCalls).rule(rule.name).enabled_at is not None
        made = session.calls(RuleCalls).change_rule(rule.model_copy(update={"enabled": enabled}))
    else:
        made = session.calls(RuleCalls).add_rule(rule.model_copy(update={"enabled": False}))
    if as_json:
        session.output.document(made)
        return
    session.output.line(f"rule {rule.name} is {'changed' if replace else 'added'} and switched {_switch(made)}")
    if made.enabled_at is None:
        session.output.note(f"see what it would have taken, and switch it on: wqlab rule on {rule.name}")


@rule_app.command("on")
def switch_on(
    context: typer.Context,
    name: RuleName,
    days: Days = PREVIEW_DAYS,
    yes: Annotated[bool, typer.Option("--yes", help="Switch it on without a preview and a question")] = False,
) -> None:
    """Show what a rule would have taken in the last days, and switch it on if you confirm. For maintainers.

    It takes series whose last patch arrives after that.
    """
    session = session_of(context)
    if not yes:
        found = session.calls(RuleCalls).preview_rule(name, days)
        _print_preview(session.output, found)
        _check_preview(found)
        if not session.output.interactive:
            raise UsageError(f"rule {name} is not switched on: there is no terminal to ask on", "pass --yes")
        typer.confirm(f"Switch rule {name} on?", abort=True, err=True)
    session.calls(RuleCalls).switch_rule(name, on=True)
    session.output.line(f"rule {name} is switched on")


@rule_app.command("off")
def switch_off(context: typer.Context, name: RuleName) -> None:
    """Switch a rule off; submissions that it made go on. For maintainers."""
    session = session_of(context)
    session.calls(RuleCalls).switch_rule(name, on=False)
    session.output.line(f"rule {name} is switched off")


@rule_app.command("remove")
def remove(context: typer.Context, name: RuleName) -> None:
    """Remove a rule; what it decided is kept. For administrators."""
    session = session_of(context)
    session.calls(RuleCalls).remove_rule(name)
    session.output.line(f"rule {name} is removed")


# --- output -----------------------------------------------------------------------------------------------------


def _switch(view: RuleView) -> str:
    return "off" if view.enabled_at is None else "on"


def _takes(rule: ListRule) -> str:
    """Return in words which series a rule takes."""
    parts = [*rule.paths, *(f'"{each}"' for each in rule.subjects), *rule.authors]
    return "; ".join([", ".join(parts) or "everything", *(["if asked"] if rule.only_if_asked else [])])


def _measures(rule: ListRule) -> str:
    named = ", ".join(rule.targets)
    if rule.what_it_touches:
        return f"what it touches, of {named}" if named else "what it touches"
    return named


def _state(view: RuleView) -> Text:
    watched = view.watched
    if view.problems:
        return Text(one_line(view.problems[0]), style="red")
    if watched is None:
        return Text("" if view.enabled_at is None else "not read yet")
    if watched.failure is not None:
        return Text(f"cannot be read: {one_line(watched.failure.summary)}", style="red")
    if watched.waiting_for_worker_since is not None:
        return Text("waits for a worker of the queue `lists`", style="yellow")
    return Text("not read yet" if watched.read_at is None else f"read {watched.read_at:%Y-%m-%d %H:%M}")


def _print_rule(output: Output, view: RuleView) -> None:
    rule = view.rule
    where = f"the file intake/rules/{rule.name}.yaml" if view.from_file else one_line(view.changed_by)
    hours = ", ".join(f"{each.begins:%H:%M} to {each.ends:%H:%M}" for each in rule.quiet_hours)
    output.line(f"rule {rule.name} ({_switch(view)}), changed {view.changed_at:%Y-%m-%d %H:%M} by {where}")
    if rule.summary:
        output.line(f"  {one_line(rule.summary)}")
    output.line(f"  takes: {one_line(_takes(rule))}")
    output.line(f"  measures: {_measures(rule)}; tree {rule.tree}")
    budget = f"{view.minutes_used:.0f} of {rule.minutes_a_day} minutes used in 24 hours"
    output.line(f"  owner: {one_line(rule.owner)}; {budget}{f'; quiet (UTC) {hours}' if hours else ''}")
    for problem in view.problems:
        output.line(Text(f"  problem: {one_line(problem)}", style="red"))
    if view.watched is not None:
        _print_list(output, view.watched, view)


def _print_list(output: Output, watched: WatchedListView, view: RuleView) -> None:
    mails = f"{watched.mails} mails read, {watched.undecided} of series that are not complete"
    output.line(f"  list {watched.list or watched.archive}: {_state(view)}; {mails}")
    if watched.failure is not None:
        output.line(f"  {one_line(failure_line(watched.failure))}")
        if watched.failure.advice:
            output.line(f"  {one_line(watched.failure.advice)}")


def _print_decisions(output: Output, decisions: list[RuleDecision]) -> None:
    if not decisions:
        output.note("no decision matches")
        return
    rows: list[list[Text | str]] = [
        [
            str(each.id),
            f"{each.created_at:%Y-%m-%d %H:%M}",
            Text(each.state.value.replace("_", " "), style=_STYLE[each.state]),
            "-" if each.submission_id is None else str(each.submission_id),
            one_line(each.subject),
            one_line(each.detail or ", ".join(each.targets)),
        ]
        for each in decisions
    ]
    output.table(("ID", "SEEN (UTC)", "STATE", "SUBMISSION", "SERIES", "REASON OR TARGETS"), rows)


def _print_preview(output: Output, preview: RulePreview) -> None:
    found = preview.found
    if found is None:
        return
    count = "one series" if found.taken == 1 else f"{found.taken} series"
    output.line(
        f"In the last {preview.days} days rule {preview.rule.name} would have taken {count}, "
        f"{found.minutes:.0f} minutes of devices (budget: {preview.rule.minutes_a_day} a day)."
    )
    if found.series:
        header = ("ARRIVED (UTC)", "TAKEN", "MINUTES", "SERIES", "TARGETS OR REASON")
        output.table(header, [_previewed(each) for each in found.series])
    others = ", ".join(f"{reason.value.replace('_', ' ')} {count}" for reason, count in sorted(found.not_taken.items()))
    if others:
        output.note(f"not taken: {others}")
    if not found.is_complete:
        output.note(f"the list has more mails than the {found.mails} that were looked at; pass fewer --days")
    output.lines(one_line(note) for note in found.notes)


def _previewed(series: PreviewedSeries) -> list[Text | str]:
    return [
        f"{series.archived_at:%Y-%m-%d %H:%M}",
        Text("yes", style="green") if series.taken else Text("no", style="dim"),
        "" if series.minutes is None else f"{series.minutes:.0f}",
        one_line(series.subject),
        one_line(series.detail or ", ".join(series.targets)),
    ]


def _check_preview(preview: RulePreview) -> None:
    """Raise LabUnavailable if the list could not be read."""
    if preview.outcome is not Outcome.PASSED:
        failure = preview.failure
        text = failure_line(failure) if failure is not None else "the list could not be read"
        raise LabUnavailable(f"preview of rule {preview.rule.name}: {text}", failure.advice if failure else "")


def register(app: typer.Typer) -> None:
    app.add_typer(rule_app)
