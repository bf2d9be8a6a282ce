"""Lock runs, make jobs for workers, store consoles, and clean up after an attempt."""

from __future__ import annotations

import base64
import binascii
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session, defer

from wqlab_contracts.enums import Arm, ArtifactKind, BootState, ErrorKind, JobState, Outcome, RunPurpose
from wqlab_contracts.messages import (
    ApplyResult,
    Artifact,
    BlockPlan,
    BootKey,
    BuildResult,
    ConsoleAnswer,
    ConsoleChunk,
    Failure,
    Kernel,
    RunJob,
)

from ..http.problems import ApiProblem, not_found
from ..jobs import claims
from ..jobs.errors import StaleFence
from ..models import Apply, BlockAttempt, Boot, Build, Device, Run, RunAttempt, Submission
from ..models import ConsoleChunk as ConsoleRow
from ..settings import Settings
from ..storage.db import fetch_dict
from ..storage.events import RUN_CHANNEL, notify
from .block_attempts import record_block_attempt
from .layouts import layouts_of

_DEFER_SNAPSHOT = [
    defer(column, raiseload=True)
    for column in (Run.plan, Run.profile, Run.files, Run.device_spec, Run.fragments, Run.modules)
]


def lock_run(session: Session, run_id: int, *, with_snapshot: bool = False) -> Run:
    """Lock the run's submission, then the run, and return the run.

    Without `with_snapshot`, the snapshot columns are not loaded. Raises ApiProblem 404.
    """
    submission_id = session.scalar(select(Run.submission_id).where(Run.id == run_id))
    if submission_id is not None:
        session.execute(select(Submission.id).where(Submission.id == submission_id).with_for_update()).all()
    query = select(Run).where(Run.id == run_id).with_for_update()
    run = session.scalar(query if with_snapshot else query.options(*_DEFER_SNAPSHOT))
    if run is None:
        raise not_found("run", run_id)
    return run


# --- the job ----------------------------------------------------------------------------------------------------


def make_job(session: Session, run: Run, device: Device) -> RunJob:
    """Return everything that the worker needs, from the run's snapshot."""
    last_attempts = fetch_dict(
        session, select(Boot.block, func.max(Boot.attempt)).where(Boot.run_id == run.id).group_by(Boot.block)
    )
    changes = _changes(session, run)
    return RunJob(
        run_id=run.id,
        purpose=run.purpose,
        priority=run.priority,
        device=device.facts,
        plan=run.plan,
        profile=run.profile,
        files=run.files,
        kernels=(kernels := _kernels(session, run)),
        layouts=_layouts(session, run, kernels),
        blocks=[
            BlockPlan(block=number, arms=arms, first_attempt=last_attempts.get(number, -1) + 1)
            for number, arms in enumerate(run.blocks[: run.blocks_due])
        ],
        completed_blocks=completed_blocks(session, run.id),
        seed=run.seed,
        touched=changes.touched if run.device_spec.instrumented or run.purpose is RunPurpose.TRACE else [],
        changed=changes.changed if run.device_spec.instrumented else [],
    )


def _changes(session: Session, run: Run) -> ApplyResult:
    """Return what the series of the run's submission changes; nothing for a run without a submission."""
    result = session.scalar(select(Apply.result).where(Apply.submission_id == run.submission_id))
    return result or ApplyResult(outcome=Outcome.PASSED)


def completed_blocks(session: Session, run_id: int) -> list[int]:
    """Return the numbers of the run's finished blocks."""
    return list(
        session.scalars(
            select(BlockAttempt.block)
            .where(BlockAttempt.run_id == run_id, BlockAttempt.finished)
            .order_by(BlockAttempt.block)
        )
    )


def _kernels(session: Session, run: Run) -> dict[Arm, Kernel]:
    booted = {arm for arms in run.blocks for arm in arms}
    kernels = {}
    for arm, build_id in run.build_ids.items():
        if build_id is None or (run.walk and arm not in booted):
            continue
        build = session.scalars(select(Build).where(Build.id == build_id)).one()
        result = build.result
        if build.files_deleted_at is not None:
            raise ApiProblem(409, f"run {run.id} has no {arm} kernel: retention deleted that of build {build_id}")
        if result is None or build.outcome is not Outcome.PASSED:
            raise ApiProblem(
                409, f"run {run.id} has no {arm} kernel: build {build_id} is {build.outcome or build.state}"
            )
        artifacts = {artifact.kind: artifact for artifact in result.artifacts}
        kernels[arm] = Kernel(
            build_id_gnu=result.build_id_gnu,
            release=result.release,
            image=_required(artifacts, ArtifactKind.KERNEL, build_id),
            figures=build.recipe.figures,
            workqueue_layout=artifacts.get(ArtifactKind.WORKQUEUE_LAYOUT),
            recipe=build.recipe.name,
            vmlinux=artifacts.get(ArtifactKind.VMLINUX),
            sources=artifacts.get(ArtifactKind.SOURCES),
        )
        if run.plan.modules:
            kernels[arm] = _with_modules(kernels[arm], result, run.plan.modules)
    return kernels


def _layouts(session: Session, run: Run, kernels: dict[Arm, Kernel]) -> dict[Arm, list[Kernel]]:
    """Return the kernels of each arm in the order of their layouts; empty for a run with the ordinary link alone."""
    if run.layouts == 1:
        return {}
    return {
        arm: [_in_layout(kernel, session.get_one(Build, run.build_ids[arm]), layout) for layout in layouts_of(run, arm)]
        for arm, kernel in kernels.items()
    }


def _in_layout(kernel: Kernel, build: Build, layout: int) -> Kernel:
    """Return the kernel in a layout of its build. Raises ApiProblem 409 if the build lacks the layout."""
    if layout == 0:
        return kernel
    linked = next((each for each in build.result.layouts if each.layout == layout), None) if build.result else None
    if linked is None:
        raise ApiProblem(409, f"build {build.id} has no layout {layout}")
    artifacts = {artifact.kind: artifact for artifact in linked.artifacts}
    return kernel.model_copy(
        update={
            "build_id_gnu": linked.build_id_gnu,
            "image": _required(artifacts, ArtifactKind.KERNEL, build.id),
            "vmlinux": artifacts.get(ArtifactKind.VMLINUX),
        }
    )


def _with_modules(kernel: Kernel, result: BuildResult, needed: Sequence[str]) -> Kernel:
    """Return the kernel with the modules that a plan needs.

    The archive of the kernel's own modules is added only if the plan needs one that is not a module of the lab.
    """
    built = {each.name.removesuffix(".ko"): each for each in result.artifacts if each.kind is ArtifactKind.MODULE}
    others = set(needed) - built.keys() - result.failed_modules.keys()
    own = next((each for each in result.artifacts if each.kind is ArtifactKind.MODULES), None)
    return kernel.model_copy(
        update={
            "modules": {name: built[name] for name in needed if name in built},
            "failed_modules": {name: reason for name, reason in result.failed_modules.items() if name in needed},
            "own_modules": own if others else None,
        }
    )


def _required(artifacts: dict[ArtifactKind, Artifact], kind: ArtifactKind, build_id: int) -> Artifact:
    if kind not in artifacts:
        raise ApiProblem(409, f"build {build_id} has no artifact of kind {kind}")
    return artifacts[kind]


# --- console ----------------------------------------------------------------------------------------------------


def add_console(session: Session, run_id: int, chunk: ConsoleChunk, settings: Settings) -> ConsoleAnswer:
    """Append the bytes that the stored console does not have yet.

    A chunk that starts behind the end is refused: the answer's `next_offset` gives the end. Beyond the byte limit or
    the rate limit the stored console is marked truncated and takes no more bytes. Raises StaleFence, ApiProblem 404 for
    an unknown run or boot, 422 for invalid base64.
    """
    run = lock_run(session, run_id)
    now = claims.check_fence(session, run, chunk.fence)
    boot = find_boot(session, run, chunk.boot)
    try:
        data = base64.b64decode(chunk.data, validate=True)
    except binascii.Error as error:
        raise ApiProblem(422, f"data is not base64: {error}") from error
    new = data[max(boot.console_bytes - chunk.offset, 0) :]
    if chunk.offset <= boot.console_bytes and new and not boot.console_truncated:
        boot.console_started_at = boot.console_started_at or now
        age_s = (now - boot.console_started_at).total_seconds()
        allowed = min(settings.console_limit, int(settings.console_rate * (1 + age_s)))
        kept = new[: max(allowed - boot.console_bytes, 0)]
        if kept:
            session.add(ConsoleRow(boot_id=boot.id, offset=boot.console_bytes, data=kept))
            boot.console_bytes += len(kept)
        boot.console_truncated = len(kept) < len(new)
        notify(session, RUN_CHANNEL, run.id)
    return ConsoleAnswer(next_offset=boot.console_bytes, truncated=boot.console_truncated)


def find_boot(session: Session, run: Run, key: BootKey) -> Boot:
    """Return the boot. Raises ApiProblem 404 for a boot that was not started, StaleFence for another holder's boot."""
    boot = session.scalar(
        select(Boot).where(
            Boot.run_id == run.id,
            Boot.block == key.block,
            Boot.position == key.position,
            Boot.arm == key.arm,
            Boot.attempt == key.attempt,
        )
    )
    if boot is None:
        raise not_found(
            "boot", f"{key.block}/{key.position}/{key.arm}/{key.attempt} of run {run.id}", "send boot_started"
        )
    if boot.fence != run.fence:
        raise StaleFence(f"boot {boot.id}", boot.fence)
    return boot


# --- the end of an attempt --------------------------------------------------------------------------------------


def baseline_failures(session: Session, run_id: int) -> list[Failure]:
    """Return the failures of the run's baseline boots in all attempts."""
    failures = session.scalars(
        select(Boot.failure).where(Boot.run_id == run_id, Boot.arm == Arm.BASELINE, Boot.outcome == Outcome.FAILED)
    )
    return [failure for failure in failures if failure is not None]


def attempts_without_progress(session: Session, run_id: int) -> int:
    """Return the number of ended attempts since the run's last finished block, including that of the block.

    A long run may meet many failures of the lab; only a run that does not advance is given up.
    """
    last_block = (
        select(func.max(BlockAttempt.at)).where(BlockAttempt.run_id == run_id, BlockAttempt.finished).scalar_subquery()
    )
    return (
        session.scalar(
            select(func.count())
            .select_from(RunAttempt)
            .where(RunAttempt.run_id == run_id)
            .where(RunAttempt.finished_at > func.coalesce(last_block, RunAttempt.started_at))
            .where(RunAttempt.outcome != Outcome.PASSED)  # one that ended at a look
        )
        or 0
    )


def abandon_boots(session: Session, run: Run, reason: Failure, now: datetime) -> None:
    """Finish the open boots of an ended attempt and discard their blocks with `reason`.

    A boot that had failed by itself gives its block's failure and the arm that the discard may count against. An
    unfinished boot counts against no arm: the lab ended it.
    """
    closed = {
        (block, attempt)
        for block, attempt in session.execute(
            select(BlockAttempt.block, BlockAttempt.attempt).where(BlockAttempt.run_id == run.id)
        )
    }
    open_attempts: dict[tuple[int, int], Boot | None] = {}
    for boot in session.scalars(select(Boot).where(Boot.run_id == run.id, Boot.fence == run.fence).order_by(Boot.id)):
        if (boot.block, boot.attempt) not in closed:
            failed = boot if boot.outcome is Outcome.FAILED else None
            open_attempts[boot.block, boot.attempt] = open_attempts.get((boot.block, boot.attempt)) or failed
        if boot.state is not BootState.FINISHED:
            boot.state, boot.outcome, boot.failure, boot.finished_at = BootState.FINISHED, Outcome.FAILED, reason, now
            if reason.kind is ErrorKind.CANCELED:
                boot.outcome = Outcome.CANCELED
    for (block, number), failed in open_attempts.items():
        failure = failed.failure if failed and failed.failure else reason
        arm = failed.arm if failed else None
        record_block_attempt(session, run, block, number, finished=False, arm=arm, failure=failure)


def devices_failed_on(session: Session) -> dict[int, frozenset[str]]:
    """Return queued run's id -> devices on which an attempt failed; runs without a failed attempt are left out."""
    found: defaultdict[int, set[str]] = defaultdict(set)
    rows = session.execute(
        select(RunAttempt.run_id, RunAttempt.device_name)
        .join(Run, Run.id == RunAttempt.run_id)
        .where(Run.state == JobState.QUEUED, RunAttempt.outcome == Outcome.FAILED)
    )
    for run_id, device in rows:
        found[run_id].add(device)
    return {run_id: frozenset(devices) for run_id, devices in found.items()}
