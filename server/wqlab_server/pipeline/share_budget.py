"""Share the budget of a submission among its runs that wait after a look."""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from sqlalchemy.orm import Session

from wqlab_comparison.budget import RunBlocks, share_out
from wqlab_contracts.celery_names import SERVER_QUEUE, TICK
from wqlab_contracts.enums import JobState, Outcome, RunPurpose
from wqlab_contracts.messages.looks import LookReason, LookRecord

from ..lab import lease
from ..models import Run, Submission
from ..runs.service import completed_blocks
from ..storage.db import Message, post
from ..storage.events import emit_run_state

log = structlog.get_logger(__name__)


def held_after(record: LookRecord, run: Run, submission: Submission) -> LookRecord:
    """Return the look with which the run waits for a share of the budget, if it needs one to go on.

    Every run gets the blocks up to the first look of the request.
    """
    looks, budget = submission.request.looks, submission.request.budget
    if record.stops or budget is None or not looks or record.blocks < looks[0]:
        return record
    return record.model_copy(update={"reason": LookReason.HELD})


def share_budget(session: Session, submission: Submission, runs: Sequence[Run]) -> None:
    """Let waiting runs go on, or end, as the budget allows.

    The caller holds the row locks of the submission and of `runs`, which are all runs of the submission.
    """
    budget = submission.request.budget
    measured = {run.id: run for run in runs if run.purpose is RunPurpose.MEASURE}
    if budget is None or not any(_waits(run) for run in measured.values()):
        return
    first = (submission.request.looks or [0])[0]
    shares = share_out(budget, {key: _blocks_of(session, run, first) for key, run in measured.items()})
    for key, share in shares.items():
        run = measured[key]
        last = run.looked[-1]
        if share.granted:
            record = last.model_copy(update={"reason": LookReason.OPEN, "share": share.text})
        else:
            text = f"{last.text}, and {share.text}"
            record = last.model_copy(update={"reason": LookReason.BUDGET, "text": text, "share": share.text})
        run.looked = [*run.looked[:-1], record]
        log.info("budget_shared", submission=submission.id, run=key, granted=share.granted, share=share.text)
        if share.granted:
            emit_run_state(session, run, look=record.model_dump(mode="json"))
        else:
            lease.finish_unclaimed(session, run, Outcome.PASSED, None)
    if any(share.granted for share in shares.values()):
        session.flush()
        post(session, Message(TICK, None, SERVER_QUEUE))


def _waits(run: Run) -> bool:
    held = bool(run.looked) and run.looked[-1].reason is LookReason.HELD
    return held and run.state is JobState.QUEUED and run.cancel_requested_at is None


def _blocks_of(session: Session, run: Run, first: int) -> RunBlocks:
    if run.state is JobState.FINISHED:
        completed = len(completed_blocks(session, run.id))  # blocks may differ in their number of boots
        return RunBlocks(completed, last_look=completed)
    if _waits(run):
        last = run.looked[-1]
        return RunBlocks(last.blocks, run.blocks_due, len(run.blocks), last.expected_decisions)
    return RunBlocks(max(run.blocks_due, min(first, len(run.blocks))), last_look=len(run.blocks))
