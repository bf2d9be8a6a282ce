"""Query a device's history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, Select, func, select, tuple_
from sqlalchemy.orm import Session

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.queue import BootConsole, DeviceHistory, DeviceRun
from wqlab_contracts.api.queue import HealthChange as HealthChangeView

from ..http.paging import Key, encode_key
from ..models import Boot, Device, HealthChange, Run, RunAttempt, Submission
from . import checks

CONSOLES_SHOWN = 10
HEALTH_CHANGES_SHOWN = 50


def device_history(session: Session, device: Device, before: Key | None, limit: int) -> DeviceHistory:
    """Return a device's checks, health changes, a page of its runs (newest first) and its last consoles."""
    query = (
        _attempts()
        .where(RunAttempt.device_name == device.name)
        .order_by(RunAttempt.started_at.desc(), RunAttempt.run_id.desc(), RunAttempt.number.desc())
    )
    if before is not None:
        query = query.where(tuple_(RunAttempt.started_at, RunAttempt.run_id, RunAttempt.number) < tuple_(*before))
    rows = session.execute(query.limit(limit + 1)).all()
    total = session.scalar(select(func.count()).where(RunAttempt.device_name == device.name)) or 0
    shown = rows[:limit]
    boots = _count_boots(session, shown)
    return DeviceHistory(
        device=device.name,
        checks=checks.list_for_device(session, device.name),
        health=[
            HealthChangeView(at=row.at, health=row.health, reason=row.reason, by=row.by, run_id=row.run_id)
            for row in session.scalars(
                select(HealthChange)
                .where(HealthChange.device_name == device.name)
                .order_by(HealthChange.id.desc())
                .limit(HEALTH_CHANGES_SHOWN)
            )
        ],
        runs=Page[DeviceRun](
            items=[
                DeviceRun(
                    **_bar(row),
                    device_type=row.device_type,
                    failure_detail=row.RunAttempt.failure,
                    boots=boots.get(_run_and_fence(row), (0, None))[0],
                    last_boot_id=boots.get(_run_and_fence(row), (0, None))[1],
                )
                for row in shown
            ],
            total=total,
            next=_next(rows, limit),
        ),
        consoles=_consoles(session, device.name),
    )


def _attempts() -> Select[*tuple[Any, ...]]:
    """Select run attempts with the columns of their run that a history shows."""
    return (
        select(
            RunAttempt,
            Run.submission_id,
            Run.owner,
            Run.plan_name,
            Run.device_type,
            Run.purpose,
            Submission.title,
        )
        .join(Run, Run.id == RunAttempt.run_id)
        .outerjoin(Submission, Submission.id == Run.submission_id)
    )


def _bar(row: Row[Any]) -> dict[str, Any]:
    attempt: RunAttempt = row.RunAttempt
    return {
        "run_id": attempt.run_id,
        "attempt": attempt.number,
        "submission_id": row.submission_id,
        "title": row.title or f"{row.plan_name} on {attempt.device_name}",
        "owner": row.owner,
        "plan": row.plan_name,
        "device": attempt.device_name,
        "purpose": row.purpose,
        "outcome": attempt.outcome,
        "failure_kind": attempt.failure.kind if attempt.failure else None,
        "failure": attempt.failure.summary if attempt.failure else "",
        "started_at": attempt.started_at,
        "finished_at": attempt.finished_at,
    }


def _next(rows: Sequence[Row[Any]], limit: int) -> str | None:
    if len(rows) <= limit:
        return None
    last: RunAttempt = rows[limit - 1].RunAttempt
    return encode_key((last.started_at, last.run_id, last.number))


def _run_and_fence(row: Row[Any]) -> tuple[int, int]:
    """Return (run id, fence), which identify the boots of an attempt."""
    return row.RunAttempt.run_id, row.RunAttempt.fence


def _count_boots(session: Session, rows: Sequence[Row[Any]]) -> dict[tuple[int, int], tuple[int, int | None]]:
    """Return (run id, fence) -> number of boots and id of the last one."""
    counted = session.execute(
        select(Boot.run_id, Boot.fence, func.count(), func.max(Boot.id))
        .where(Boot.run_id.in_({row.RunAttempt.run_id for row in rows}))
        .group_by(Boot.run_id, Boot.fence)
    )
    return {(run_id, fence): (count, last) for run_id, fence, count, last in counted}


def _consoles(session: Session, device: str) -> list[BootConsole]:
    rows = session.execute(
        select(
            Boot.id, Boot.run_id, Boot.block, Boot.arm, Boot.attempt, Boot.state, Boot.outcome, Boot.failure,
            Boot.started_at, Boot.finished_at, Boot.console_bytes, Boot.console_truncated,
            Run.submission_id, Run.purpose, Run.plan_name,
        )
        .join(Run, Run.id == Boot.run_id)
        .where(Boot.device_name == device)
        .order_by(Boot.id.desc())
        .limit(CONSOLES_SHOWN)
    )  # fmt: skip
    return [
        BootConsole(
            boot_id=row.id,
            run_id=row.run_id,
            submission_id=row.submission_id,
            purpose=row.purpose,
            plan=row.plan_name,
            block=row.block,
            arm=row.arm,
            attempt=row.attempt,
            state=row.state,
            outcome=row.outcome,
            failure=row.failure.summary if row.failure else "",
            started_at=row.started_at,
            finished_at=row.finished_at,
            console_bytes=row.console_bytes,
            console_truncated=row.console_truncated,
        )
        for row in rows
    ]
