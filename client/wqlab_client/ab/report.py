"""Make the report of a run in a folder, in the formats of a lab's reports."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from types import SimpleNamespace

from wqlab_comparison import Stated, boot_values, compare, curves, is_regression, summarise, write_csv
from wqlab_comparison.reasons import reasons
from wqlab_comparison.runs import RecordedBoot, conclude_run, facts_of_run, recorded_run
from wqlab_comparison.target import Conclusion, deciding
from wqlab_contracts import traced_counts, workqueue_series
from wqlab_contracts.api.builds import BuildView
from wqlab_contracts.api.report import AttemptView, Comparison, Report, TargetReport, UnsupportedView
from wqlab_contracts.api.submissions import (
    ApplyView,
    Eta,
    SubmissionView,
    SubmittedRequest,
    SubmittedSeries,
)
from wqlab_contracts.bundle import BootRecord, RunRecord, plain_name
from wqlab_contracts.enums import (
    PAIR,
    Arm,
    ErrorKind,
    ExitCode,
    JobState,
    Outcome,
    SubmissionState,
    Verdict,
)
from wqlab_contracts.messages import BootKey, Failure, Target
from wqlab_report.content.failures import main_failure
from wqlab_report.content.shared_text import method_of
from wqlab_report.formats import SUFFIXES, ReportFormat, render
from wqlab_report.parts.config_diff import config_difference
from wqlab_report.parts.environment import environment_of
from wqlab_report.parts.wait_cells import wait_cells
from wqlab_report.parts.workqueue_cells import workqueue_cells
from wqlab_report.writers.kcidb import Sender

from . import repro
from .kernels import GIVEN
from .record import Recorded
from .state import CONFIG, Plan, StateFolder, sha256_of, write_whole

FORMATS = (
    ReportFormat.TEXT,
    ReportFormat.JSON,
    ReportFormat.HTML,
    ReportFormat.MARKDOWN,
    ReportFormat.JUNIT,
    ReportFormat.MMTESTS,
)
_SEVERITY = (ErrorKind.INFRASTRUCTURE, ErrorKind.USER, ErrorKind.KERNEL, ErrorKind.CANCELED)


def write_report(folder: StateFolder, plan: Plan, recorded: Recorded, now: datetime) -> Report:
    """Compare what was measured, and write samples, record and report into the folder. Return the report."""
    report = make_report(folder, plan, recorded, now)
    if recorded.samples is not None:
        text = io.StringIO()
        write_csv(recorded.samples, text)
        write_whole(folder.path / "samples.csv", text.getvalue().encode())
    write_whole(folder.path / "run.json", recorded.record.model_dump_json(indent=1).encode())
    write_whole(folder.path / repro.NAME, repro.script(folder, plan, report.targets[0].headline).encode())
    for each in FORMATS:
        text_of = render(report, each, Sender(origin="ab", public=False))
        write_whole(folder.path / f"report.{SUFFIXES[each]}", text_of.encode())
    return report


def make_report(folder: StateFolder, plan: Plan, recorded: Recorded, now: datetime) -> Report:
    """Return the report of what was recorded, finished or not."""
    record = recorded.record
    comparisons = _compare(recorded)
    conclusion = _conclude(record, comparisons)
    configs = _config_lines(folder, plan)
    target = _target(folder, plan, recorded, comparisons, conclusion, configs or [])
    failure, code = _end(record, conclusion, comparisons)
    report = Report(
        submission=_submission(plan, record, failure, code, comparisons, now),
        generated_at=now,
        lab_url=folder.path.as_uri(),
        summary=summarise(
            [
                Stated(
                    record.plan.name,
                    record.device_type,
                    record.emulated,
                    conclusion.verdict,
                    study=False,
                    failure=record.failure,
                    comparisons=comparisons,
                )
            ]
        ),
        targets=[target],
        attempts=_attempts(record),
        config_diff=configs or [],
        config_compared=configs is not None,
        config_sha256=sha256_of(path) if (path := folder.kernel(Arm.BASELINE, CONFIG)).exists() else "",
        method=method_of([target], _STARTED[plan.accelerator is not None]),
    )
    main = main_failure(report)
    return report.model_copy(update={"failed_at": main.places}) if main else report


_STARTED = {True: "in an emulator of its own", False: "by kexec, with its root filesystem in memory"}
"""How each boot is started: True in an emulator."""


# --- verdicts ---------------------------------------------------------------------------------------------------


def _compare(recorded: Recorded) -> list[Comparison]:
    record = recorded.record
    discards = [each.arm for each in record.attempts if not each.finished]
    unsupported = [UnsupportedView(**each.model_dump(exclude={"boot_id"})) for each in record.unsupported]
    return compare(recorded.samples, [facts_of_run(recorded_run(record), discards, unsupported)])


def _conclude(record: RunRecord, comparisons: Sequence[Comparison]) -> Conclusion:
    boots = [RecordedBoot(boot.arm, boot.outcome is Outcome.PASSED, boot.valid) for boot in record.boots]
    by_lab = {(each.block, each.attempt) for each in record.attempts if not each.finished and each.arm is None}
    return conclude_run(recorded_run(record), boots, record.findings, comparisons, by_lab)


def _end(
    record: RunRecord, conclusion: Conclusion, comparisons: Sequence[Comparison]
) -> tuple[Failure | None, ExitCode]:
    """Return the failure that the run ends with, and the exit code, as those of a lab's submission."""
    failures = [] if record.failure is None else [record.failure]
    by_kernel = conclusion.accused or record.failure is None
    if (
        conclusion.verdict is Verdict.FAILED
        and by_kernel
        and not any(each.kind is ErrorKind.KERNEL for each in failures)
    ):
        excerpt = "\n\n".join(each.excerpt for each in conclusion.accused if each.excerpt)
        failures.append(Failure(kind=ErrorKind.KERNEL, summary=conclusion.headline, excerpt=excerpt))
    if failures:
        worst = min(failures, key=lambda failure: _SEVERITY.index(failure.kind))
        of_series = worst.kind in {ErrorKind.USER, ErrorKind.KERNEL}
        return worst, ExitCode.SERIES_FAILED if of_series else ExitCode.INFRASTRUCTURE
    return None, ExitCode.REGRESSION if any(map(is_regression, comparisons)) else ExitCode.DONE


# --- parts of the report ----------------------------------------------------------------------------------------


def _target(  # noqa: PLR0917 - what is known of a run
    folder: StateFolder,
    plan: Plan,
    recorded: Recorded,
    comparisons: list[Comparison],
    conclusion: Conclusion,
    config_lines: Sequence[str],
) -> TargetReport:
    record = recorded.record
    valid = [boot for boot in record.boots if boot.valid]
    values = [each for each in boot_values(recorded.samples) if each.arm in PAIR] if recorded.samples else []
    overheads = [boot.overhead_s for boot in valid if boot.overhead_s is not None]
    discarded = [each for each in record.attempts if not each.finished]
    return TargetReport(
        run_id=record.run_id,
        plan=record.plan,
        device_type=record.device_type,
        device_summary=record.device_summary,
        emulated=record.emulated,
        declared_topology=record.topology,
        outcome=record.outcome,
        failure=record.failure,
        verdict=conclusion.verdict,
        headline=conclusion.headline,
        reasons=reasons(comparisons),
        comparisons=comparisons,
        environment=environment_of([_environment(boot) for boot in record.boots], config_lines),
        values=values,
        workqueues=workqueue_cells(_first_series(folder, valid)),
        waits=wait_cells(_tables(folder, valid), times=not record.emulated),
        curves=curves(record.plan, record.emulated, values),
        references=record.plan.references,
        unsupported=_unsupported(record),
        findings=record.findings,
        blocks_planned=len(record.blocks),
        blocks_completed=len(recorded.finished_blocks),
        discarded=Counter(each.arm for each in discarded if each.arm is not None),
        discarded_by_lab=sum(
            each.arm is None and each.failure is not None and each.failure.kind is not ErrorKind.CANCELED
            for each in discarded
        ),
        overhead_s=sum(overheads) / len(overheads) if overheads else None,
    )


def _environment(boot: BootRecord) -> SimpleNamespace:
    """Return what a boot reported, with the names that a lab's rows have."""
    return SimpleNamespace(**(dict(boot) | {"device_name": boot.device}))


def _unsupported(record: RunRecord) -> list[UnsupportedView]:
    """Return each unsupported scenario, setting or metric once per arm."""
    found: dict[tuple[str, str, str | None, Arm], UnsupportedView] = {}
    for each in record.unsupported:
        place = (each.scenario, each.setting, each.metric, each.arm)
        found.setdefault(place, UnsupportedView(**each.model_dump(exclude={"boot_id"})))
    return list(found.values())


def _key(boot: BootRecord) -> BootKey:
    return BootKey(block=boot.block, position=boot.position, arm=boot.arm, attempt=boot.attempt)


def _output(folder: StateFolder, name: str) -> str | None:
    try:
        return (folder.output / plain_name(name)).read_text(errors="replace")
    except FileNotFoundError:
        return None


def _first_series(folder: StateFolder, boots: Sequence[BootRecord]) -> dict[Arm, tuple[int, str]]:
    """Return block and workqueue series of each arm's first boot that has one."""
    found: dict[Arm, tuple[int, str]] = {}
    for boot in boots:
        text = _output(folder, workqueue_series.file_name(_key(boot)))
        if text is not None:
            found.setdefault(boot.arm, (boot.block, text))
    return found


def _tables(folder: StateFolder, boots: Sequence[BootRecord]) -> Iterator[tuple[Arm, int, str]]:
    """Yield arm, block and counted events of the boots that have a table of them."""
    for boot in boots:
        text = _output(folder, traced_counts.file_name(_key(boot)))
        if text is not None:
            yield boot.arm, boot.block, text


def _attempts(record: RunRecord) -> list[AttemptView]:
    return [
        AttemptView(
            run_id=record.run_id,
            plan=record.plan.name,
            device_type=record.device_type,
            device=each.device,
            block=each.block,
            arm=each.arm,
            attempt=each.attempt,
            failure=each.failure,
            at=each.at,
        )
        for each in record.attempts
        if each.failure is not None and each.failure.kind is not ErrorKind.CANCELED
    ]


def _config_lines(folder: StateFolder, plan: Plan) -> list[str] | None:
    """Return the options that differ between the kernels; None if the configuration of one is not known."""
    if not all(note.has_config for note in plan.kernels.values()):
        return None
    texts = [folder.kernel(arm, CONFIG).read_text(errors="replace") for arm in plan.kernels]
    return config_difference(texts[0], texts[-1])


def _submission(  # noqa: PLR0917 - what is known of a run
    plan: Plan,
    record: RunRecord,
    failure: Failure | None,
    code: ExitCode,
    comparisons: Sequence[Comparison],
    now: datetime,
) -> SubmissionView:
    """Return the run as a submission, in which a report's documents find what was compared."""
    ended = record.outcome is not None
    verdicts = [each.verdict for each in deciding(comparisons) if each.verdict is not None]
    outcome = None
    if ended:
        outcome = Outcome.PASSED if failure is None else Outcome.FAILED
        outcome = Outcome.CANCELED if failure is not None and failure.kind is ErrorKind.CANCELED else outcome
    done = sum(boot.valid for boot in record.boots)
    return SubmissionView(
        id=0,
        title=_title(plan),
        series_key="",
        tree=GIVEN,
        owner="",
        priority=50,
        state=SubmissionState.FINISHED if ended else SubmissionState.RUNNING,
        outcome=outcome,
        failure=failure if ended else None,
        verdicts=Counter(verdicts),
        created_at=plan.created_at,
        finished_at=now if ended else None,
        request=SubmittedRequest(
            tree=GIVEN,
            targets=[Target(plan=record.plan.name, device_type=record.device_type)],
            blocks=len(record.blocks),
            series=SubmittedSeries() if len(plan.kernels) > 1 else None,
        ),
        apply=ApplyView(state=JobState.FINISHED, outcome=Outcome.PASSED, checkpatch_skipped="no series was given"),
        builds=[_build(plan, arm, number) for number, arm in enumerate(plan.kernels, 1)],
        runs=[],
        eta=Eta(finish_at=None, what="", done_boots=done, total_boots=sum(map(len, record.blocks))),
        exit_code=code if ended else None,
    )


def _title(plan: Plan) -> str:
    """Return `SECOND against FIRST`, with commits or releases, or with the names of the user if these are equal."""
    short = []
    for arm, note in plan.kernels.items():
        commit = f"{note.commit[:12]}{' with changes' if note.has_changes else ''}" if note.commit else ""
        short.append(commit or plan.job.kernels[arm].release)
    if len(short) == 1:
        first, *others = plan.job.profile.settings
        return f"{', '.join(others)} against {first} on {short[0]}" if others else short[0]
    first, second = short if short[0] != short[1] else [note.name for note in plan.kernels.values()]
    return f"{second} against {first}"


def _build(plan: Plan, arm: Arm, number: int) -> BuildView:
    note, kernel = plan.kernels[arm], plan.job.kernels[arm]
    return BuildView(
        id=number,
        key=kernel.image.sha256,
        arm=arm,
        tree=GIVEN,
        origin=note.name,
        base_commit=note.commit,
        tree_oid="",
        recipe=kernel.recipe,
        arch=plan.device_type.arch,
        state=JobState.FINISHED,
        outcome=Outcome.PASSED,
        failure=None,
        reused=True,
        build_id_gnu=kernel.build_id_gnu,
        release=kernel.release,
        compiler=note.compiler,
        reproducer=note.reproducer,
        duration_s=None,
        artifacts=[kernel.image],
    )
