"""Commit lists: a worker lists the commits from good to bad, or in the side branch of a merge."""

from __future__ import annotations

from sqlalchemy.orm import Session

from wqlab_contracts.celery_names import SERVER_QUEUE, TICK
from wqlab_contracts.enums import Outcome
from wqlab_contracts.messages.commit_lists import CommitListJob, CommitListResult
from wqlab_contracts.messages.jobs import JobResult

from ..http.problems import ApiProblem
from ..jobs import claims
from ..jobs.kinds import Context, Kind
from ..jobs.seen_commits import seen_commits
from ..models import Bisection, CommitList
from ..storage.db import Message, post


class CommitListKind(Kind[CommitList]):
    """Lists of commits; the tick goes on with their bisection."""

    model = CommitList

    def check(self, context: Context, job: CommitList, result: JobResult) -> None:
        complete = isinstance(result, CommitListResult) and result.good and result.bad and result.ref
        if result.outcome is Outcome.PASSED and not complete:
            raise ApiProblem(422, "the result of a passed commit list needs both commits and the ref that has them")

    def ended(self, context: Context, job: CommitList) -> None:
        post(context.session, Message(TICK, None, SERVER_QUEUE))


def request(
    session: Session, bisection: Bisection, good: str, bad: str, *, level: int = 0, merge: str = ""
) -> CommitList:
    """Have a worker list the commits of `good..bad`. With `merge`, they are its first and second parent."""
    job = CommitListJob(
        tree=bisection.repository,
        good=good,
        bad=bad,
        ref=bisection.ref or bisection.request.ref,
        side_of_merge=bool(merge),
        seen=seen_commits(session, bisection.repository, [bisection.request.good, bisection.request.bad]),
    )
    row = CommitList(bisection_id=bisection.id, level=level, merge=merge, payload=job)
    claims.queue(session, row)
    return row
