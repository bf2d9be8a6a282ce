"""Measure new heads of watched trees: make submissions, and record how they ended.

Each step is one transaction that holds the row of the tree, and a head is a row of its own, so that a restart or a
second server repeats a step without measuring a head twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import (
    AuditAction,
    ErrorKind,
    Outcome,
    RunPurpose,
    SubmissionState,
    Verdict,
    WatchedHeadState,
)
from wqlab_contracts.loading import DataError, DataFolder
from wqlab_contracts.messages import CommitPair, Failure
from wqlab_contracts.specs import Batch
from wqlab_contracts.specs import WatchedTree as Spec

from ..http.problems import ApiProblem
from ..intake import head_lines, watched_trees
from ..models import Apply, Run, Submission, WatchedHead, WatchedTree
from ..settings import Settings
from ..storage.audit import OPERATOR, record
from ..storage.db import SessionFactory, clock, transaction
from ..storage.live_data import LiveData
from ..wait import Wait
from .admission import submit_pair, text_of
from .tick_errors import isolate_errors

ATTEMPTS = 3
"""Submissions of a head that the lab fails to measure, before the head is given up."""
FIRST_RETRY = timedelta(minutes=15)
_DIFFERENT = frozenset({Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.FAILED})

log = structlog.get_logger(__name__)


def watch_trees(factory: SessionFactory, settings: Settings, data: LiveData) -> None:
    """Take in the watched trees of the data folder, and take every step that is possible for each one."""
    try:
        current = data.current()
    except DataError:
        return  # the tick logs it
    with isolate_errors(factory, "watched_trees", "file"), transaction(factory) as session:
        watched_trees.sync(session, current)
    with transaction(factory) as session:
        measuring = session.scalars(
            select(WatchedHead.tree_name).where(WatchedHead.state == WatchedHeadState.RUNNING).distinct()
        ).all()
        names = session.scalars(
            select(WatchedTree.name).where(WatchedTree.removed_at.is_(None)).order_by(WatchedTree.name)
        ).all()
    for name in sorted(measuring):  # also those that are removed
        with isolate_errors(factory, "watched_tree", name), transaction(factory) as session:
            conclude(session, session.get_one(WatchedTree, name, with_for_update=True))
    for name in names:
        with isolate_errors(factory, "watched_tree", name):
            _advance(factory, name, current, settings)


def _advance(factory: SessionFactory, name: str, data: DataFolder, settings: Settings) -> None:
    with transaction(factory) as session:
        tree = watched_trees.get(session, name, lock=True)
        if not tree.enabled:
            return
        watched_trees.look(session, tree, data)
        lines, told = watched_trees.waiting_lines(session, name), tree.waiting_for
    waiting_for = ""
    for ref in lines:
        # One transaction each: what prevents one submission rolls nothing else back.
        try:
            with transaction(factory) as session:
                submit(session, name, ref, data, settings)
        except Wait as wait:
            waiting_for = str(wait)
        except ApiProblem as problem:
            waiting_for = f"the submission is refused: {text_of(problem)}"
    if waiting_for != told:
        with transaction(factory) as session:
            watched_trees.get(session, name, lock=True).waiting_for = waiting_for


# --- submit -----------------------------------------------------------------------------------------------------


def submit(session: Session, name: str, ref: str, data: DataFolder, settings: Settings) -> None:
    """Submit the next head of a branch or pattern, if one can be. Raises Wait or ApiProblem if something prevents it.

    Heads that the branch has left are skipped; after an exception they are skipped with the next submission.
    """
    tree, now = watched_trees.get(session, name, lock=True), clock(session)
    if not tree.enabled:
        return
    heads = watched_trees.lines_of(session, name).get(ref, [])
    for head in head_lines.left_behind(heads, tree.spec.batch):
        last = head_lines.last_seen(heads)
        head_lines.skip(head, last, f"the branch went back to {last.commit[:12]} before it was measured", now)
    choice = head_lines.choose(heads, tree.spec.batch, now)
    if choice is None:
        return
    _submit_head(session, tree, choice, data, settings)


def _submit_head(
    session: Session, tree: WatchedTree, choice: head_lines.Choice, data: DataFolder, settings: Settings
) -> None:
    """Create the submission of a head. Raises Wait or ApiProblem if that is not possible now."""
    head, now = choice.head, clock(session)
    attempt = head.attempts + 1
    admitted = submit_pair(
        session,
        tree,
        CommitPair(baseline=choice.parent.commit, candidate=head.commit, ref=head.name),
        tree.spec.targets,
        measured_on=choice.parent.devices,
        key=f"watched-head:{head.id}:{attempt}",
        data=data,
        settings=settings,
    )
    made = admitted.submission
    head.state, head.submission_id, head.parent_id = WatchedHeadState.RUNNING, made.id, choice.parent.id
    head.reason, head.cut, head.attempts, head.due_at = "", admitted.cut, attempt, None
    head.submitted_at, head.quoted_s = now, (head.quoted_s or 0.0) + admitted.quoted_s
    for other in choice.passed_over:
        head_lines.skip(other, head, f"{head.commit[:12]} was seen before it could be measured", now)
    record(
        session, OPERATOR, AuditAction.CREATE_SUBMISSION, f"submission/{made.id}",
        watched_tree=tree.name, ref=head.ref, commit=head.commit,
    )  # fmt: skip
    log.info("watched_head_submitted", tree=tree.name, ref=head.ref, commit=head.commit, submission=made.id)


# --- conclude ---------------------------------------------------------------------------------------------------


def conclude(session: Session, tree: WatchedTree) -> None:
    """Record how the submissions of running heads ended."""
    found = session.execute(
        select(WatchedHead, Submission)
        .join(Submission, Submission.id == WatchedHead.submission_id)
        .where(
            WatchedHead.tree_name == tree.name,
            WatchedHead.state == WatchedHeadState.RUNNING,
            Submission.state == SubmissionState.FINISHED,
        )
    ).all()
    for head, submission in found:
        _conclude(session, tree, head, submission)


def _conclude(session: Session, tree: WatchedTree, head: WatchedHead, submission: Submission) -> None:
    now = clock(session)
    apply = session.scalars(select(Apply).where(Apply.submission_id == submission.id)).one()
    measured = select(Run).where(Run.submission_id == submission.id, Run.purpose == RunPurpose.MEASURE)
    runs = session.scalars(measured.order_by(Run.target)).all()
    head.related = apply.result.range if apply.result is not None else None
    head.verdicts = sorted({run.verdict for run in runs if run.verdict is not None})
    failure = submission.failure
    if submission.outcome is Outcome.PASSED:
        _measured(session, tree.spec, head, runs)
    elif failure is not None and failure.kind is ErrorKind.INFRASTRUCTURE and head.attempts < ATTEMPTS:
        head.state, head.due_at = WatchedHeadState.WAITING, now + FIRST_RETRY * 2 ** (head.attempts - 1)
        head.reason = f"the lab failed in submission {submission.id} ({failure.summary}); it is tried again"
        return
    else:
        head.state = WatchedHeadState.FAILED
        head.reason = _failure_text(submission, failure)
        head.ranged = _differs(tree.spec, head, failure)
    head.ended_at = now


def _measured(session: Session, spec: Spec, head: WatchedHead, runs: Sequence[Run]) -> None:
    head.state = WatchedHeadState.MEASURED
    parent = session.get_one(WatchedHead, head.parent_id)
    devices, cuts = dict(parent.devices), [head.cut] if head.cut else []
    for run in runs:
        target = f"{run.plan_name}@{run.device_type}"
        before = parent.devices.get(target)
        if run.device_name is None:
            continue  # the kernels are byte-identical, so that no device was needed
        devices[target] = run.device_name
        if before is not None and before != run.device_name:
            cuts.append(f"{target} was measured on {run.device_name} instead of {before}")
    head.devices = {target: name for target, name in devices.items() if target in spec.targets}
    head.cut = "; ".join(cuts)
    head.ranged = _differs(spec, head, None)
    if head.related is not None and head.related.behind:
        head.reason = (
            f"the branch was rewritten: {head.related.behind} commits of the head before are not in its history"
        )


def _differs(spec: Spec, head: WatchedHead, failure: Failure | None) -> bool:
    """Return True if the commits since the parent are a range to bisect."""
    broken = failure is not None and failure.kind in {ErrorKind.KERNEL, ErrorKind.USER}
    return spec.batch is Batch.RANGE and (broken or bool(_DIFFERENT & set(head.verdicts)))


def _failure_text(submission: Submission, failure: Failure | None) -> str:
    what = failure.summary if failure is not None else str(submission.outcome)
    return f"submission {submission.id}: {what}"
