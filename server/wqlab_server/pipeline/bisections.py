"""Advance bisections: list commits, submit the measurement that tells most, and record what it says.

Each step is one transaction that holds the row of the bisection, and what comes next is decided from the rows alone, so
that a restart or a second server repeats no step.
"""

from __future__ import annotations

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.api.bisections import OPEN_STATES
from wqlab_contracts.enums import BisectionState, JobState, Outcome, SubmissionState
from wqlab_contracts.enums import BisectionStepKind as Kind
from wqlab_contracts.enums import BisectionStepState as State
from wqlab_contracts.loading import DataError, DataFolder

from ..bisections import lists, plan, service, suspects
from ..http.problems import ApiProblem
from ..jobs import claims
from ..models import Bisection, BisectionStep, CommitList, HistoryShift, Run, Submission, WatchedHead
from ..settings import Settings
from ..storage.db import SessionFactory, clock, transaction
from ..storage.live_data import LiveData
from ..submissions import service as submissions
from ..wait import Wait
from .admission import text_of
from .culprits import announce_culprit
from .read_bisection_step import read_step
from .shift_bisections import open_bisections
from .submit_bisection_step import Stop, submit
from .tick_errors import isolate_errors

log = structlog.get_logger(__name__)


def advance_bisections(factory: SessionFactory, settings: Settings, data: LiveData) -> None:
    """Take every step that is possible for each bisection, after bisections of confirmed shifts were opened."""
    try:
        current = data.current()
    except DataError:
        return  # the tick logs it
    open_bisections(factory, current)
    with transaction(factory) as session:
        unfinished = session.scalars(
            select(Bisection.id).where(Bisection.state.in_(OPEN_STATES)).order_by(Bisection.id)
        ).all()
    for bisection_id in unfinished:
        with isolate_errors(factory, "bisection", bisection_id):
            _advance(factory, bisection_id, current, settings)


def _advance(factory: SessionFactory, bisection_id: int, data: DataFolder, settings: Settings) -> None:
    try:
        with transaction(factory) as session:
            row = service.get(session, bisection_id, lock=True)
            if row.state not in OPEN_STATES or not _take_results(session, row):
                return
        with transaction(factory) as session:
            _begin_next_step(session, service.get(session, bisection_id, lock=True), data, settings)
    except Stop as stop:
        _set(factory, bisection_id, str(stop), BisectionState.FAILED)
    except Wait as wait:
        _set(factory, bisection_id, f"waits: {wait}")
    except ApiProblem as problem:
        _set(factory, bisection_id, f"the submission is refused: {text_of(problem)}", BisectionState.FAILED)


def _set(factory: SessionFactory, bisection_id: int, reason: str, state: BisectionState | None = None) -> None:
    with transaction(factory) as session:
        row = service.get(session, bisection_id, lock=True)
        if row.state not in OPEN_STATES:
            return
        row.reason = reason
        if state is not None:
            _end(session, row, state, reason)


def _end(session: Session, row: Bisection, state: BisectionState, reason: str = "") -> None:
    row.state, row.reason, row.ended_at = state, reason, clock(session)
    log.info("bisection_ended", bisection=row.id, state=state, culprit=row.culprit)


# --- results ----------------------------------------------------------------------------------------------------


def _take_results(session: Session, row: Bisection) -> bool:
    """Read a step that is finished, and cancel what was asked to stop. Returns True if something can be begun now."""
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
        problem = read_step(session, row, step, submission)
        if step.kind is Kind.ENDS and step.state is State.MEASURED:
            _take_ends(session, row, step)
        session.flush()
        _summarise(session, row)
        if problem and row.cancel_requested_at is None:
            state = BisectionState.CANCELED if step.state is State.CANCELED else BisectionState.FAILED
            _end(session, row, state, problem)
            return False
    if row.cancel_requested_at is not None:
        _cancel_lists(session, row)
        _end(session, row, BisectionState.CANCELED)
        return False
    return True


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


def _begin_next_step(session: Session, row: Bisection, data: DataFolder, settings: Settings) -> None:
    """Begin the next step. Raises Wait, Stop or ApiProblem if that is not possible."""
    found, steps = _load(session, row)
    if any(each.state is not JobState.FINISHED for each in found):
        if row.reason.startswith("waits: "):
            row.reason = ""
        return
    for each in found:
        _check_listed(row, each)
    if row.good is None:
        _take_list(session, row, found[0])
        if _take_shift(session, row, found[0]):
            return  # the next tick reads it
    action = plan.decide(row.request, plan.lines_of(found, steps))
    match action:
        case plan.Measure():
            submit(session, row, action, steps=steps, data=data, settings=settings)
        case plan.ListSide():
            first, second = action.merge.parents
            level = action.line.row.level + 1
            lists.request(session, row, first, second, level=level, merge=action.merge.commit)
            row.reason = f"suspected is the merge {action.merge.commit[:12]}; its side branch is listed"
        case plan.Found():
            _take_culprit(row, action)
        case plan.NoDifference():
            _end(session, row, *_no_difference(row, action))
            return
        case plan.GivenUp():
            suspects.suspect(row, action.line)
            _end(session, row, BisectionState.NOT_CONFIRMED, action.reason)
            return
    if isinstance(action, plan.Found):
        state = BisectionState.FOUND if action.first == action.last else BisectionState.RANGE
        _end(session, row, state, _range_text(action))
        ends = next(each for each in steps if each.kind is Kind.ENDS and each.differs)
        announce_culprit(session, row, ends, action.shown)


def _check_listed(row: Bisection, listed: CommitList) -> None:
    if listed.outcome is not Outcome.PASSED:
        failure = listed.failure
        what = "the commits could not be listed" if failure is None else failure.summary
        raise Stop(what + (f". {failure.advice}" if failure is not None and failure.advice else ""))


def _take_list(session: Session, row: Bisection, listed: CommitList) -> None:
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


def _take_culprit(row: Bisection, found: plan.Found) -> None:
    suspects.suspect(row, found.line, found.first, found.last)
    row.culprit_effect = found.shown.effect
    row.culprit_ci_low, row.culprit_ci_high = found.shown.ci_low, found.shown.ci_high


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
