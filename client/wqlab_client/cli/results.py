"""`wqlab report`, `logs`, `console`, `samples`, `compare`: print a submission's results."""

from __future__ import annotations

import io
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from wqlab_contracts.enums import Arm, ArtifactKind, JobState

from ..calls.builds import BuildCalls, RunCalls
from ..calls.events import EventCalls
from ..calls.reports import ReportCalls, ReportFormat
from ..calls.submissions import SubmissionCalls
from ..errors import UsageError
from ..formatting import clean, one_line, status_text
from ..progress import apply_text, build_name, build_text, checkpatch_counts
from . import sides
from .looks_option import parse_looks
from .session import JsonFlag, Session, SubmissionId, session_of

if TYPE_CHECKING:
    from wqlab_contracts.api.builds import BuildView
    from wqlab_contracts.api.runs import RunView
    from wqlab_contracts.api.submissions import ApplyView

OutputFile = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to FILE instead of standard output")
]
RunId = Annotated[
    int, typer.Argument(min=1, metavar="RUN", help="Number of the run (`wqlab show`)", show_default=False)
]


def report(
    context: typer.Context,
    submission_id: SubmissionId,
    report_format: Annotated[
        ReportFormat, typer.Option("--format", "-f", help="Format of the report")
    ] = ReportFormat.TEXT,
    output: OutputFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json")] = False,
) -> None:
    """Print a submission's report."""
    session = session_of(context)
    if as_json and report_format not in {ReportFormat.TEXT, ReportFormat.JSON}:
        raise UsageError(f"--json and --format {report_format} exclude each other", "pass one of them")
    chosen = ReportFormat.JSON if as_json else report_format
    session.output.text(session.calls(ReportCalls).report_text(submission_id, chosen), output)


# --- logs -------------------------------------------------------------------------------------------------------


def logs(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    submission_id: SubmissionId,
    build: Annotated[
        str | None,
        typer.Option(metavar="ARM|NUMBER", help="Print the whole log of one build: baseline, candidate or its number"),
    ] = None,
    config: Annotated[
        bool, typer.Option("--config", help="Print the kernel configuration of the baseline, or of --build")
    ] = False,
    output: OutputFile = None,
    as_json: JsonFlag = False,
) -> None:
    """Show how the series was applied, the checkpatch findings, and how the kernels were built."""
    session = session_of(context)
    view = session.calls(SubmissionCalls).submission(submission_id)
    if config:
        if as_json:
            raise UsageError("--config prints a configuration, not JSON", "omit --json or --config")
        first = _chosen_builds(view.builds, build or Arm.BASELINE.value)[0]
        session.output.text(session.calls(BuildCalls).build_config(first.id), output)
        return
    if build is not None:
        if as_json:
            raise UsageError("--build prints a log, not JSON", "omit --json or --build")
        chosen = _chosen_builds(view.builds, build)
        session.output.text("".join(session.calls(BuildCalls).build_log(each.id) for each in chosen), output)
        return
    if as_json:
        session.output.document({"apply": view.apply, "builds": view.builds})
        return
    lines = [*apply_log(view.apply), *(line for each in view.builds for line in build_summary(each))]
    if output is not None:
        session.output.text("\n".join(line.plain for line in lines), output)
        return
    session.output.lines(lines)
    if view.builds:
        session.output.note(
            f"whole build logs: `wqlab logs {submission_id} --build baseline` (or candidate, or a number)"
        )


def _chosen_builds(builds: list[BuildView], selector: str) -> list[BuildView]:
    """Return the builds with this number or arm. Raises UsageError if there is none."""
    chosen = [build for build in builds if selector in {str(build.id), build.arm and build.arm.value}]
    if not chosen:
        known = ", ".join(f"{build.id} ({build.arm})" for build in builds) or "none yet"
        raise UsageError(f"--build {selector}: the submission has no such build", f"builds: {known}")
    return chosen


def apply_log(apply: ApplyView) -> list[Text]:
    """Format how the series was applied, with every checkpatch finding."""
    head = Text("apply: ").append_text(status_text(apply.state, apply.outcome))
    text = apply_text(apply)
    lines = [head.append(f", {text}" if text else "")]
    if apply.failure is not None:
        lines += [Text(f"  {line}") for line in clean(apply.failure.excerpt).rstrip().splitlines()]
        lines += [Text(f"  {one_line(apply.failure.advice)}")] if apply.failure.advice else []
    for patch in apply.patches:
        lines.append(Text(f"  {one_line(patch.subject)}"))
        lines.append(
            Text(f"    {one_line(patch.author)}, +{patch.insertions} -{patch.deletions}, {', '.join(patch.files)}")
        )
    if apply.patches:
        lines.append(Text(f"checkpatch: {checkpatch_counts(apply)}"))
    for finding in apply.checkpatch:
        where = f"{one_line(finding.where)}: " if finding.where else ""
        lines.append(Text(f"  {finding.severity.upper()}: {where}{one_line(finding.text)}"))
    return lines


def build_summary(build: BuildView) -> list[Text]:
    """Format a build's result, compiler, reproducer command, and the warnings that the baseline does not have."""
    head = Text(f"{build_name(build)}: ").append_text(status_text(build.state, build.outcome))
    text = build_text(build)
    lines = [head.append(f", {text}" if text else "")]
    if build.failure is not None:
        lines += [Text(f"  {line}") for line in clean(build.failure.excerpt).rstrip().splitlines()]
        lines += [Text(f"  {one_line(build.failure.advice)}")] if build.failure.advice else []
    for name, value in (
        ("release", build.release),
        ("build id", build.build_id_gnu),
        ("compiler", build.compiler),
        ("reproduce", build.reproducer),
    ):
        if value:
            lines.append(Text(f"  {name}: {one_line(value)}"))
    for warning in build.new_warnings:
        option = f" [{one_line(warning.option)}]" if warning.option else ""
        lines.append(Text(f"  new warning: {one_line(warning.where)}: {one_line(warning.text)}{option}"))
    return lines


# --- runs -------------------------------------------------------------------------------------------------------


def console(
    context: typer.Context,
    run_id: RunId,
    boot: Annotated[
        int | None, typer.Option(min=1, metavar="BOOT", help="Number of the boot, by default the latest")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue with new output and following boots")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="List the run's boots as JSON instead")] = False,
) -> None:
    """Print the console of a boot: unchanged into a pipe, with control characters made visible on a terminal."""
    session = session_of(context)
    run = session.calls(RunCalls).run(run_id)
    if as_json:
        session.output.document(list(run.boots))
        return
    if boot is not None and boot not in {each.id for each in run.boots}:
        raise UsageError(f"--boot {boot}: run {run_id} has no such boot", f"boots: {_boots(run)}")
    if not run.boots and (not follow or run.state is JobState.FINISHED):
        raise UsageError(f"run {run_id} has no boot{' yet' if run.state is not JobState.FINISHED else ''}")
    try:
        if boot is None and follow:
            _follow_run(session, run)
        else:
            chosen = boot or max(each.id for each in run.boots)
            _copy(session, run_id, chosen, follow)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _boots(run: RunView) -> str:
    return ", ".join(f"{each.id} (block {each.block + 1} {each.arm})" for each in run.boots) or "none"


def _follow_run(session: Session, run: RunView) -> None:
    """Print the latest boot, then each new one, until the run ends (of a health check, until the boot ends)."""
    printed = {each.id for each in run.boots[:-1]}
    if run.submission_id is None:
        _copy(session, run.id, run.boots[-1].id, follow=True)
        return
    with closing(session.calls(EventCalls).follow(run.submission_id)) as views:
        for view in views:
            latest = next((each for each in view.runs if each.id == run.id), run)
            for boot in sorted(latest.boots, key=lambda each: each.id):
                if boot.id not in printed:
                    printed.add(boot.id)
                    session.output.note(
                        f"--- run {run.id}, boot {boot.id}: block {boot.block + 1} {boot.arm} on {boot.device} ---"
                    )
                    _copy(session, run.id, boot.id, follow=True)
            if latest.state is JobState.FINISHED:
                return


def _copy(session: Session, run_id: int, boot_id: int, follow: bool) -> None:
    for chunk in session.calls(RunCalls).console(run_id, boot_id, follow=follow):
        session.output.raw(chunk)


def samples(
    context: typer.Context,
    run_id: RunId,
    output: OutputFile = None,
    as_json: JsonFlag = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print instead what the plan's script printed in each boot")
    ] = False,
) -> None:
    """Print a run's samples as CSV, which `wqlab compare` reads."""
    session = session_of(context)
    if raw:
        session.output.text(_raw_output(session.calls(RunCalls), run_id), output)
        return
    if as_json:
        session.output.document(session.calls(RunCalls).samples(run_id))
        return
    session.output.text(session.calls(RunCalls).samples_csv(run_id), output)


def _raw_output(runs: RunCalls, run_id: int) -> str:
    """Return the output of the plan's script, each boot under its file's name. Raises UsageError if none is kept."""
    kept = [artifact for artifact in runs.run_artifacts(run_id) if artifact.kind is ArtifactKind.RAW_OUTPUT]
    if not kept:
        raise UsageError(f"run {run_id} has no output of its plan's script", "no boot has run it, or it was deleted")
    outputs = (runs.run_artifact(run_id, artifact).decode(errors="replace") for artifact in kept)
    return "".join(f"## {artifact.name}\n{text}" for artifact, text in zip(kept, outputs, strict=True))


def compare(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE.csv...|LEFT RIGHT",
            help="CSV files with one sample per row, all of one submission; or two sides that the lab has measured: "
            "SUBMISSION[:baseline|:candidate] or TREE@COMMIT, then any of ;plan=, ;device_type=, ;device=, ;setting=",
            show_default=False,
        ),
    ],
    reference: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[PLAN:]SETTING",
            help="Also compare every other setting with this one; repeatable, one for each plan",
        ),
    ] = None,
    looks: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...",
            help="Numbers of blocks after which the runs were looked at and could have stopped; by default the size "
            "was fixed",
        ),
    ] = None,
    submit: Annotated[
        bool, typer.Option("--submit", help="With LEFT and RIGHT: submit the run that measures both sides in pairs")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Compare samples from CSV files as the lab would, offline; exit 1 for a regression.

    Or compare any two sides that the lab has measured: wqlab compare 12:candidate 17:candidate, wqlab compare
    linux-next@1f2e3d4c5b6a linux-next@9c8b7a6d5e4f, wqlab compare '12:baseline;setting=scope=cache'
    '12:baseline;setting=scope=cpu'
    """
    if sides.are_sides(what):
        if reference or looks:
            raise UsageError("--reference and --looks are for CSV files", "omit them, or name CSV files")
        sides.print_comparison(session_of(context), what[0], what[1], submit=submit, as_json=as_json)
        return
    if submit:
        raise UsageError(
            "--submit needs two sides", "write for example wqlab compare 12:candidate 17:candidate --submit"
        )
    from ..compare import compare_files  # numpy and scipy take a second to import, which other commands avoid

    out = session_of(context).output
    text = io.StringIO()
    code = compare_files(
        [Path(name) for name in what],
        reference or [],
        looks=parse_looks(looks) or (),
        as_json=as_json,
        out=text,
        err=sys.stderr,
    )
    out.text(text.getvalue())
    raise typer.Exit(code)


def register(app: typer.Typer) -> None:
    app.command("report")(report)
    app.command("logs")(logs)
    app.command("console")(console)
    app.command("samples")(samples)
    app.command("compare")(compare)
