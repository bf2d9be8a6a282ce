"""Watches, decisions, previews and heads as text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from wqlab_contracts.api.watches import HeadRange, PreviewedSeries, WatchDecision, WatchedHead, WatchPreview, WatchView
from wqlab_contracts.enums import DecisionState, WatchedHeadState
from wqlab_contracts.specs import ListWatch, TreeWatch

from ..formatting import failure_line, one_line
from .output import Output

_STYLE = {
    DecisionState.TAKEN: "green",
    DecisionState.WAITING: "yellow",
    DecisionState.NOT_TAKEN: "dim",
    WatchedHeadState.MEASURED: "green",
    WatchedHeadState.FAILED: "red",
    WatchedHeadState.WAITING: "yellow",
    WatchedHeadState.SKIPPED: "dim",
}

# --- watches ----------------------------------------------------------------------------------------------------


def print_watches(output: Output, watches: Sequence[WatchView]) -> None:
    """Print a table of watches, and why they stand still."""
    rows: list[list[Text | str]] = [
        [
            each.spec.name,
            each.spec.kind,
            each.spec.archive if isinstance(each.spec, ListWatch) else each.spec.tree,
            switch(each),
            one_line(_takes(each.spec)),
            one_line(_measures(each.spec)),
            _state(each),
        ]
        for each in watches
    ]
    output.table(("NAME", "KIND", "OF", "SWITCH", "TAKES", "MEASURES", "STATE"), rows)
    for each in watches:
        for obstacle in _obstacles(each):
            output.note(f"{each.spec.name}: {obstacle}")


def print_watch(output: Output, view: WatchView) -> None:
    """Print the fields and the state of a watch."""
    spec = view.spec
    where = f"the file intake/watches/{spec.name}.yaml" if view.from_file else one_line(view.changed_by)
    output.line(f"watch {spec.name} ({switch(view)}), changed {view.changed_at:%Y-%m-%d %H:%M} by {where}")
    if spec.summary:
        output.line(f"  {one_line(spec.summary)}")
    output.line(f"  takes: {one_line(_takes(spec))}")
    output.line(f"  measures: {one_line(_measures(spec))}; tree {spec.tree}")
    if isinstance(spec, TreeWatch):
        output.line(f"  looks every {spec.every_minutes} minutes; batch {spec.batch}; priority {spec.priority}")
    hours = ", ".join(f"{each.begins:%H:%M} to {each.ends:%H:%M}" for each in spec.quiet_hours)
    budget = f"{view.minutes_used:.0f} of {spec.minutes_a_day} minutes used in 24 hours"
    output.line(f"  owner: {one_line(spec.owner)}; {budget}{f'; quiet (UTC) {hours}' if hours else ''}")
    mailing_list, repository = view.mailing_list, view.repository
    if mailing_list is not None:
        mails = f"{mailing_list.mails} mails read, {mailing_list.undecided} of series that are not complete"
        output.line(f"  list {mailing_list.list or mailing_list.archive}: {_state(view)}; {mails}")
    if repository is not None:
        output.line(f"  repository {one_line(repository.url)}: {_state(view)}")
    for obstacle in _obstacles(view):
        output.line(Text(f"  {obstacle}", style="red"))


def switch(view: WatchView) -> str:
    """Return whether a watch is enabled."""
    return "disabled" if view.enabled_at is None else "enabled"


def _takes(spec: ListWatch | TreeWatch) -> str:
    """Return in words which series, or heads, a watch takes."""
    if isinstance(spec, TreeWatch):
        return ", ".join([*spec.branches, *spec.tags])
    parts = [*spec.paths, *(f'"{each}"' for each in spec.subjects), *spec.authors]
    return "; ".join([", ".join(parts) or "everything", *(["if asked"] if spec.only_if_asked else [])])


def _measures(spec: ListWatch | TreeWatch) -> str:
    named = ", ".join(spec.targets)
    if isinstance(spec, ListWatch) and spec.what_it_touches:
        return f"what it touches, of {named}" if named else "what it touches"
    return named


def _state(view: WatchView) -> str:
    """Return when the list was read or the tree looked at, and the number of its heads by state."""
    if view.repository is not None:
        heads = view.repository.heads
        counts = ", ".join(f"{heads[state]} {state.value}" for state in WatchedHeadState if state in heads)
        looked = view.repository.looked_at
        return f"{f'looked {looked:%Y-%m-%d %H:%M}' if looked else 'never looked'}; heads: {counts or 'none'}"
    read = view.mailing_list.read_at if view.mailing_list is not None else None
    if read is None:
        return "" if view.enabled_at is None else "not read yet"
    return f"read {read:%Y-%m-%d %H:%M}"


def _obstacles(view: WatchView) -> list[str]:
    """Return why a watch stands still."""
    found = [f"problem: {one_line(problem)}" for problem in view.problems]
    if view.mailing_list is not None:
        if (failure := view.mailing_list.failure) is not None:
            advice = f"; {one_line(failure.advice)}" if failure.advice else ""
            found.append(f"the list cannot be read: {one_line(failure_line(failure))}{advice}")
        if view.mailing_list.waiting_for_worker_since is not None:
            found.append("the list waits for a worker of the queue `lists`")
    if view.repository is not None and view.repository.problem:
        found.append(f"the last look failed: {one_line(view.repository.problem)}")
    if view.waiting_for:
        found.append(f"no submission is made: {one_line(view.waiting_for)}")
    return found


# --- decisions and heads ----------------------------------------------------------------------------------------


def print_page(output: Output, found: Sequence[WatchDecision] | Sequence[WatchedHead]) -> None:
    """Print decisions as a table, heads with a line or more for each."""
    decisions = [each for each in found if isinstance(each, WatchDecision)]
    if decisions:
        header = ("ID", "SEEN (UTC)", "STATE", "SUBMISSION", "SERIES", "REASON OR TARGETS")
        output.table(header, [_decision(each) for each in decisions])
    for each in found:
        if isinstance(each, WatchedHead):
            _print_head(output, each)
    if not found:
        output.note("nothing matches")


def _decision(decision: WatchDecision) -> list[Text | str]:
    return [
        str(decision.id),
        f"{decision.created_at:%Y-%m-%d %H:%M}",
        Text(decision.state.value.replace("_", " "), style=_STYLE[decision.state]),
        "-" if decision.submission_id is None else str(decision.submission_id),
        one_line(decision.subject),
        one_line(decision.detail or ", ".join(decision.targets)),
    ]


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


# --- previews ---------------------------------------------------------------------------------------------------


def print_preview(output: Output, preview: WatchPreview) -> None:
    """Print what the watch of a list would have taken."""
    found = preview.found
    if found is None:
        return
    count = "one series" if found.taken == 1 else f"{found.taken} series"
    output.line(
        f"In the last {preview.days} days watch {preview.spec.name} would have taken {count}, "
        f"{found.minutes:.0f} minutes of devices (budget: {preview.spec.minutes_a_day} a day)."
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
