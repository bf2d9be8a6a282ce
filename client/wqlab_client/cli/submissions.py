"""`wqlab list`, `show`, `cancel`, `retry`: list, show and change submissions."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from wqlab_contracts.enums import JobState, Outcome, SubmissionState

from ..calls.submissions import SubmissionCalls
from ..display import utc_now
from ..formatting import clean, duration, eta_line, one_line, outcome_text, rough_duration, status_text, verdict_counts
from ..progress import (
    all_runs,
    apply_text,
    block_strip,
    build_name,
    build_text,
    legend,
    run_name,
    run_text,
)
from .session import Cursor, JsonFlag, Limit, Session, SubmissionId, session_of

if TYPE_CHECKING:
    from wqlab_contracts.api.runs import RunView
    from wqlab_contracts.api.submissions import SubmissionSummary, SubmissionView
    from wqlab_contracts.messages import TakenThread


def list_submissions(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    state: Annotated[SubmissionState | None, typer.Option(help="Only submissions in this state")] = None,
    outcome: Annotated[Outcome | None, typer.Option(help="Only submissions with this outcome")] = None,
    tree: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    owner: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    plan: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    device_type: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    search: Annotated[
        str | None, typer.Option("--search", "-q", metavar="TEXT", help="Search in title and series")
    ] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    everything: Annotated[bool, typer.Option("--all", help="List all pages")] = False,
    as_json: JsonFlag = False,
) -> None:
    """List submissions, newest first."""
    session = session_of(context)
    filters = {"tree": tree, "owner": owner, "plan": plan, "device_type": device_type, "q": search}
    page = session.calls(SubmissionCalls).submissions_page(
        state=state, outcome=outcome, limit=limit, cursor=cursor, **filters
    )
    while everything and page.next:
        more = session.calls(SubmissionCalls).submissions_page(
            state=state, outcome=outcome, limit=limit, cursor=page.next, **filters
        )
        page = more.model_copy(update={"items": [*page.items, *more.items]})
    now, header = utc_now(), ("ID", "STATE", "TREE", "OWNER", "AGE", "PRIMARY VERDICTS", "TITLE")
    session.output.page(
        page,
        as_json=as_json,
        show=lambda found: session.output.table(header, [_row(each, now) for each in found]),
        none="no submission matches" if any(filters.values()) or state or outcome else "no submissions yet",
    )


def _row(each: SubmissionSummary, now: datetime) -> list[Text | str]:
    return [
        str(each.id),
        status_text(each.state, each.outcome),
        each.tree,
        each.owner,
        rough_duration((now - each.created_at).total_seconds()),
        verdict_counts(each.verdicts),
        each.title,
    ]


def show(context: typer.Context, submission_id: SubmissionId, as_json: JsonFlag = False) -> None:
    """Show a submission's state: apply, builds, runs with their blocks, failures and findings."""
    session = session_of(context)
    view = session.calls(SubmissionCalls).submission(submission_id)
    if as_json:
        session.output.document(view)
        return
    session.output.lines(format_submission(view, utc_now()))


def format_submission(view: SubmissionView, now: datetime) -> list[Text]:
    """Format a submission with all its steps as lines of text."""
    finished = view.state is SubmissionState.FINISHED
    until = view.finished_at or now
    lines = [
        Text(f"Submission {view.id}: {one_line(view.title)}", style="bold"),
        Text(
            f"  tree {view.tree}, owner {one_line(view.owner)}, priority {view.priority}, "
            f"{view.created_at:%Y-%m-%d %H:%M} UTC, {'took' if finished else 'for'} "
            f"{duration((until - view.created_at).total_seconds())}"
        ),
        Text("  ").append_text(outcome_text(view))
        if finished
        else Text(f"  {view.state}: {_remaining_text(view, now)}"),
    ]
    if view.failure is not None:
        lines += _detail_lines(view.failure.excerpt, view.failure.advice, 4)
    lines.append(_job_line("apply", view.apply.state, view.apply.outcome, apply_text(view.apply)))
    if view.apply.failure is not None and view.apply.failure != view.failure:
        lines += _detail_lines(view.apply.failure.excerpt, view.apply.failure.advice, 4)
    lines += _thread_lines(view.apply.thread) if view.apply.thread is not None else []
    lines += [Text(f"    {one_line(patch.subject)}") for patch in view.apply.patches]
    for build in view.builds:
        lines.append(_job_line(build_name(build), build.state, build.outcome, build_text(build)))
        if build.failure is not None and build.failure != view.failure:
            lines += _detail_lines(build.failure.excerpt, build.failure.advice, 4)
    for run, per_block in all_runs(view):
        lines += _run_lines(run, per_block)
    if any(run.boots for run in view.runs):
        lines.append(Text(f"  {legend(view)}", style="dim"))
    return lines


def _thread_lines(thread: TakenThread) -> list[Text]:
    """Format which revision and mails were taken from an archive."""
    known = ", ".join(f"v{each}" for each in thread.revisions)
    lines = [Text(f"    v{thread.revision} of {known} from archive {one_line(thread.archive)}")]
    lines += [Text(f"    {mail.role} {one_line(mail.url)}") for mail in thread.mails]
    return [*lines, *(Text(f"    {one_line(note)}") for note in thread.notes)]


def _remaining_text(view: SubmissionView, now: datetime) -> str:
    return "; ".join(part for part in (one_line(view.eta.what), eta_line(view.eta, now)) if part)


def _job_line(name: str, state: JobState, outcome: Outcome | None, text: str) -> Text:
    line = Text(f"  {name}: ").append_text(status_text(state, outcome))
    return line.append(f", {text}" if text else "")


def _run_lines(run: RunView, per_block: int) -> list[Text]:
    lines = [_job_line(run_name(run), run.state, run.outcome, run_text(run))]
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
        lines += _detail_lines(finding.excerpt, "", 6)
    return lines


EXCERPT_LINES = 12


def _detail_lines(excerpt: str, advice: str, indent: int) -> list[Text]:
    shown = clean(excerpt).rstrip().splitlines()
    lines = [Text(" " * indent + line) for line in shown[:EXCERPT_LINES]]
    if len(shown) > EXCERPT_LINES:
        lines.append(Text(f"{' ' * indent}... {len(shown) - EXCERPT_LINES} more lines", style="dim"))
    if advice:
        lines.append(Text(f"{' ' * indent}{one_line(advice)}"))
    return lines


def cancel(context: typer.Context, submission_id: SubmissionId, as_json: JsonFlag = False) -> None:
    """Cancel a submission. Builds that it shares with other submissions are not canceled."""
    session = session_of(context)
    _print_state(session, session.calls(SubmissionCalls).cancel(submission_id), as_json)


def retry(
    context: typer.Context,
    submission_id: SubmissionId,
    blocks: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=100, help="Blocks of each target. [default: as before]")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Submit the same request again; builds that passed are reused."""
    session = session_of(context)
    _print_state(session, session.calls(SubmissionCalls).retry(submission_id, blocks=blocks), as_json)


def pin(context: typer.Context, submission_id: SubmissionId, as_json: JsonFlag = False) -> None:
    """Keep the kernels, logs and consoles of a submission until it is unpinned, whatever their age."""
    _print_pin(session_of(context), session_of(context).calls(SubmissionCalls).pin(submission_id), as_json)


def unpin(context: typer.Context, submission_id: SubmissionId, as_json: JsonFlag = False) -> None:
    """Keep the files of a submission only as long as those of others."""
    _print_pin(session_of(context), session_of(context).calls(SubmissionCalls).unpin(submission_id), as_json)


def _print_pin(session: Session, view: SubmissionView, as_json: bool) -> None:
    if as_json:
        session.output.document(view)
    elif view.pinned_at is None:
        session.output.line(f"submission {view.id}: not pinned; its files are deleted by age or when space is needed")
    else:
        session.output.line(
            f"submission {view.id}: pinned by {view.pinned_by}; its files are kept until it is unpinned"
        )


def _print_state(session: Session, view: SubmissionView, as_json: bool) -> None:
    if as_json:
        session.output.document(view)
        return
    line = Text(f"submission {view.id}: ").append_text(status_text(view.state, view.outcome))
    session.output.line(line)
    if view.state is not SubmissionState.FINISHED:
        session.output.note(f"watch it with `wqlab watch {view.id}`")


def register(app: typer.Typer) -> None:
    app.command("list")(list_submissions)
    app.command("show")(show)
    app.command("cancel")(cancel)
    app.command("retry")(retry)
    app.command("pin")(pin)
    app.command("unpin")(unpin)
