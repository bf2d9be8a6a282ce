"""Record the events of a running run: boots, samples, findings, blocks. A repeated event changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from wqlab_contracts.enums import Arm, BootState, DeviceStep, ErrorKind, EventKind
from wqlab_contracts.messages import (
    BlockDiscarded,
    BlockFinished,
    BootFinished,
    BootStarted,
    BootVerified,
    CheckStep,
    Failure,
    Finding,
    Progress,
    RunEvent,
    Samples,
    Unsupported,
)

from ..http.problems import ApiProblem
from ..jobs.errors import infrastructure_failure
from ..models import Boot, Build, Device, DeviceCheck, Run, Sample
from ..models import Finding as FindingRow
from ..models import Unsupported as UnsupportedRow
from ..storage.events import emit, notify_checks
from . import limits
from .block_attempts import record_block_attempt
from .layouts import build_id_of, layout_of
from .service import find_boot


def record(session: Session, run: Run, events: Sequence[RunEvent]) -> None:
    """Record all events of a locked run, or none on an error.

    Raises ApiProblem 404 for an unknown boot, 422 for more than the run declares (`limits`).
    """
    for event in events:
        limits.check_event(event)
        _RECORDERS[type(event)](session, run, event)


def _boot_started(session: Session, run: Run, event: BootStarted) -> None:
    key = event.boot
    limits.check_new_boot(session, run, key)
    boot_id = session.scalar(
        insert(Boot)
        .values(
            run_id=run.id,
            **key.model_dump(),
            device_name=run.device_name,
            fence=run.fence,
            started_at=event.at,
            state=BootState.BOOTING,
            valid=False,
            environment={},
            commands={},
            ran=[],
            console_bytes=0,
            console_truncated=False,
        )
        .on_conflict_do_nothing()
        .returning(Boot.id)
    )
    if boot_id is None:
        find_boot(session, run, key)
        return
    _emit(session, run, EventKind.BOOT_STATE, boot_id, state=BootState.BOOTING, **key.model_dump(mode="json"))


def _boot_verified(session: Session, run: Run, event: BootVerified) -> None:
    boot = find_boot(session, run, event.boot)
    if boot.verified_at is not None:
        return
    boot.verified_at = event.at
    boot.kernel_boot_id, boot.token, boot.build_id_gnu = event.kernel_boot_id, event.token, event.build_id_gnu
    boot.release, boot.cmdline, boot.topology = event.release, event.cmdline, event.topology
    boot.environment, boot.golden_s, boot.kexec_s = event.environment, event.golden_s, event.kexec_s
    boot.ran = event.ran
    if boot.state is BootState.BOOTING:
        boot.state = BootState.MEASURING
    _emit(session, run, EventKind.BOOT_STATE, boot.id, state=boot.state, **event.boot.model_dump(mode="json"))


def _samples(session: Session, run: Run, event: Samples) -> None:
    boot = find_boot(session, run, event.boot)
    limits.check_samples(session, run, event)
    if event.commands.keys() - boot.commands.keys():
        boot.commands = limits.with_new_facts(boot.commands, event.commands)
    if event.facts.keys() - boot.environment.keys():
        boot.environment = limits.with_new_facts(boot.environment, event.facts)
    if not event.samples:
        return
    new = session.execute(
        insert(Sample)
        .values([{"run_id": run.id, "boot_id": boot.id, **sample.model_dump()} for sample in event.samples])
        .on_conflict_do_nothing()
        .returning(Sample.scenario)
    ).all()
    if new:
        first = event.samples[0]
        _emit(session, run, EventKind.SAMPLES, boot.id, count=len(new), scenario=first.scenario, setting=first.setting)


def _unsupported(session: Session, run: Run, event: Unsupported) -> None:
    boot = find_boot(session, run, event.boot)
    limits.check_unsupported(session, run, boot, event.scenario, event.setting)
    cell = event.model_dump(include={"scenario", "setting", "metric", "cause", "reason"})
    new = session.scalar(
        insert(UnsupportedRow)
        .values(run_id=run.id, boot_id=boot.id, arm=boot.arm, **cell)
        .on_conflict_do_nothing()
        .returning(UnsupportedRow.id)
    )
    if new is not None:
        _emit(session, run, EventKind.UNSUPPORTED, boot.id, arm=boot.arm, **cell)


def _finding(session: Session, run: Run, event: Finding) -> None:
    boot = find_boot(session, run, event.boot)
    if not limits.may_add_finding(session, boot):
        return
    new = session.scalar(
        insert(FindingRow)
        .values(
            run_id=run.id,
            boot_id=boot.id,
            kind=event.kind,
            title=event.title,
            excerpt=event.excerpt,
            console_offset=event.console_offset,
            fatal=event.fatal,
            stack=event.stack,
            defect=event.defect,
            at=event.at,
        )
        .on_conflict_do_nothing()
        .returning(FindingRow.id)
    )
    if new is not None:
        _emit(
            session, run, EventKind.FINDING, boot.id, finding=event.kind, title=event.title, fatal=event.fatal,
            arm=boot.arm, block=boot.block, attempt=boot.attempt,
        )  # fmt: skip


def _boot_finished(session: Session, run: Run, event: BootFinished) -> None:
    boot = find_boot(session, run, event.boot)
    if boot.state is BootState.FINISHED:
        return
    boot.state, boot.outcome, boot.failure, boot.finished_at = (
        BootState.FINISHED,
        event.outcome,
        event.failure,
        event.at,
    )
    boot.workload_s, boot.overhead_s = event.workload_s, event.overhead_s
    _emit(
        session, run, EventKind.BOOT_STATE, boot.id, state=boot.state, outcome=boot.outcome,
        failure=_dump(event.failure), **event.boot.model_dump(mode="json"),
    )  # fmt: skip


def _block_finished(session: Session, run: Run, event: BlockFinished) -> None:
    if not 0 <= event.block < len(run.blocks):
        raise ApiProblem(422, f"run {run.id} has blocks 0 to {len(run.blocks) - 1}, not {event.block}")
    boots = session.scalars(
        select(Boot).where(Boot.run_id == run.id, Boot.block == event.block, Boot.attempt == event.attempt)
    ).all()
    fatal = session.scalar(
        select(FindingRow).where(FindingRow.boot_id.in_([boot.id for boot in boots]), FindingRow.fatal).limit(1)
    )
    if fatal is not None:  # found after the boot's last script, too late for the worker to act on
        arm = next(boot.arm for boot in boots if boot.id == fatal.boot_id)
        failure = Failure(
            kind=ErrorKind.KERNEL,
            summary=f"{fatal.kind}: {fatal.title}",
            excerpt=fatal.excerpt,
            stack=fatal.stack,
            defect=fatal.defect,
        )
        record_block_attempt(session, run, event.block, event.attempt, finished=False, arm=arm, failure=failure)
        return
    if mismatch := _mismatch(session, run, run.blocks[event.block], boots):
        failure = infrastructure_failure(mismatch)
        record_block_attempt(session, run, event.block, event.attempt, finished=False, arm=None, failure=failure)
        return
    if record_block_attempt(session, run, event.block, event.attempt, finished=True, arm=None, failure=None):
        for boot in boots:
            boot.valid = True


def _mismatch(session: Session, run: Run, arms: Sequence[Arm], boots: Sequence[Boot]) -> str | None:
    """Return why these boots are not the planned block, or None if they are.

    The worker has verified all of this on the device. The record is verified here again, so that every figure shown
    comes from a boot with a recorded proof of which kernel it ran.
    """
    if sorted((boot.position, boot.arm) for boot in boots) != list(enumerate(arms)):
        return f"{len(boots)} boots are not the {len(arms)} of this block"
    builds = run.build_ids
    for boot in boots:
        build = session.get(Build, builds[boot.arm])
        layout = layout_of(run, boot.arm, boot.block)
        expected = build_id_of(build.result, layout) if build and build.result else None
        if boot.verified_at is None or boot.build_id_gnu != expected:
            return f"a {boot.arm} boot ran build id {boot.build_id_gnu}, not {expected}"
        if not (boot.kernel_boot_id and boot.token):
            return f"a {boot.arm} boot has no boot id or token of its own"
    if len({boot.kernel_boot_id for boot in boots}) != len(boots) and not _is_instrumented(session, boots[0]):
        return "two boots carry the same kernel boot id"
    return None


def _is_instrumented(session: Session, boot: Boot) -> bool:
    """Return True if the boots of a block had the same seed, and so the same random numbers and boot id."""
    backend = session.scalar(select(Device.backend).where(Device.name == boot.device_name))
    return backend == "instrumented"


def _block_discarded(session: Session, run: Run, event: BlockDiscarded) -> None:
    record_block_attempt(session, run, event.block, event.attempt, finished=False, arm=event.arm, failure=event.failure)


def _progress(session: Session, run: Run, event: Progress) -> None:
    new = (event.text, event.done, event.total)
    if new != (run.progress, run.progress_done, run.progress_total):
        run.progress, run.progress_done, run.progress_total = new
        if not limits.may_add_progress(session, run):
            return
        _emit(session, run, EventKind.RUN_PROGRESS, None, text=event.text, done=event.done, total=event.total)
        notify_checks(session, run)


def _check_step(session: Session, run: Run, event: CheckStep) -> None:
    checks = session.scalars(select(DeviceCheck).where(DeviceCheck.health_run_id == run.id).with_for_update()).all()
    for check in checks:
        known = {each.step: each for each in check.steps}
        if known.get(event.step) == event:
            continue
        known[event.step] = event
        check.steps = [known[step] for step in DeviceStep if step in known]
        notify_checks(session, run)


def _emit(session: Session, run: Run, kind: EventKind, boot_id: int | None, **data: Any) -> None:
    emit(session, run.submission_id, kind, run_id=run.id, boot_id=boot_id, **data)


def _dump(failure: Failure | None) -> dict[str, Any] | None:
    return None if failure is None else failure.model_dump(mode="json")


_RECORDERS: dict[type, Callable[[Session, Run, Any], None]] = {
    BootStarted: _boot_started,
    BootVerified: _boot_verified,
    Samples: _samples,
    Unsupported: _unsupported,
    Finding: _finding,
    BootFinished: _boot_finished,
    BlockFinished: _block_finished,
    BlockDiscarded: _block_discarded,
    CheckStep: _check_step,
    Progress: _progress,
}
