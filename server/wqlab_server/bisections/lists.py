"""Commit lists: a worker lists the commits from good to bad, or in the side branch of a merge."""

from __future__ import annotations

from sqlalchemy import select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import APPLY_QUEUE, COMMIT_LIST, SERVER_QUEUE, TICK
from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.messages.commit_lists import CommitListJob, CommitListResult

from ..http.problems import ApiProblem, not_found
from ..jobs import claims, readings
from ..jobs.state import change_state
from ..models import Bisection, CommitList, WatchedHead, WatchedTree
from ..settings import Settings
from ..storage.db import Message, clock, post


def request(
    session: Session, bisection: Bisection, good: str, bad: str, *, level: int = 0, merge: str = ""
) -> CommitList:
    """Have a worker list the commits of `good..bad`. With `merge`, they are its first and second parent."""
    row = CommitList(bisection_id=bisection.id, level=level, merge=merge, good=good, bad=bad, state=JobState.WAITING)
    session.add(row)
    session.flush()
    change_state(row, JobState.QUEUED)
    claims.nudge(session, row, COMMIT_LIST, APPLY_QUEUE, clock(session))
    return row


def lock(session: Session, list_id: int) -> CommitList:
    """Lock and return a list. Raises ApiProblem 404."""
    row = session.scalar(
        select(CommitList).where(CommitList.id == list_id).with_for_update().execution_options(populate_existing=True)
    )
    if row is None:
        raise not_found("commit list", list_id)
    return row


# --- worker requests --------------------------------------------------------------------------------------------


def claim(
    session: Session, list_id: int, holder: str, settings: Settings, *, nonce: str | None
) -> tuple[CommitListJob, int]:
    """Claim a list and return the job and its fence. Raises NotClaimable if it is not queued, and ApiProblem 404."""
    row = lock(session, list_id)
    bisection = session.get_one(Bisection, row.bisection_id)
    fence = claims.take_once(session, row, holder, settings.claim_s, nonce)
    job = CommitListJob(
        tree=bisection.repository,
        good=row.good,
        bad=row.bad,
        ref=bisection.ref or bisection.request.ref,
        side_of_merge=bool(row.merge),
        seen=seen_commits(session, bisection.repository.name, [bisection.request.good, bisection.request.bad]),
    )
    return job, fence


def seen_commits(session: Session, tree: str, commits: list[str]) -> list[str]:
    """Return those of `commits` that the lab has seen as heads of a watched tree with the repository of `tree`."""
    found = session.scalars(
        select(WatchedHead.commit)
        .where(WatchedHead.commit.in_(commits))
        .join(WatchedTree, WatchedTree.name == WatchedHead.tree_name)
        .where(type_coerce(WatchedTree.spec, JSONB)["tree"].astext == tree)
    )
    return sorted(set(found))


def finish(session: Session, list_id: int, fence: int, result: CommitListResult, settings: Settings) -> None:
    """Store the result of a list. A failure of the lab is tried again. Repeating the request changes nothing.

    Raises StaleFence if `fence` is no longer that of the list, ApiProblem 404 if there is no such list, and 422 for an
    incomplete result.
    """
    if result.outcome is Outcome.PASSED and (result.good is None or result.bad is None or not result.ref):
        raise ApiProblem(422, "the result of a passed commit list needs both commits and the ref that has them")
    row = lock(session, list_id)
    canceled = row.cancel_requested_at is not None
    readings.finish(session, row, fence, result, settings, task=COMMIT_LIST, canceled=canceled)
    post(session, Message(TICK, None, SERVER_QUEUE))


def look_after(session: Session, list_id: int, settings: Settings) -> None:
    """Send the message of a queued list again if it is due; requeue or finish one whose worker has stopped."""
    row = lock(session, list_id)
    readings.look_after(session, row, settings, task=COMMIT_LIST, canceled=row.cancel_requested_at is not None)
