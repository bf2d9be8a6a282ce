"""What ran where: the lab's timeline and one device's history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, func, or_, select, tuple_
from sqlalchemy.orm import Session

from wqlab_contracts.api.queue import BootConsole, DeviceHistory, DeviceRun, Timeline, TimelineBar, TimelineDevice
from wqlab_contracts.api.queue import HealthChange as HealthChangeView
from wqlab_contracts.api.submissions import Page

from ..http.paging import Key, encode_key
from ..models import Boot, Device, HealthChange, Run, RunAttempt, Submission
from ..storage.db import clock
from . import checks

CONSOLES = 10
CHANGES = 50


@dataclass(frozen=True)
class Span:
    since: datetime
    until: datetime
    device_type: str | None = None
    device: str | None = None


def timeline(session: Session, span: Span, after: Key | None, limit: int) -> Timeline:
    """Every time span of a run on a device that touches `span`, by start."""
    query = (
        _attempts()
        .join(Device, Device.name == RunAttempt.device_name)
        .where(
            RunAttempt.started_at < span.until,
            or_(RunAttempt.finished_at.is_(None), RunAttempt.finished_at > span.since),
        )
        .order_by(RunAttempt.started_at, RunAttempt.run_id, RunAttempt.number)
    )
    chosen = _devices_of(span)
    query = query.where(*chosen)
    if after is not None:
        query = query.where(tuple_(RunAttempt.started_at, RunAttempt.run_id, RunAttempt.number) > tuple_(*after))
    rows = session.execute(query.limit(limit + 1)).all()
    shown = rows[:limit]
    named = {row.RunAttempt.device_name for row in shown}
    devices = session.scalars(
        select(Device)
        .where(or_(Device.retired_at.is_(None), Device.name.in_(named)), *chosen)
        .order_by(Device.device_type, Device.name)
    )
    return Timeline(
        at=clock(session),
        since=span.since,
        until=span.until,
        devices=[
            TimelineDevice(
                name=row.name,
                device_type=row.device_type,
                lab=row.lab,
                health=row.health,
                retired=row.retired_at is not None,
            )
            for row in devices
        ],
        bars=[TimelineBar(**_bar(row)) for row in shown],
        next=_next(rows, limit),
    )


def _devices_of(span: Span) -> list[Any]:
    chosen = []
    if span.device_type is not None:
        chosen.append(Device.device_type == span.device_type)
    if span.device is not None:
        chosen.append(Device.name == span.device)
    return chosen


def of_device(session: Session, device: Device, before: Key | None, limit: int) -> DeviceHistory:
    """Health, runs (newest first, a page of them) and the last consoles of one device."""
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
    boots = _boots_of(session, shown)
    return DeviceHistory(
        device=device.name,
        checks=checks.of_device(session, device.name),
        health=[
            HealthChangeView(at=row.at, health=row.health, reason=row.reason, by=row.by, run_id=row.run_id)
            for row in session.scalars(
                select(HealthChange)
                .where(HealthChange.device_name == device.name)
                .order_by(HealthChange.id.desc())
                .limit(CHANGES)
            )
        ],
        runs=Page[DeviceRun](
            items=[
                DeviceRun(
                    **_bar(row),
                    device_type=row.device_type,
                    failure_detail=row.RunAttempt.failure,
                    boots=boots.get(_holding(row), (0, None))[0],
                    last_boot_id=boots.get(_holding(row), (0, None))[1],
                )
                for row in shown
            ],
            total=total,
            next=_next(rows, limit),
        ),
        consoles=_consoles(session, device.name),
    )


def _attempts() -> Select[*tuple[Any, ...]]:
    """Attempts with what a bar says of their run."""
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


def _holding(row: Row[Any]) -> tuple[int, int]:
    """An attempt's boots carry the fence under which it held the device."""
    return row.RunAttempt.run_id, row.RunAttempt.fence


def _boots_of(session: Session, rows: Sequence[Row[Any]]) -> dict[tuple[int, int], tuple[int, int | None]]:
    """(run, fence) -> how many boots there were, and the last one."""
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
        .limit(CONSOLES)
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
