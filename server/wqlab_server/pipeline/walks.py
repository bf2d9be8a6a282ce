"""Steps of a walk: the kernels after each patch, the order of their boots, and kernels that the run leaves out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy.orm import Session

from wqlab_comparison.block_order import walk_plan
from wqlab_contracts.enums import BETWEEN, Arm, ErrorKind, Outcome
from wqlab_contracts.messages import ApplyResult, Failure, RunResult, Source
from wqlab_contracts.messages.walk import MISSING, StepState, WalkStep

from ..jobs.errors import infrastructure_failure
from ..jobs.state import Ended, Retry
from ..models import Build, Run
from ..runs import service as runs


def sources_of(applied: ApplyResult) -> dict[Arm, Source | None]:
    """Return the source of each kernel: base, whole series, and for a walk the series up to each patch."""
    between = dict(zip(BETWEEN, applied.patch_sources[:-1], strict=False))
    return {Arm.BASELINE: applied.baseline, Arm.CANDIDATE: applied.candidate, **between}


def arm_of(patch: int, patches: int) -> Arm:
    """Return the arm of the kernel after a patch, from 1, if no other kernel is byte-identical with it."""
    return Arm.CANDIDATE if patch == patches else BETWEEN[patch - 1]


def begin(run: Run, applied: ApplyResult, builds: Mapping[Arm, int]) -> None:
    """Record the kernels of a run that measures each patch: one step per patch, with its build."""
    number = len(applied.patch_sources)
    subjects = [patch.subject for patch in applied.patches]
    run.walk = [
        WalkStep(
            patch=patch,
            subject=subjects[patch - 1] if len(subjects) == number else source.commit[:12],
            commit=source.commit,
            arm=arm_of(patch, number),
            build_id=builds[arm_of(patch, number)],
        )
        for patch, source in enumerate(applied.patch_sources, start=1)
    ]


def settle(baseline: Build, steps: Sequence[WalkStep], builds: Sequence[Build], *, force: bool) -> list[WalkStep]:
    """Return the steps with the states of their kernels, once every build has ended. Pure.

    Byte-identical kernels get one arm, unless `force` is set: that of the base, of the whole series, or of the first
    of them. If the last patch restores the base, it has an arm of its own.
    """
    arms: dict[str, Arm] = {_digest(baseline): Arm.BASELINE}
    if builds[-1].outcome is Outcome.PASSED:
        arms.setdefault(_digest(builds[-1]), Arm.CANDIDATE)
    settled, before = [], Arm.BASELINE
    for step, build in zip(steps, builds, strict=True):
        if build.outcome is not Outcome.PASSED:
            failure = build.failure or infrastructure_failure(f"build {build.id} ended without a reason")
            settled.append(step.model_copy(update={"state": StepState.NOT_BUILT, "failure": failure}))
            continue
        arm = step.arm if force else arms.setdefault(_digest(build), step.arm)
        state = StepState.IDENTICAL if arm is before else StepState.MEASURED
        settled.append(step.model_copy(update={"arm": arm, "state": state}))
        before = arm
    if before is Arm.BASELINE and len(booted_arms(settled)) > 1:
        # The whole series is the base again, but patches between are not: it is measured, so that it has a verdict.
        settled[-1] = settled[-1].model_copy(update={"arm": Arm.CANDIDATE, "state": StepState.MEASURED})
    return settled


def _digest(build: Build) -> str:
    """Return what is equal for byte-identical kernels only."""
    content = build.result.content_sha256 if build.result else ""
    return content or f"build {build.id}"


def plan(session: Session, run: Run, *, force: bool) -> Ended | None:
    """Plan the blocks of a walk whose builds have all ended; return how the run ends if there is nothing to measure.

    A patch that does not build is left out. A base that does not build must be reported by the caller.
    """
    builds = [session.get_one(Build, step.build_id) for step in run.walk]
    run.walk = settle(session.get_one(Build, run.baseline_build_id), run.walk, builds, force=force)
    arms = booted_arms(run.walk)
    if len(arms) > 1:
        run.blocks = walk_plan(len(run.blocks), arms, run.seed)
        return None
    failure = final_failure(run)
    return Ended(Outcome.FAILED, failure) if failure else Ended(Outcome.PASSED, None)


def booted_arms(steps: Sequence[WalkStep]) -> list[Arm]:
    """Return the arms that have boots, in the order of the patches."""
    return list(dict.fromkeys([Arm.BASELINE, *(step.arm for step in steps if step.state not in MISSING)]))


def final_failure(run: Run) -> Failure | None:
    """Return the failure of the last patch's kernel, which is that of the whole series; None if it has none."""
    last = run.walk[-1]
    if last.failure is None:
        return None
    return last.failure.model_copy(update={"summary": f"candidate kernel: {last.failure.summary}"})


def failed_kernels(run: Run) -> int:
    """Return the number of kernels that a walk has left out; each ended an attempt, which was no fault of the lab."""
    return len({step.arm for step in run.walk if step.state is StepState.KERNEL_FAILED})


def after_attempt(session: Session, run: Run, result: RunResult, ended: Retry | Ended) -> Retry | Ended:
    """Return how an attempt at a walk ends: a kernel that fails is left out, and the run goes on with the others.

    A complete run has the failure of its last patch, if that has one.
    """
    if not run.walk or isinstance(ended, Retry) or ended.outcome is Outcome.CANCELED:
        return ended
    if ended.outcome is Outcome.PASSED:
        failure = final_failure(run)
        return ended if failure is None else Ended(Outcome.FAILED, failure)
    failure = ended.failure
    if failure is None or failure.kind is not ErrorKind.KERNEL or result.arm in {None, Arm.BASELINE}:
        return ended
    steps = [
        step.model_copy(update={"state": StepState.KERNEL_FAILED, "failure": failure})
        if step.arm is result.arm and step.state not in MISSING
        else step
        for step in run.walk
    ]
    steps = _with_neighbours(steps)
    left = booted_arms(steps)
    run.walk = steps
    if len(left) < 2:
        return ended
    done = set(runs.completed_blocks(session, run.id))
    run.blocks = [
        arms if number in done else [arm for arm in arms if arm in left] for number, arms in enumerate(run.blocks)
    ]
    return Retry(failure)


def _with_neighbours(steps: Sequence[WalkStep]) -> list[WalkStep]:
    """Return the steps with `identical` where a kernel has the arm of the last one before it that is left."""
    found, before = [], Arm.BASELINE
    for step in steps:
        if step.state in MISSING:
            found.append(step)
            continue
        state = StepState.IDENTICAL if step.arm is before else StepState.MEASURED
        found.append(step.model_copy(update={"state": state}))
        before = step.arm
    return found
