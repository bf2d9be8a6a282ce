"""Assemble the report of a submission, finished or not, from rows. All formats are rendered from it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_comparison import Stated, curves, summarise
from wqlab_comparison.reasons import reasons
from wqlab_comparison.words import count
from wqlab_contracts import instrument, traced_counts, workqueue_series
from wqlab_contracts.api import report as api_report
from wqlab_contracts.api.canaries import CanaryRecord
from wqlab_contracts.api.instrument import InstrumentCell, NoiseFloor
from wqlab_contracts.api.ran import RanReport
from wqlab_contracts.api.waits import WaitCell
from wqlab_contracts.api.workqueues import WorkqueueCell
from wqlab_contracts.enums import PAIR, Arm, ArtifactKind, ErrorKind, RunPurpose
from wqlab_contracts.messages import ApplyResult, Artifact, BootKey
from wqlab_contracts.specs import Backend
from wqlab_report.content.failures import main_failure
from wqlab_report.content.shared_text import method_of
from wqlab_report.parts.config_diff import config_difference
from wqlab_report.parts.environment import environment_of
from wqlab_report.parts.instrument_cells import ProfileFile, instrument_cells
from wqlab_report.parts.ran_report import ran_report
from wqlab_report.parts.sweep import sweep_report
from wqlab_report.parts.wait_cells import wait_cells
from wqlab_report.parts.workqueue_cells import workqueue_cells

from ..estimates.canaries import records
from ..estimates.noise_floors import noise_floors
from ..jobs import attempts
from ..models import (
    ArtifactLink,
    BlockAttempt,
    Boot,
    BootValue,
    Build,
    Comparison,
    Device,
    Run,
    RunAttempt,
    Submission,
    Unsupported,
)
from ..storage.artifacts import ArtifactStore
from ..storage.db import clock
from ..views.build import RunRows, SubmissionRows, submission_view
from ..views.conclusion import conclusion_of, findings_of, ladder_of_rows
from ..views.load import submission_rows
from .explanation import TracedRun, explain

_R = TypeVar("_R", Comparison, Unsupported, BlockAttempt, RunAttempt)

_BOOT_FILES = (ArtifactKind.WORKQUEUE_SERIES, ArtifactKind.INSTRUMENT_PROFILE, ArtifactKind.TRACED_COUNTS)

_KernelKey = tuple[str, str, bool]
"""Recipe, architecture, and True for emulated devices: one kernel of each arm."""

ReadText = Callable[[Artifact], str | None]
"""Function that returns the text of an artifact, or None if the store no longer has it."""


def assemble(session: Session, submission: Submission, store: ArtifactStore, public_url: str) -> api_report.Report:
    """Assemble the report from the submission's current rows."""
    rows = submission_rows(session, submission, snapshots=True)
    measured = [each for each in rows.runs if each.run.purpose is RunPurpose.MEASURE]
    traced = session.scalars(
        select(Run).where(Run.submission_id == submission.id, Run.purpose == RunPurpose.TRACE).order_by(Run.id)
    ).all()
    changes = rows.apply.result if rows.apply is not None else None
    parts = _Parts(session, [each.run.id for each in measured], store, traced, changes)
    configurations = _configurations(rows, lambda artifact: _text(store, artifact.sha256))
    targets = [_target(each, parts, configurations, submission) for each in measured]
    report = api_report.Report(
        submission=submission_view(rows),
        generated_at=clock(session),
        lab_url=public_url,
        summary=_summary(targets, study=submission.request.series is None),
        targets=targets,
        sweep=sweep_report(submission.request.sweep, targets),
        attempts=[
            *attempts.failed_job_attempts(session, submission.id),
            *(each for run in measured for each in parts.failed_attempts(run)),
        ],
        config_diff=configurations.all_differing,
        config_compared=bool(configurations.differing),
        config_sha256=configurations.sha256,
        diff=changes.diff if changes and any(each.ran and each.ran.lines for each in targets) else "",
        method=method_of(targets),
    )
    main = main_failure(report)
    return report.model_copy(update={"failed_at": main.places}) if main else report


class _Parts:
    """Rows of all runs of the submission by run id, read with one query per table."""

    def __init__(
        self,
        session: Session,
        run_ids: Sequence[int],
        store: ArtifactStore,
        traced: Sequence[Run] = (),
        changes: ApplyResult | None = None,
    ) -> None:
        self._session, self._store, self._changes = session, store, changes
        self._traced = {run.target: run for run in traced}
        file_runs = [*run_ids, *(run.id for run in traced)]
        self._files = {
            (link.job_id, link.name): link.sha256
            for link in session.scalars(
                select(ArtifactLink).where(ArtifactLink.job_id.in_(file_runs), ArtifactLink.kind.in_(_BOOT_FILES))
            )
        }
        self.comparisons = _grouped(
            session.scalars(
                select(Comparison)
                .where(Comparison.run_id.in_(run_ids))
                .order_by(Comparison.run_id, Comparison.position)
            )
        )
        self.unsupported = _grouped(
            session.scalars(select(Unsupported).where(Unsupported.run_id.in_(run_ids)).order_by(Unsupported.id))
        )
        self.blocks = _grouped(
            session.scalars(select(BlockAttempt).where(BlockAttempt.run_id.in_(run_ids)).order_by(BlockAttempt.at))
        )
        self.attempts = _grouped(
            session.scalars(select(RunAttempt).where(RunAttempt.run_id.in_(run_ids)).order_by(RunAttempt.number))
        )
        self.values: dict[int, list[api_report.BootValue]] = defaultdict(list)
        for value, arm, block in session.execute(
            select(BootValue, Boot.arm, Boot.block)
            .join(Boot, Boot.id == BootValue.boot_id)
            .where(BootValue.run_id.in_(run_ids))
            .order_by(BootValue.scenario, BootValue.setting, BootValue.metric, Boot.arm, Boot.block)
        ):
            self.values[value.run_id].append(
                api_report.BootValue(
                    arm=arm,
                    block=block,
                    scenario=value.scenario,
                    setting=value.setting,
                    metric=value.metric,
                    value=value.value,
                )
            )

    def workqueues(self, rows: RunRows) -> list[WorkqueueCell]:
        """Return the workqueue series of each arm's first valid boot with a table: figures show one boot per arm."""
        tables: dict[Arm, tuple[int, str]] = {}
        for boot in sorted((boot for boot in rows.boots if boot.valid), key=lambda boot: (boot.block, boot.position)):
            sha256 = self._files.get((rows.run.id, workqueue_series.file_name(_key(boot))))
            if boot.arm not in PAIR or boot.arm in tables or sha256 is None:
                continue
            if (text := _text(self._store, sha256)) is not None:
                tables[boot.arm] = (boot.block, text)
        return workqueue_cells(tables)

    def waits(self, rows: RunRows) -> list[WaitCell]:
        """Return how long work items waited, of all valid boots with a table."""
        boots = sorted((boot for boot in rows.boots if boot.valid), key=lambda boot: (boot.block, boot.position))
        tables = self._tables(rows.run, [boot for boot in boots if boot.arm in PAIR])
        return wait_cells(tables, times=not rows.run.device_spec.emulated)

    def _tables(self, run: Run, boots: Iterable[Boot]) -> Iterator[tuple[Arm, int, str]]:
        """Yield arm, block and counted events of the boots that have a table of them."""
        for boot in boots:
            sha256 = self._files.get((run.id, traced_counts.file_name(_key(boot))))
            if sha256 is not None and (text := _text(self._store, sha256)) is not None:
                yield boot.arm, boot.block, text

    def instrument(self, rows: RunRows) -> list[InstrumentCell]:
        """Return where the counts come from, of all valid boots with a profile."""
        files = []
        for boot in rows.boots:
            sha256 = (
                self._files.get((rows.run.id, instrument.file_name(_key(boot))))
                if boot.valid and boot.arm in PAIR
                else None
            )
            if sha256 is not None:
                files.append(ProfileFile(boot.arm, boot.block, partial(_bytes, self._store, sha256)))
        return instrument_cells(rows.run.plan, rows.run.profile.settings, files)

    def traced_run(self, run: Run) -> TracedRun | None:
        """Return the traced boots of a target that are in finished blocks, with their tables."""
        traced = self._traced.get(run.target)
        if traced is None:
            return None
        boots = self._session.scalars(
            select(Boot).where(Boot.run_id == traced.id, Boot.valid).order_by(Boot.block, Boot.position)
        ).all()
        return TracedRun(traced, list(self._tables(traced, boots)))

    def ran(self, rows: RunRows) -> RanReport | None:
        """Return which changed lines or functions ran in the valid boots, and in the traced ones."""
        traced = self.traced_run(rows.run)
        boots = [boot.ran for boot in rows.boots if boot.valid and boot.arm in PAIR]
        return ran_report(boots, self._changes, traced.rows() if traced else [])

    def backend(self, run: Run) -> Backend | None:
        """Return the backend of the run's device; None if it had none."""
        return self._session.scalar(select(Device.backend).where(Device.name == run.device_name))

    def noise_floors(self, run: Run) -> list[NoiseFloor]:
        return noise_floors(self._session, run.plan_name, run.device_type, run.profile)

    def canaries(self, rows: RunRows) -> list[CanaryRecord]:
        """Return the records of the devices whose boots count."""
        used = {boot.device_name for boot in rows.boots if boot.valid}
        return records(self._session, devices=used, plan=rows.run.plan_name) if used else []

    def failed_attempts(self, rows: RunRows) -> list[api_report.AttemptView]:
        return attempts.failed_run_attempts(rows.run, rows.boots, self.blocks[rows.run.id], self.attempts[rows.run.id])


def _key(boot: Boot) -> BootKey:
    return BootKey(block=boot.block, position=boot.position, arm=boot.arm, attempt=boot.attempt)


def _grouped(rows: Iterable[_R]) -> dict[int, list[_R]]:
    grouped: dict[int, list[_R]] = defaultdict(list)
    for row in rows:
        grouped[row.run_id].append(row)
    return grouped


# --- one target -------------------------------------------------------------------------------------------------


def _target(
    rows: RunRows, parts: _Parts, configurations: _Configurations, submission: Submission
) -> api_report.TargetReport:
    run = rows.run
    comparisons = [row.data for row in parts.comparisons[run.id] if row.patch is None]
    rungs = [row.data for row in parts.comparisons[run.id] if row.patch is not None]
    conclusion = conclusion_of(rows, comparisons)
    kernel = (run.recipe.name, run.device_spec.arch, run.device_spec.on_bench)
    overheads = [boot.overhead_s for boot in rows.boots if boot.valid and boot.overhead_s is not None]
    counted = parts.instrument(rows)
    return api_report.TargetReport(
        run_id=run.id,
        plan=run.plan,
        device_type=run.device_type,
        device_summary=run.device_spec.summary,
        emulated=run.device_spec.emulated,
        declared_topology=run.device_spec.topology,
        outcome=run.outcome,
        failure=run.failure,
        verdict=conclusion.verdict,
        headline=conclusion.headline,
        reasons=reasons(comparisons),
        comparisons=comparisons,
        ladder=ladder_of_rows(rows, rungs) if run.walk else None,
        environment=environment_of(rows.boots, configurations.differing.get(kernel, ())),
        values=parts.values[run.id],
        workqueues=parts.workqueues(rows),
        waits=parts.waits(rows),
        instrument=counted,
        explanation=explain(
            run,
            comparisons,
            submission.request,
            backend=parts.backend(run),
            traced=parts.traced_run(run),
            instrument=counted,
        ),
        ran=parts.ran(rows),
        noise_floors=parts.noise_floors(run) if run.plan.is_instrumented else [],
        canaries=parts.canaries(rows),
        curves=curves(run.plan, run.device_spec.emulated, parts.values[run.id]),
        references=run.plan.references,
        unsupported=_unsupported(parts.unsupported[run.id], rows.boots),
        findings=findings_of(rows),
        byte_identical=run.byte_identical,
        blocks_planned=len(run.blocks),
        blocks_completed=rows.blocks_completed,
        layouts=run.layouts,
        looks=run.looks,
        looked=run.looked,
        discarded=Counter(block.arm for block in parts.blocks[run.id] if not block.finished and block.arm is not None),
        discarded_by_lab=sum(_is_lab_discard(block) for block in parts.blocks[run.id]),
        overhead_s=sum(overheads) / len(overheads) if overheads else None,
    )


def _is_lab_discard(block: BlockAttempt) -> bool:
    """Return True if the attempt was discarded for a failure of the lab, which counts against no arm."""
    return (
        not block.finished
        and block.arm is None
        and block.failure is not None
        and block.failure.kind is not ErrorKind.CANCELED
    )


def _summary(targets: Sequence[api_report.TargetReport], study: bool) -> str:
    return summarise(
        [
            Stated(
                each.plan.name,
                each.device_type,
                each.emulated,
                each.verdict,
                study,
                each.failure,
                each.plan.is_instrumented,
                each.plan.is_modelled,
                each.comparisons,
            )
            for each in targets
        ]
    )


def _unsupported(rows: Sequence[Unsupported], boots: Sequence[Boot]) -> list[api_report.UnsupportedView]:
    """Return each unsupported scenario, setting or metric once per arm.

    The reason gives the number of boots if not all of the arm's boots reported it.
    """
    verified = Counter(boot.arm for boot in boots if boot.topology is not None)
    reported: dict[tuple[str, str, str | None, Arm], list[Unsupported]] = defaultdict(list)
    for row in rows:
        reported[row.scenario, row.setting, row.metric, row.arm].append(row)
    return [
        api_report.UnsupportedView(
            scenario=scenario,
            setting=setting,
            metric=metric,
            arm=arm,
            cause=first.cause,
            reason=first.reason
            if 1 + len(others) >= verified[arm]
            else f"{first.reason} (in {1 + len(others)} of {count(verified[arm], 'boot')})",
        )
        for (scenario, setting, metric, arm), (first, *others) in reported.items()
    ]


# --- the kernels' configuration ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Configurations:
    """Configurations of a submission's kernels. Options can differ because a series may change Kconfig."""

    differing: Mapping[_KernelKey, Sequence[str]]
    """Options that differ, for each pair of kernels whose configurations could be compared."""
    sha256: str
    """Hash of the baseline's configuration; with several recipes, of the first. Empty if there is none."""

    @property
    def all_differing(self) -> list[str]:
        return list(dict.fromkeys(line for lines in self.differing.values() for line in lines))


def _configurations(rows: SubmissionRows, read: ReadText) -> _Configurations:
    pairs: dict[_KernelKey, dict[Arm, Artifact]] = defaultdict(dict)
    for part, build in rows.builds:
        if (config := _config_of(build)) is not None:
            pairs[part.recipe, part.arch, part.emulated][part.arm] = config
    differing: dict[_KernelKey, Sequence[str]] = {}
    for key, pair in pairs.items():
        if not all(arm in pair for arm in PAIR):
            continue
        if pair[Arm.BASELINE].sha256 == pair[Arm.CANDIDATE].sha256:
            differing[key] = []
            continue
        before, after = read(pair[Arm.BASELINE]), read(pair[Arm.CANDIDATE])
        if before is not None and after is not None:
            differing[key] = config_difference(before, after)
    hashes = [pair[Arm.BASELINE].sha256 for pair in pairs.values() if Arm.BASELINE in pair]
    return _Configurations(differing, hashes[0] if hashes else "")


def _config_of(build: Build) -> Artifact | None:
    artifacts = build.result.artifacts if build.result else []
    return next((artifact for artifact in artifacts if artifact.kind is ArtifactKind.CONFIG), None)


def _text(store: ArtifactStore, sha256: str) -> str | None:
    content = _bytes(store, sha256)
    return None if content is None else content.decode("utf-8", errors="replace")


def _bytes(store: ArtifactStore, sha256: str) -> bytes | None:
    try:
        return store.read(sha256)
    except FileNotFoundError:
        return None
