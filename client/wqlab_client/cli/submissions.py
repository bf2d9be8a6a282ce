"""`wqlab list`, `show`, `cancel`, `retry`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer
from rich.text import Text

from wqlab_contracts.api.submissions import RunView, SubmissionSummary, SubmissionView
from wqlab_contracts.enums import JobState, Outcome, SubmissionState

from ..display import utc_now
from ..progress import (
    LEGEND,
    apply_text,
    block_strip,
    boots_per_block,
    build_name,
    build_text,
    run_name,
    run_text,
)
from ..wording import clean, duration, ending, eta_line, how_it_stands, one_line, rough, verdict_counts
from .session import JsonFlag, Session, SubmissionId, of


def list_submissions(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    state: Annotated[SubmissionState | None, typer.Option(help="Where they are")] = None,
    outcome: Annotated[Outcome | None, typer.Option(help="How they ended")] = None,
    tree: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    owner: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    plan: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    device_type: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    search: Annotated[str | None, typer.Option("--search", "-q", metavar="TEXT", help="In title and series")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Submissions on a page")] = 20,
    cursor: Annotated[str | None, typer.Option(metavar="CURSOR", help="The page after the one that named it")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All pages")] = False,
    as_json: JsonFlag = False,
) -> None:
    """List submissions, newest first."""
    session = of(context)
    filters = {"tree": tree, "owner": owner, "plan": plan, "device_type": device_type, "q": search}
    page = session.client.submissions_page(state=state, outcome=outcome, limit=limit, cursor=cursor, **filters)
    while everything and page.next:
        more = session.client.submissions_page(state=state, outcome=outcome, limit=limit, cursor=page.next, **filters)
        page = more.model_copy(update={"items": [*page.items, *more.items]})
    if as_json:
        session.output.document(page)
        return
    if not page.items:
        session.output.note("no submission matches" if any(filters.values()) or state or outcome else "none yet")
        return
    now = utc_now()
    session.output.table(
        ("ID", "STATE", "TREE", "OWNER", "AGE", "PRIMARY VERDICTS", "TITLE"), [_row(each, now) for each in page.items]
    )
    if page.next:
        session.output.note(f"{len(page.items)} of {page.total}; the next page: --cursor {page.next}")


def _row(each: SubmissionSummary, now: datetime) -> list[Text | str]:
    return [
        str(each.id),
        how_it_stands(each.state, each.outcome),
        each.tree,
        each.owner,
        rough((now - each.created_at).total_seconds()),
        verdict_counts(each.verdicts),
        each.title,
    ]


def show(context: typer.Context, submission_id: SubmissionId, as_json: JsonFlag = False) -> None:
    """Show where a submission is: apply, builds, runs with their blocks, failures and findings."""
    session = of(context)
    view = session.client.submission(submission_id)
    if as_json:
        session.output.document(view)
        return
    session.output.lines(described(view, utc_now()))


def described(view: SubmissionView, now: datetime) -> list[Text]:
    """A submission as text, each step with all that is known of it."""
    finished = view.state is SubmissionState.FINISHED
    until = view.finished_at or now
    lines = [
        Text(f"Submission {view.id}: {one_line(view.title)}", style="bold"),
        Text(
            f"  tree {view.tree}, owner {one_line(view.owner)}, priority {view.priority}, "
            f"{view.created_at:%Y-%m-%d %H:%M} UTC, {'took' if finished else 'for'} "
            f"{duration((until - view.created_at).total_seconds())}"
        ),
        Text("  ").append_text(ending(view)) if finished else Text(f"  {view.state}: {_what_is_left(view, now)}"),
    ]
    if view.failure is not None:
        lines += _details(view.failure.excerpt, view.failure.advice, 4)
    lines.append(_job("apply", view.apply.state, view.apply.outcome, apply_text(view.apply)))
    if view.apply.failure is not None and view.apply.failure != view.failure:
        lines += _details(view.apply.failure.excerpt, view.apply.failure.advice, 4)
    lines += [Text(f"    {one_line(patch.subject)}") for patch in view.apply.patches]
    for build in view.builds:
        lines.append(_job(build_name(build), build.state, build.outcome, build_text(build)))
        if build.failure is not None and build.failure != view.failure:
            lines += _details(build.failure.excerpt, build.failure.advice, 4)
    for run in view.runs:
        lines += _run(run, boots_per_block(view))
    if any(run.boots for run in view.runs):
        lines.append(Text(f"  {LEGEND}", style="dim"))
    return lines


def _what_is_left(view: SubmissionView, now: datetime) -> str:
    return "; ".join(part for part in (one_line(view.eta.what), eta_line(view.eta, now)) if part)


def _job(name: str, state: JobState, outcome: Outcome | None, text: str) -> Text:
    line = Text(f"  {name}: ").append_text(how_it_stands(state, outcome))
    return line.append(f", {text}" if text else "")


def _run(run: RunView, per_block: int) -> list[Text]:
    lines = [_job(run_name(run), run.state, run.outcome, run_text(run))]
    if run.boots:
        strip = block_strip(run, per_block, 60)
        lines.append(Text(f"    {run.blocks_completed}/{run.blocks_planned} blocks  ").append_text(strip))
    for boot in run.boots:
        if boot.failure is not None:
            where = f"block {boot.block + 1} attempt {boot.attempt + 1}, {boot.arm}, boot {boot.id} on {boot.device}"
            lines.append(Text(f"    {where}: {one_line(boot.failure.summary)}"))
    for finding in run.findings:
        where = f"block {finding.block + 1} attempt {finding.attempt + 1}, {finding.arm}"
        lines.append(Text(f"    {where}: {finding.kind.replace('_', ' ')}: {one_line(finding.title)}"))
        lines += _details(finding.excerpt, "", 6)
    return lines


EXCERPT_LINES = 12


def _details(excerpt: str, advice: str, indent: int) -> list[Text]:
    shown = clean(excerpt).rstrip().splitlines()
    lines = [Text(" " * indent + line) for line in shown[:EXCERPT_LINES]]
    if len(shown) > EXCERPT_LINES:
        lines.append(Text(f"{' ' * indent}... {len(shown) - EXCERPT_LINES} more lines", style="dim"))
    if advice:
        lines.append(Text(f"{' ' * indent}{one_line(advice)}"))
    return lines


def cancel(context: typer.Context, submission_id: SubmissionId, as_json: JsonFlag = False) -> None:
    """Cancel a submission; builds that others wait for go on."""
    session = of(context)
    _answer(session, session.client.cancel(submission_id), as_json)


def retry(context: typer.Context, submission_id: SubmissionId, as_json: JsonFlag = False) -> None:
    """Submit the same request again; builds that passed are reused."""
    session = of(context)
    _answer(session, session.client.retry(submission_id), as_json)


def _answer(session: Session, view: SubmissionView, as_json: bool) -> None:
    if as_json:
        session.output.document(view)
        return
    line = Text(f"submission {view.id}: ").append_text(how_it_stands(view.state, view.outcome))
    session.output.line(line)
    if view.state is not SubmissionState.FINISHED:
        session.output.note(f"watch it with `wqlab watch {view.id}`")


def register(app: typer.Typer) -> None:
    app.command("list")(list_submissions)
    app.command("show")(show)
    app.command("cancel")(cancel)
    app.command("retry")(retry)
