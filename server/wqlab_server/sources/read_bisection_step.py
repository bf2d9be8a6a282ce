"""Read what a submission of a bisection has measured."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from wqlab_contracts.api.report import Comparison as ComparisonData
from wqlab_contracts.enums import Arm, BootState, ErrorKind, Outcome, Question, Scale, Verdict
from wqlab_contracts.enums import BisectionStepKind as Kind
from wqlab_contracts.enums import BisectionStepState as State
from wqlab_contracts.messages import Failure

from ..models import (
    Apply,
    Bisection,
    BisectionStep,
    Boot,
    BootValue,
    Build,
    Comparison,
    Finding,
    Run,
    Submission,
    SubmissionBuild,
)
from ..storage.db import clock

_VARIABLE = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+")
"""Addresses and numbers, which differ between boots and kernels with the same defect."""
_TITLES = 20


def read_step(session: Session, bisection: Bisection, step: BisectionStep, submission: Submission) -> str:
    """Write into the step what its finished submission has measured.

    Returns why the bisection cannot go on; an empty string if it can. A revert that was not measured does not stop it.
    """
    problem = _read_step(session, bisection, step, submission)
    if problem and step.kind is Kind.REVERT:
        step.state, problem = State.UNUSABLE, ""
    return problem


def _read_step(session: Session, bisection: Bisection, step: BisectionStep, submission: Submission) -> str:
    step.ended_at = clock(session)
    run = session.scalars(select(Run).where(Run.submission_id == submission.id).order_by(Run.id)).first()
    if run is None or submission.outcome is Outcome.CANCELED:
        return _cancel(step, f"submission {submission.id} was canceled")
    step.boots = session.scalar(select(func.count()).where(Boot.run_id == run.id)) or 0
    if run.byte_identical:
        step.state, step.identical, step.exact = State.MEASURED, True, True
        step.differences = [0.0] * (step.blocks or 1) if not bisection.request.failure else []
        step.passed = 2 * (bisection.request.blocks or 1) if bisection.request.failure else 0
        step.effect = None if bisection.request.failure else 0.0
        step.reason = "the kernels are byte-identical"
        return ""
    for failed in (_failed_apply, _failed_build):
        if (problem := failed(session, step, submission)) is not None:
            return problem
    if bisection.request.failure:
        return _read_boots(session, step, submission, run)
    return _read_metric(session, bisection, step, submission, run)


def _cancel(step: BisectionStep, reason: str) -> str:
    step.state, step.reason = State.CANCELED, reason
    return reason


def _failed_apply(session: Session, step: BisectionStep, submission: Submission) -> str | None:
    """Take commits that could not be fetched. Returns None if they were, else why the bisection cannot go on, or an
    empty string."""
    apply = session.scalars(select(Apply).where(Apply.submission_id == submission.id)).one()
    if apply.outcome is not Outcome.FAILED or apply.failure is None:
        return None
    if apply.failure.kind is ErrorKind.INFRASTRUCTURE:
        return _repeat(step, submission, apply.failure)
    return _unusable(step, apply.failure.summary, fatal=True)


def _failed_build(session: Session, step: BisectionStep, submission: Submission) -> str | None:
    """Take a build that failed. Returns None if none did, else why the bisection cannot go on, or an empty string."""
    failed = {
        arm: failure
        for arm, failure in session.execute(
            select(SubmissionBuild.arm, Build.failure)
            .join(Build, Build.id == SubmissionBuild.build_id)
            .where(SubmissionBuild.submission_id == submission.id, Build.outcome == Outcome.FAILED)
        )
        if failure is not None
    }
    if any(failure.kind is ErrorKind.INFRASTRUCTURE for failure in failed.values()):
        return _repeat(step, submission, next(iter(failed.values())))
    for arm, commit in ((Arm.BASELINE, step.baseline), (Arm.CANDIDATE, step.candidate)):
        if arm in failed:
            what = f"commit {commit[:12]} does not build: {failed[arm].summary}"
            return _unusable(step, what, fatal=arm is Arm.BASELINE)
    return None


def _repeat(step: BisectionStep, submission: Submission, failure: Failure) -> str:
    step.state = State.REPEATED
    step.reason = f"the lab failed in submission {submission.id}: {failure.summary}"
    return ""


def _unusable(step: BisectionStep, reason: str, *, fatal: bool = False) -> str:
    step.state, step.reason = State.UNUSABLE, reason
    return reason if fatal else ""


# --- a metric ---------------------------------------------------------------------------------------------------


def _read_metric(session: Session, bisection: Bisection, step: BisectionStep, submission: Submission, run: Run) -> str:
    measured = _comparison(session, bisection, run)
    if measured is not None and bisection.scale is None:
        bisection.scale, bisection.unit = measured.scale, measured.unit
    step.differences = _differences(session, bisection, run)
    if not step.differences:
        return _unmeasured(session, step, submission, run, measured)
    step.state = State.MEASURED
    if measured is not None and measured.effect is not None:
        step.effect, step.verdict, step.exact = measured.effect, measured.verdict, measured.exact
        step.ci_low, step.ci_high = measured.ci95 or (None, None)
        step.differs = is_significant(measured)
    else:  # too few blocks for an interval
        step.effect = effect_of(float(np.mean(step.differences)), bisection.scale)
    if step.kind is Kind.CONFIRM and step.differs:
        step.differs = _same_direction(step, bisection.effect)
    return ""


def _comparison(session: Session, bisection: Bisection, run: Run) -> ComparisonData | None:
    request = bisection.request
    row = session.scalar(
        select(Comparison)
        .where(
            Comparison.run_id == run.id,
            Comparison.question == Question.KERNEL,
            Comparison.data["scenario"].astext == request.scenario,
            Comparison.data["setting"].astext == request.setting,
            Comparison.data["metric"].astext == request.metric,
        )
        .limit(1)
    )
    return row.data if row is not None else None


def _differences(session: Session, bisection: Bisection, run: Run) -> list[float]:
    """Return candidate minus baseline (or the log ratio) of each block that has a value of both, by block number."""
    request = bisection.request
    rows = session.execute(
        select(Boot.block, Boot.arm, BootValue.value)
        .join(BootValue, BootValue.boot_id == Boot.id)
        .where(
            Boot.run_id == run.id,
            BootValue.scenario == request.scenario,
            BootValue.setting == request.setting,
            BootValue.metric == request.metric,
        )
    )
    values = {(block, arm): value for block, arm, value in rows}
    pairs = [
        (value, values[block, Arm.CANDIDATE])
        for (block, arm), value in sorted(values.items())
        if arm is Arm.BASELINE and (block, Arm.CANDIDATE) in values
    ]
    if bisection.scale is Scale.RATIO:
        return [math.log(after / before) for before, after in pairs if before > 0 and after > 0]
    return [after - before for before, after in pairs]


def effect_of(difference: float, scale: Scale | None) -> float:
    """Return an effect from a mean difference: percent for scale ratio, else units."""
    return 100 * math.expm1(difference) if scale is Scale.RATIO else difference


def is_significant(measured: ComparisonData) -> bool:
    """Return True if the metric differs; whether by a relevant amount is not asked."""
    if measured.exact:
        return bool(measured.effect)
    return measured.ci95 is not None and not measured.ci95[0] <= 0 <= measured.ci95[1]


def _same_direction(step: BisectionStep, effect: float | None) -> bool:
    return effect is None or (step.effect or 0.0) * effect > 0


def _unmeasured(
    session: Session, step: BisectionStep, submission: Submission, run: Run, measured: ComparisonData | None
) -> str:
    """Take a run that has no block with a value of both kernels."""
    failure = run.failure or submission.failure
    if failure is not None and failure.kind is ErrorKind.INFRASTRUCTURE:
        return _repeat(step, submission, failure)
    if measured is not None and measured.verdict is Verdict.NO_EVIDENCE:
        return _unusable(step, measured.reason or "the metric is no evidence on this device", fatal=True)
    what = failure.summary if failure is not None else (measured.reason if measured is not None else "no value")
    if failure is not None and failure.kind is ErrorKind.KERNEL:
        arms = session.scalars(
            select(Boot.arm).where(Boot.run_id == run.id, Boot.outcome == Outcome.FAILED).distinct()
        ).all()
        guilty = step.candidate if Arm.CANDIDATE in arms or not arms else step.baseline
        return _unusable(step, f"commit {guilty[:12]} fails: {what}", fatal=guilty == step.baseline)
    return _unusable(step, f"commit {step.candidate[:12]} was not measured: {what}", fatal=step.kind is Kind.ENDS)


# --- a failure of the kernel ------------------------------------------------------------------------------------


def _read_boots(session: Session, step: BisectionStep, submission: Submission, run: Run) -> str:
    """Count the boots of the candidate that fail as those of the baseline do not; for a commit between the ends only
    with a report that the bad commit gives too."""
    boots = session.scalars(select(Boot).where(Boot.run_id == run.id, Boot.state == BootState.FINISHED)).all()
    reports = _reports(session, run, boots)
    good = {title for boot in boots if boot.arm is Arm.BASELINE for title in reports[boot.id]}
    wanted = _titles_of_bad(session, step)
    if wanted is not None and (same := sorted(good & wanted)):
        return _baseline_fails(step, same[0], len(boots))
    other: set[str] = set()
    titles: set[str] = set()
    for boot in boots:
        if boot.arm is not Arm.CANDIDATE:
            continue
        new = reports[boot.id] - good
        if new if wanted is None else new & wanted:
            step.failed += 1
            titles |= new if wanted is None else new & wanted
        elif boot.outcome is Outcome.PASSED:
            step.passed += 1
        else:
            other |= new
    step.titles = sorted(titles)[:_TITLES]
    if step.kind is Kind.ENDS and not step.failed and good:
        step.state, step.reason = State.MEASURED, f"the good commit fails too: {sorted(good)[0]}"
        return ""
    if step.failed + step.passed == 0:
        return _uncounted(step, submission, run, other)
    step.state, step.differs = State.MEASURED, step.failed > 0
    return ""


def _baseline_fails(step: BisectionStep, title: str, boots: int) -> str:
    """Take a baseline that fails as the bad commit does: the suspect's parent has the defect, or the good commit."""
    if step.kind is Kind.PROBE:
        return _unusable(step, f"the good commit fails too: {title}", fatal=True)
    step.state, step.passed, step.reason = State.MEASURED, boots, f"its parent fails too: {title}"
    return ""


def _uncounted(step: BisectionStep, submission: Submission, run: Run, other: set[str]) -> str:
    failure = run.failure or submission.failure
    if other:
        return _unusable(step, f"commit {step.candidate[:12]} fails in another way: {sorted(other)[0]}")
    if failure is None or failure.kind is ErrorKind.INFRASTRUCTURE:
        return _repeat(step, submission, failure or Failure(kind=ErrorKind.INFRASTRUCTURE, summary="no boot"))
    what = f"commit {step.candidate[:12]} was not booted: {failure.summary}"
    return _unusable(step, what, fatal=step.kind is Kind.ENDS)


def _titles_of_bad(session: Session, step: BisectionStep) -> frozenset[str] | None:
    """Return what the bad commit reports; None in the measurement of the ends, where any report counts."""
    if step.kind is Kind.ENDS:
        return None
    titles = session.scalars(
        select(BisectionStep.titles).where(
            BisectionStep.bisection_id == step.bisection_id,
            BisectionStep.kind == Kind.ENDS,
            BisectionStep.state == State.MEASURED,
        )
    )
    return frozenset(title for each in titles for title in each)


def _reports(session: Session, run: Run, boots: Sequence[Boot]) -> dict[int, set[str]]:
    """Return what the kernel reported in each boot, without addresses and numbers."""
    found: dict[int, set[str]] = {boot.id: set() for boot in boots}
    for boot_id, title in session.execute(select(Finding.boot_id, Finding.title).where(Finding.run_id == run.id)):
        if boot_id in found:
            found[boot_id].add(_VARIABLE.sub("#", title))
    for boot in boots:
        failure = boot.failure
        if failure is not None and failure.kind is ErrorKind.KERNEL and not found[boot.id]:
            found[boot.id].add(_VARIABLE.sub("#", failure.summary))
    return found
