"""Source: the next measurement of each bisection.

What comes next is decided from the rows alone, so that a restart or a second server repeats no step.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.api.bisections import OPEN_STATES
from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import BisectionState, JobState, Outcome, SubmissionState
from wqlab_contracts.enums import BisectionStepKind as Kind
from wqlab_contracts.enums import BisectionStepState as State
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import CommitPair, Series, Target

from ..bisections import lists, plan, service, suspects
from ..bisections.culprits import announce_culprit
from ..jobs import claims
from ..models import (
    Bisection,
    BisectionStep,
    CommitList,
    HistoryShift,
    Order,
    Run,
    Submission,
    User,
    WatchedHead,
)
from ..orders import orders
from ..orders.source import Context, Proposal, Source, Stop
from ..storage.db import clock
from ..submissions import service as submissions
from ..wait import Wait
from .commit_pairs import lock_tree
from .read_bisection_step import read_step

log = structlog.get_logger(__name__)

_STATES = {
    Kind.ENDS: BisectionState.ENDS,
    Kind.PROBE: BisectionState.SEARCHING,
    Kind.CONFIRM: BisectionState.CONFIRMING,
    Kind.REVERT: BisectionState.CONFIRMING,
}


class BisectionSource(Source):
    """Steps of bisections, on the quotas of their owner or the device time of their watch. Keys are `ID:STEP`."""

    name = "bisection"
    tries = 3

    def items(self, context: Context) -> Sequence[int]:
        return context.session.scalars(
            select(Bisection.id).where(Bisection.state.in_(OPEN_STATES)).order_by(Bisection.id)
        ).all()

    def find(self, context: Context, item: int | str) -> None:
        """Read the commits that were listed and decide what is next: measure, list a side branch, or end."""
        session = context.session
        row = service.get(session, int(item), lock=True)
        if row.state in OPEN_STATES and _take_results(session, row):
            try:
                _begin_next(session, row, context.data)
            except Stop as stop:
                _end(session, row, BisectionState.FAILED, str(stop))

    def propose(self, context: Context, order: Order) -> Proposal:
        session = context.session
        row, action = _next_measurement(session, order, context.data)
        request = _request(row, action, context.data)
        if row.watch is not None:
            lock_tree(session, row.watch)
            return Proposal(request, row.owner, row.repository)
        known = session.scalar(select(User.id).where(User.name == row.owner)) is not None
        return Proposal(
            request, row.owner, repository=row.repository, limited=None if known else row.limited, needs_account=known
        )

    def submitted(self, context: Context, order: Order, submission: Submission) -> None:
        session = context.session
        row, action = _next_measurement(session, order, context.data)
        session.add(
            BisectionStep(
                bisection_id=row.id, list_id=action.line.row.id, kind=action.kind, state=State.RUNNING,
                first=action.first, last=action.last, baseline=action.baseline, candidate=action.candidate,
                blocks=action.blocks, submission_id=submission.id, submitted_at=clock(session),
            )
        )  # fmt: skip
        row.state, row.reason = _STATES[action.kind], ""
        if action.kind is Kind.CONFIRM:
            suspects.suspect(row, action.line, action.first, action.last)
        elif action.kind is not Kind.REVERT:
            suspects.clear(row)

    def waits(self, context: Context, order: Order, reason: Exception) -> None:
        _bisection(context.session, order).reason = f"waits: {reason}"

    def stopped(self, context: Context, order: Order, stop: Stop) -> None:
        row = _bisection(context.session, order)
        if row.state not in OPEN_STATES:
            return
        found, steps = _load(context.session, row)
        action = plan.decide(row.request, plan.lines_of(found, steps))
        if isinstance(action, plan.Found) and row.cancel_requested_at is None:  # only its revert was not measured
            _end_found(context.session, row, action, steps)
        else:
            _end(context.session, row, BisectionState.FAILED, str(stop))

    def conclude(self, context: Context, order: Order, submission: Submission) -> str:
        row = _bisection(context.session, order)
        step = context.session.scalars(select(BisectionStep).where(BisectionStep.submission_id == submission.id)).one()
        if step.state is State.RUNNING and row.state in OPEN_STATES:
            _read(context.session, row, step, submission)
        return step.reason if step.state is State.REPEATED and row.state in OPEN_STATES else ""


def _bisection(session: Session, order: Order) -> Bisection:
    return service.get(session, int(order.key.partition(":")[0]), lock=True)


def _decide(
    row: Bisection, found: Sequence[CommitList], steps: Sequence[BisectionStep], data: DataFolder
) -> plan.Action:
    name = row.request.device_type
    on_hardware = data.has_device_type(name) and not data.device_type(name).emulated
    return plan.decide(row.request, plan.lines_of(found, steps), reverts=on_hardware)


def _next_measurement(session: Session, order: Order, data: DataFolder) -> tuple[Bisection, plan.Measure]:
    """Return the measurement that a bisection orders. Raises Stop if it has ended, Wait if it orders something else."""
    row = _bisection(session, order)
    if row.state not in OPEN_STATES or row.cancel_requested_at is not None:
        raise Stop("the bisection has ended")
    found, steps = _load(session, row)
    action = _decide(row, found, steps, data)
    if not isinstance(action, plan.Measure) or _key(row, steps) != order.key:
        raise Wait("the bisection measures something else first")
    return row, action


def _key(row: Bisection, steps: Sequence[BisectionStep]) -> str:
    """Return the key of the next step. One that the lab failed to measure is repeated under its key."""
    return f"{row.id}:{sum(step.state is not State.REPEATED for step in steps) + 1}"


def _request(row: Bisection, action: plan.Measure, data: DataFolder) -> SubmissionRequest:
    """Return the request that compares the two commits, on the device that measured the ends if it is still there."""
    wanted = row.request
    units = data.device_type(wanted.device_type).units if data.has_device_type(wanted.device_type) else []
    target = Target(
        plan=wanted.plan,
        device_type=wanted.device_type,
        scenarios=[wanted.scenario] if wanted.scenario else None,
        settings=[wanted.setting] if wanted.setting is not None else None,
        parameters=wanted.parameters,
        device=row.device if row.device in {unit.name for unit in units} else None,
    )
    pair = CommitPair(baseline=action.baseline, candidate=action.candidate, ref=row.ref)
    if action.kind is Kind.REVERT:
        pair = CommitPair(baseline=action.baseline, candidate=action.baseline, reverted=action.candidate, ref=row.ref)
    return SubmissionRequest(
        series=Series(commits=pair),
        tree=wanted.tree,
        targets=[target],
        blocks=action.blocks,
        recipe=wanted.recipe,
        priority=wanted.priority,
        trace=False,  # a step asks only whether the metric differs
    )


def _end(session: Session, row: Bisection, state: BisectionState, reason: str = "") -> None:
    row.state, row.reason, row.ended_at = state, reason, clock(session)
    log.info("bisection_ended", bisection=row.id, state=state, culprit=row.culprit)


# --- results ----------------------------------------------------------------------------------------------------


def _take_results(session: Session, row: Bisection) -> bool:
    """Read steps that are finished, and cancel what was asked to stop. Returns True if something can be begun now."""
    running = session.execute(
        select(BisectionStep, Submission)
        .join(Submission, Submission.id == BisectionStep.submission_id)
        .where(BisectionStep.bisection_id == row.id, BisectionStep.state == State.RUNNING)
    ).all()
    for step, submission in running:
        if row.cancel_requested_at is not None and submission.state is not SubmissionState.FINISHED:
            submissions.cancel(session, submission.id)
        if submission.state is not SubmissionState.FINISHED:
            return False
        # The run that confirmed a shift is no order of the bisection.
        _read(session, row, step, submission)
    if row.cancel_requested_at is not None and row.state in OPEN_STATES:
        _cancel_lists(session, row)
        _end(session, row, BisectionState.CANCELED)
    return row.state in OPEN_STATES


def _read(session: Session, row: Bisection, step: BisectionStep, submission: Submission) -> None:
    """Read a finished step; end the bisection if it cannot go on."""
    problem = read_step(session, row, step, submission)
    if step.kind is Kind.ENDS and step.state is State.MEASURED:
        _take_ends(session, row, step)
    session.flush()
    _summarise(session, row)
    if problem and row.cancel_requested_at is None:
        _end(session, row, BisectionState.CANCELED if step.state is State.CANCELED else BisectionState.FAILED, problem)


def _cancel_lists(session: Session, row: Bisection) -> None:
    unfinished = select(CommitList).where(CommitList.bisection_id == row.id, CommitList.state != JobState.FINISHED)
    for each in session.scalars(unfinished):
        claims.cancel(session, each.id, clock(session))


def _take_ends(session: Session, row: Bisection, step: BisectionStep) -> None:
    """Take the difference of good and bad, and the device that measured it."""
    level = session.get_one(CommitList, step.list_id).level
    if level:
        return
    row.effect, row.ci_low, row.ci_high = step.effect, step.ci_low, step.ci_high
    if row.request.failure:
        row.failure_rate = step.failed / max(step.failed + step.passed, 1)
        row.failure_title = step.titles[0] if step.titles else ""
    row.device = session.scalar(select(Run.device_name).where(Run.submission_id == step.submission_id).limit(1))


def _load(session: Session, row: Bisection) -> tuple[list[CommitList], list[BisectionStep]]:
    found = session.scalars(select(CommitList).where(CommitList.bisection_id == row.id).order_by(CommitList.id)).all()
    steps = session.scalars(
        select(BisectionStep).where(BisectionStep.bisection_id == row.id).order_by(BisectionStep.id)
    ).all()
    return list(found), list(steps)


def _summarise(session: Session, row: Bisection) -> None:
    found, steps = _load(session, row)
    lines = plan.lines_of(found, steps)
    row.boots = sum(each.boots for each in steps if each.kind is Kind.PROBE)
    row.plain_boots = sum(line.plain_boots() for line in lines.values())


# --- the next step ----------------------------------------------------------------------------------------------


def _begin_next(session: Session, row: Bisection, data: DataFolder) -> None:
    """Order the next measurement, list a side branch, or end the bisection. Raises Stop if it cannot go on."""
    found, steps = _load(session, row)
    if any(each.state is not JobState.FINISHED for each in found):
        if row.reason.startswith("waits: "):
            row.reason = ""
        return
    for each in found:
        _check_listed(each)
    if row.good is None:
        _take_list(row, found[0])
        if _take_shift(session, row, found[0]):
            return  # the next tick reads it
    action = _decide(row, found, steps, data)
    match action:
        case plan.Measure():
            orders.place(session, BisectionSource.name, _key(row, steps), watch=row.watch)
        case plan.ListSide():
            first, second = action.merge.parents
            level = action.line.row.level + 1
            lists.request(session, row, first, second, level=level, merge=action.merge.commit)
            row.reason = f"suspected is the merge {action.merge.commit[:12]}; its side branch is listed"
        case plan.Found():
            _end_found(session, row, action, steps)
        case plan.NoDifference():
            _end(session, row, *_no_difference(row, action))
        case plan.GivenUp():
            suspects.suspect(row, action.line)
            _end(session, row, BisectionState.NOT_CONFIRMED, action.reason)


def _check_listed(listed: CommitList) -> None:
    if listed.outcome is not Outcome.PASSED:
        failure = listed.failure
        what = "the commits could not be listed" if failure is None else failure.summary
        raise Stop(what + (f". {failure.advice}" if failure is not None and failure.advice else ""))


def _take_list(row: Bisection, listed: CommitList) -> None:
    assert listed.result is not None  # noqa: S101 - it has passed
    row.good, row.bad, row.ref = listed.result.good, listed.result.bad, listed.result.ref
    row.commits = len(listed.result.commits)


def _take_shift(session: Session, row: Bisection, listed: CommitList) -> bool:
    """Take the paired run that has confirmed the shift of a bisection as the measurement of its ends."""
    shift = session.scalars(
        select(HistoryShift)
        .where(HistoryShift.bisection_id == row.id, HistoryShift.submission_id.is_not(None))
        .order_by(HistoryShift.id)
        .limit(1)
    ).first()
    if shift is None or shift.submission_id is None or row.good is None or row.bad is None:
        return False
    heads = [session.get_one(WatchedHead, id_).commit for id_ in (shift.before_id, shift.after_id)]
    if heads != [row.good, row.bad]:
        return False
    session.add(
        BisectionStep(
            bisection_id=row.id, list_id=listed.id, kind=Kind.ENDS, state=State.RUNNING, first=1,
            last=row.commits or 1, baseline=row.good, candidate=row.bad, blocks=row.request.blocks,
            submission_id=shift.submission_id,
        )
    )  # fmt: skip
    row.state = BisectionState.ENDS
    return True


# --- the culprit ------------------------------------------------------------------------------------------------


def _end_found(session: Session, row: Bisection, found: plan.Found, steps: Sequence[BisectionStep]) -> None:
    suspects.suspect(row, found.line, found.first, found.last)
    row.culprit_effect = found.shown.effect
    row.culprit_ci_low, row.culprit_ci_high = found.shown.ci_low, found.shown.ci_high
    state = BisectionState.FOUND if found.first == found.last else BisectionState.RANGE
    _end(session, row, state, _range_text(found))
    ends = next(each for each in steps if each.kind is Kind.ENDS and each.differs)
    announce_culprit(session, row, ends, found.shown)


def _range_text(found: plan.Found) -> str:
    count = found.last - found.first
    if not count:
        return ""
    return f"one of {count + 1} commits: the {count} before the last cannot be measured"


def _no_difference(row: Bisection, action: plan.NoDifference) -> tuple[BisectionState, str]:
    ends = action.ends
    if ends.reason:
        return BisectionState.NO_DIFFERENCE, ends.reason
    if row.request.failure:
        return (
            BisectionState.NO_DIFFERENCE,
            f"the bad commit passed in all of its {ends.passed} boots; --blocks makes more",
        )
    reason = f"good and bad do not differ significantly in {len(ends.differences)} blocks; --blocks measures more"
    return BisectionState.NO_DIFFERENCE, reason
