"""Rows of a bisection as the pipeline writes them: eight commits, of which the fifth is the culprit."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy.orm import Session

from wqlab_contracts.api.bisections import BisectionRequest
from wqlab_contracts.enums import BisectionState, JobState, Outcome, Scale
from wqlab_contracts.enums import BisectionStepKind as Kind
from wqlab_contracts.enums import BisectionStepState as StepState
from wqlab_contracts.messages.commit_lists import CommitListJob, CommitListResult, ListedCommit
from wqlab_contracts.specs import Tree
from wqlab_server.models import Bisection, BisectionStep, CommitList

START = datetime(2026, 11, 1, tzinfo=UTC)
COMMITS, CULPRIT, BROKEN = 8, 5, 3
REQUEST = BisectionRequest(
    tree="lab-tree", good="v1", bad="for-next", plan="locks", device_type="device", scenario="flush", setting="",
    metric="locks_per_flush", blocks=2,
)  # fmt: skip


def oid(at: int) -> str:
    """Return the commit at a position; 0 is the good one."""
    return f"{at:02x}" * 20


def add_bisection(session: Session, submission_id: int, owner: str = "dev") -> int:
    """Add a bisection that has found its commit, all in one submission; return its id."""
    commits = [
        ListedCommit(commit=oid(at), parents=[oid(at - 1)], subject=f"change {at}", author="Ada <a@b.c>")
        for at in range(1, COMMITS + 1)
    ]
    culprit = commits[CULPRIT - 1]
    row = Bisection(
        request=REQUEST, repository=Tree(name="lab-tree", summary="s", url="https://example.org/linux.git"),
        owner=owner, limited=False, state=BisectionState.FOUND, good=oid(0), bad=commits[-1].commit,
        ref="for-next", commits=COMMITS, scale=Scale.DIFFERENCE, unit="locks", effect=6.0, first=culprit.commit,
        culprit=culprit.commit, culprit_subject=culprit.subject, culprit_author=culprit.author, probability=0.99,
        culprit_effect=6.0, device="device-1", boots=10, plain_boots=12, created_at=START, ended_at=START,
    )  # fmt: skip
    session.add(row)
    session.flush()
    result = CommitListResult(outcome=Outcome.PASSED, good=row.good, bad=row.bad, ref="for-next", commits=commits)
    listed = CommitList(
        bisection_id=row.id, level=0, payload=CommitListJob(tree=row.repository, good="v1", bad="for-next"),
        state=JobState.FINISHED, outcome=Outcome.PASSED, result=result,
    )  # fmt: skip
    session.add(listed)
    session.flush()
    steps = [(Kind.ENDS, COMMITS), *((Kind.PROBE, at) for at in (4, 6, BROKEN, 5, 4)), (Kind.CONFIRM, CULPRIT)]
    for kind, at in steps:
        broken, value = at == BROKEN, 6.0 if at >= CULPRIT else 0.0
        session.add(
            BisectionStep(
                bisection_id=row.id, list_id=listed.id, kind=kind, first=at, last=at, blocks=2,
                state=StepState.UNUSABLE if broken else StepState.MEASURED, baseline=oid(0),
                candidate=oid(at), submission_id=submission_id, exact=True, differs=value > 0,
                differences=[] if broken else [value] * 2, effect=None if broken else value, boots=0 if broken else 4,
                reason=f"commit {oid(at)[:12]} does not build: error" if broken else "", submitted_at=START,
                ended_at=START,
            )
        )  # fmt: skip
        session.flush()
    return row.id
