"""Read a finished canary: store its boot values, and mark the device suspect if its noise floor has jumped."""

from __future__ import annotations

import structlog
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from wqlab_comparison.canary_words import jump_text
from wqlab_comparison.floor_jumps import find_jump
from wqlab_contracts.api.canaries import FloorJump
from wqlab_contracts.enums import CanaryKind, DeviceHealth, Role
from wqlab_contracts.units import effect_unit

from ..comparisons.service import store_boot_values
from ..estimates import canaries as records
from ..lab import health
from ..lab import service as lab_service
from ..models import CanaryRun, Device, Run
from ..runs import service as runs
from ..storage.db import clock

log = structlog.get_logger(__name__)


def read_canary(session: Session, run_id: int) -> None:
    """Store the boot values of a finished canary; if the noise floor has jumped, mark the device suspect."""
    run = runs.lock_run(session, run_id, with_snapshot=True)
    if run.compared_at is not None:
        return
    store_boot_values(session, run)
    run.compared_at = clock(session)
    session.flush()
    canary = session.get_one(CanaryRun, run.id)
    canary.floor_jump = _jump(session, run, canary.kind)
    if canary.floor_jump is None:
        return
    device = session.scalars(select(Device).where(Device.name == run.wanted_device).with_for_update()).one()
    reason = jump_text(canary.floor_jump, run.plan_name)
    log.warning("noise_floor_jumped", device=device.name, run=run.id, reason=reason)
    if device.health is DeviceHealth.GOOD and device.retired_at is None:
        suspect = health.change_health(device.health, DeviceHealth.SUSPECT, reason)
        lab_service.set_health(session, device, suspect, f"run {run.id}", run.id)
        session.flush()
        lab_service.request_check(session, device.name)


def _jump(session: Session, run: Run, kind: CanaryKind) -> FloorJump | None:
    """Return the jump of the floor of a primary metric that ends with this canary, if any.

    Only equal kernels are watched: the effect of another layout changes with the kernel.
    """
    history = records.history_of(session, run, kind) if kind is CanaryKind.SAME_KERNEL else None
    if history is None:
        return None
    floor_jumps = select(func.max(CanaryRun.run_id)).join(Run, Run.id == CanaryRun.run_id)
    alarm = session.scalar(floor_jumps.where(Run.wanted_device == run.wanted_device, CanaryRun.floor_jump.is_not(None)))
    for metric in run.plan.metrics:
        if metric.role(history.emulated) is not Role.PRIMARY or metric.name not in history.canaries:
            continue
        floors = history.floors(metric.name, after=alarm or 0)
        jump = find_jump(floors)
        if jump is not None:
            return FloorJump(
                metric=metric.name,
                unit=effect_unit(metric.scale, metric.unit),
                before=records.displayed_floor(metric, jump.before),
                now=records.displayed_floor(metric, jump.now),
                canaries=jump.canaries,
            )
    return None
