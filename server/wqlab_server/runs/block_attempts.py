"""Record how each attempt of a block ended, and the arm that a discarded block counts against."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import ColumnElement, and_, false, func, not_, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session, aliased

from wqlab_contracts.enums import Arm, EventKind, FindingKind
from wqlab_contracts.messages import Failure

from ..models import BlockAttempt, Boot, Device, Finding, Run
from ..storage.events import emit

SIMULTANEOUS = timedelta(seconds=30)
"""Two devices of one lab that fail within this time are taken to have one cause outside both: their host or network."""

_DISCARD_LOCK = 0x77716C63
"""Key of the advisory lock that serialises the comparison of simultaneous discards."""


def record_block_attempt(
    session: Session, run: Run, block: int, attempt: int, *, finished: bool, arm: Arm | None, failure: Failure | None
) -> bool:
    """Record how an attempt of a block ended; return False if it was recorded before.

    `arm` is the arm whose boot failed, if one did. The discard counts against it only if the failure was seen through
    the device, and not if another device of the lab failed at the same time without a kernel report.
    """
    if failure is None or not failure.counts_against_arm:
        arm = None
    new = session.execute(
        insert(BlockAttempt)
        .values(
            run_id=run.id, block=block, attempt=attempt, finished=finished, device_name=run.device_name,
            arm=arm, failure=failure, at=func.clock_timestamp(),
        )
        .on_conflict_do_nothing()
        .returning(BlockAttempt.block)
    ).first()  # fmt: skip
    if new is None:
        return False
    if arm is not None and not finished and _excuse_simultaneous_discards(session, run, block, attempt):
        arm = None
    emit(
        session,
        run.submission_id,
        EventKind.BLOCK_FINISHED if finished else EventKind.BLOCK_DISCARDED,
        run_id=run.id,
        block=block,
        attempt=attempt,
        arm=arm,
        failure=None if failure is None else failure.model_dump(mode="json"),
    )
    return True


def _excuse_simultaneous_discards(session: Session, run: Run, block: int, attempt: int) -> bool:
    """Count this discard and those of the lab's other devices at the same time against no arm; return True if any.

    Boots of the same arm of one submission are no evidence of a common cause in the lab: the kernel may be the cause.
    Nor are boots of one candidate that was submitted twice, which would otherwise excuse its own hangs.
    """
    # Two discards recorded at once must see each other, so they are recorded one after the other.
    session.execute(select(func.pg_advisory_xact_lock(_DISCARD_LOCK)))
    own = session.get_one(BlockAttempt, (run.id, block, attempt), populate_existing=True)
    if _has_kernel_report(session, own):
        return False
    other_run, other_device, own_device = aliased(Run, flat=True), aliased(Device), aliased(Device)
    simultaneous = session.scalars(
        select(BlockAttempt)
        .join(other_run, other_run.id == BlockAttempt.run_id)
        .join(other_device, other_device.name == BlockAttempt.device_name)
        .join(own_device, and_(own_device.name == own.device_name, own_device.lab == other_device.lab))
        .where(
            BlockAttempt.finished.is_(False),
            BlockAttempt.arm.is_not(None),
            BlockAttempt.device_name != own.device_name,
            BlockAttempt.at.between(own.at - SIMULTANEOUS, own.at + SIMULTANEOUS),
            or_(
                and_(_other_submission(other_run, run), not_(_same_candidate(other_run, run, own))),
                BlockAttempt.arm != own.arm,
            ),
        )
    ).all()
    excused = [each for each in simultaneous if not _has_kernel_report(session, each)]
    for each in [own, *excused] if excused else []:
        each.arm = None
    session.flush()
    return bool(excused)


def _other_submission(other: type[Run], run: Run) -> ColumnElement[bool]:
    return other.submission_id.is_distinct_from(run.submission_id)


def _same_candidate(other: type[Run], run: Run, own: BlockAttempt) -> ColumnElement[bool]:
    """Return whether both boots were of the same candidate kernel, if `own` and the other attempt are of one arm.

    The baseline is the kernel of many submissions and is taken to work. The kernels between the patches of a walk are
    compared by their arm: the same series submitted twice has the same ones.
    """
    if own.arm in {Arm.BASELINE, None}:
        return false()
    return other.candidate_build_id.is_not_distinct_from(run.candidate_build_id)


def _has_kernel_report(session: Session, block: BlockAttempt) -> bool:
    """Return True if a kernel reported the failure itself, so that its cause was not outside the device."""
    reported = (
        select(Finding.id)
        .join(Boot, Boot.id == Finding.boot_id)
        .where(
            Boot.run_id == block.run_id,
            Boot.block == block.block,
            Boot.attempt == block.attempt,
            Finding.fatal,
            Finding.kind != FindingKind.HANG,
        )
        .limit(1)
    )
    return session.scalar(reported) is not None
