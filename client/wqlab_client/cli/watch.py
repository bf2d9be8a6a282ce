"""`wqlab watch` and `submit --wait`: show progress until the end, then exit with a code for CI."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from wqlab_contracts.enums import ErrorKind, ExitCode, Outcome, SubmissionState, Verdict

from ..calls.events import EventCalls
from ..calls.reports import ReportCalls, ReportFormat
from ..calls.submissions import SubmissionCalls
from ..display import Display, LiveDisplay, LogDisplay, utc_now
from ..errors import LabUnavailable, WqlabError
from .session import DETACHED_EXIT, Session, SubmissionId, session_of

if TYPE_CHECKING:
    from rich.console import Console

    from wqlab_contracts.api.submissions import SubmissionView

LOG_TICK_S = 15.0

FailOn = Annotated[
    list[Verdict] | None,
    typer.Option(metavar="VERDICT", help="Also exit with 1 for this verdict, such as inconclusive; repeatable"),
]


def exit_code(view: SubmissionView, fail_on: Sequence[Verdict]) -> ExitCode:
    """Return the exit code of a finished submission: 4 over 3 over 1 over 0. `fail_on` applies only to a 0."""
    if view.exit_code is not None:
        code = ExitCode(view.exit_code)
    elif view.outcome is Outcome.PASSED:
        code = ExitCode.REGRESSION if view.verdicts.get(Verdict.REGRESSION) else ExitCode.DONE
    elif view.failure is not None and view.failure.kind in {ErrorKind.USER, ErrorKind.KERNEL}:
        code = ExitCode.SERIES_FAILED
    else:
        code = ExitCode.INFRASTRUCTURE
    if code is ExitCode.DONE and any(view.verdicts.get(verdict) for verdict in fail_on):
        return ExitCode.REGRESSION
    return code


def until_finished(
    session: Session, submission_id: int, fail_on: Sequence[Verdict], console: Console, *, report: bool, as_json: bool
) -> NoReturn:
    """Show progress on `console`, print the report (or the submission as JSON) on stdout, and exit with its code."""
    out = session.output
    view = follow_to_end(session, submission_id, console)
    if as_json:
        out.document(view)
    code = exit_code(view, fail_on)
    if report and not as_json:
        try:
            out.text(session.calls(ReportCalls).report_text(submission_id, ReportFormat.TEXT))
        except WqlabError as error:
            # The submission's exit code matters more than the failure to fetch its report.
            out.error(error)
            code = code or ExitCode.INFRASTRUCTURE
    raise typer.Exit(code)


def follow_to_end(session: Session, submission_id: int, console: Console) -> SubmissionView:
    """Show progress on `console` until the submission is finished, and return it. Ctrl-C ends the command only."""
    out = session.output
    live = out.interactive
    display: Display = LiveDisplay(console, utc_now) if live else LogDisplay(console, utc_now)
    session.report_retry = display.notice
    view = None
    try:
        with (
            display,
            closing(session.calls(EventCalls).follow(submission_id, tick_s=1.0 if live else LOG_TICK_S)) as views,
        ):
            for view in views:
                display.show(view)
    except KeyboardInterrupt:
        out.note(f"detached; submission {submission_id} continues. Resume with `wqlab watch {submission_id} --report`,")
        out.note(f"or stop it with `wqlab cancel {submission_id}`.")
        raise typer.Exit(DETACHED_EXIT) from None
    finally:
        session.report_retry = out.note
    if view is None or view.state is not SubmissionState.FINISHED:
        raise LabUnavailable(f"submission {submission_id}: the stream ended early", "resume with `wqlab watch`")
    return view


def watch(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    submission_id: SubmissionId,
    fail_on: FailOn = None,
    report: Annotated[bool, typer.Option("--report", help="Print the text report at the end")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as one line of JSON")] = False,
    since: Annotated[int, typer.Option(min=0, metavar="SEQ", help="With --json: only events after this number")] = 0,
) -> None:
    """Watch a submission until it is finished; Ctrl-C detaches without canceling it."""
    session = session_of(context)
    if not as_json:
        until_finished(session, submission_id, list(fail_on or []), session.output.out, report=report, as_json=False)
    try:
        for event in session.calls(EventCalls).events(submission_id, after=since):
            session.output.record(event)
    except KeyboardInterrupt:
        raise typer.Exit(DETACHED_EXIT) from None
    raise typer.Exit(exit_code(session.calls(SubmissionCalls).submission(submission_id), list(fail_on or [])))


def register(app: typer.Typer) -> None:
    app.command("watch")(watch)
