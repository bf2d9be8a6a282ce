"""Measure the simulated heads one after another with the pipeline's own steps: only jobs are not done by workers.

Comparisons, verdicts, points, shifts and their confirmation are those of the code that measures real heads, on
simulated values. Everything that a head has made is then dated back to the head's time.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from wqlab_contracts.enums import DeviceHealth, ShiftState, SubmissionState, WatchedHeadState
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import CommitPair
from wqlab_contracts.specs import TreeWatch
from wqlab_server.lab.service import change_pool, pool_changes
from wqlab_server.models import Device, HistoryShift, Run, Submission, WatchedHead
from wqlab_server.orders.source import Context
from wqlab_server.pipeline.history import record_heads
from wqlab_server.settings import Settings
from wqlab_server.sources.commit_pairs import propose_pair
from wqlab_server.storage.db import SessionFactory, clock, transaction
from wqlab_server.storage.live_data import LiveData
from wqlab_server.submissions import service as submissions
from wqlab_server.tick.run_sources import admit_orders, place_orders, take_results

from ..watches import add_watch
from . import story
from .jobs import finish_jobs

BRANCH = "for-next"


def load(factory: SessionFactory, settings: Settings, data: LiveData, *, owner: str) -> None:
    """Fill an empty database; the tree and what maintainers have settled belong to `owner`."""
    spec = TreeWatch(
        kind="tree",
        name=story.TREE,
        summary="simulated heads",
        tree=next(name for name, tree in data.current().trees.items() if tree.url),
        url="https://example.org/simulated.git",
        branches=[BRANCH],
        targets=[f"{story.PLAN}@{each}" for each in story.MACHINES],
        blocks=story.BLOCKS,
        minutes_a_day=100_000,
        owner=owner,
    )
    with transaction(factory) as session:
        _write_tree(session, spec, data.current())
        now = clock(session)
    parent: int | None = None
    for index in range(story.HEADS):
        at = now - (story.HEADS - 1 - index) * story.EVERY
        parent = _add_head(factory, settings, data, spec, index=index, parent=parent, at=at)
    with transaction(factory) as session:
        _settle(session, owner)


def _write_tree(session: Session, spec: TreeWatch, data: DataFolder) -> None:
    for change in pool_changes(session, data):
        change_pool(session, change)
    session.flush()
    session.execute(update(Device).values(health=DeviceHealth.GOOD, health_checked_at=clock(session)))
    add_watch(session, spec)


def _add_head(
    factory: SessionFactory,
    settings: Settings,
    data: LiveData,
    spec: TreeWatch,
    *,
    index: int,
    parent: int | None,
    at: datetime,
) -> int:
    """Add a head, measure it against the one before, and confirm the shifts that it makes suspect; return its id."""
    head_id = index + 1
    commits = [story.commit(each) for each in (index - 1, index)]
    with transaction(factory) as session:
        head = WatchedHead(
            id=head_id, watch=spec.name, ref=BRANCH, name=BRANCH, commit=commits[1], seen_at=at, parent_id=parent,
            state=WatchedHeadState.RUNNING if parent else WatchedHeadState.START,
            reason="" if parent else "the first head that was seen",
        )  # fmt: skip
        session.add(head)
        if parent is None:
            return head_id
        current = data.current()
        pair = CommitPair(baseline=commits[0], candidate=commits[1], ref=BRANCH)
        proposal = propose_pair(Context(session, settings, current), spec, pair, spec.targets, _devices())
        made = submissions.create(
            session, current, settings, proposal.request, spec.owner, repository=proposal.repository
        )
        head.submission_id, head.submitted_at = made.id, at
        number = made.id
    finish_jobs(factory, settings, number, heads=(index - 1, index), at=at)
    with transaction(factory) as session:
        head = session.get_one(WatchedHead, head_id)
        verdicts = session.scalars(select(Run.verdict).where(Run.submission_id == number, Run.verdict.is_not(None)))
        head.state, head.ended_at = WatchedHeadState.MEASURED, at
        head.verdicts, head.devices = sorted({str(each) for each in verdicts}), _devices()
    _advance(factory, settings, data.current())
    _confirm(factory, settings, data, index=index, at=at)
    return head_id


def _advance(factory: SessionFactory, settings: Settings, data: DataFolder) -> None:
    """Take the steps of a tick that concern the history."""
    take_results(factory, settings, data)
    record_heads(factory)
    place_orders(factory, settings, data)
    admit_orders(factory, settings, data)


def _devices() -> dict[str, str]:
    """Return target -> device, the first unit of each type."""
    units = {"xeon-2s": "xeon-1", "ryzen-3900x": "ryzen-1", "chromebook-biglittle": "chromebook-1", "tiny": "tiny-1"}
    return {f"{story.PLAN}@{device_type}": unit for device_type, unit in units.items()}


def _confirm(factory: SessionFactory, settings: Settings, data: LiveData, *, index: int, at: datetime) -> None:
    """Measure both sides of the new shifts again, unless the story leaves them suspected."""
    with transaction(factory) as session:
        rows = session.execute(
            select(Submission.id, HistoryShift.before_id, HistoryShift.after_id)
            .join(HistoryShift, HistoryShift.submission_id == Submission.id)
            .where(Submission.state != SubmissionState.FINISHED)
            .distinct()
        ).all()
    if index != story.NOT_CONFIRMED:
        for number, before, after in rows:
            finish_jobs(factory, settings, number, heads=(before - 1, after - 1), at=at, again=True)
        _advance(factory, settings, data.current())
    with transaction(factory) as session:
        for shift in session.scalars(select(HistoryShift).where(HistoryShift.created_at > at)):
            shift.created_at = shift.changed_at = at
            shift.decided_at = at + story.EVERY / 6 if shift.decided_at else None


def _settle(session: Session, owner: str) -> None:
    """Explain and fix some of the confirmed shifts, as maintainers do."""
    for shift in session.scalars(select(HistoryShift).where(HistoryShift.state == ShiftState.CONFIRMED)):
        index = shift.after_id - 1
        if index == story.MORE_LOCKS:
            shift.state = ShiftState.FIXED
            shift.notes = f"fixed by {story.title(story.FEWER_AGAIN)!r}"
        elif index == story.STEPS["xeon-2s", "locks_per_flush_mean"][0]:
            shift.state = ShiftState.EXPLAINED
            shift.notes = "needed: the rescuer ran unlocked before"
        elif index == story.STEPS["ryzen-3900x", "locks_per_fsync"][0]:
            shift.owner = owner
            continue
        else:
            continue
        shift.owner = shift.changed_by = owner
