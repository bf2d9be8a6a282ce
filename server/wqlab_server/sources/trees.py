"""Source: new heads of watched trees."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_contracts.enums import ErrorKind, Outcome, RunPurpose, Verdict, WatchedHeadState
from wqlab_contracts.messages import CommitPair, Failure
from wqlab_contracts.specs import Batch, TreeWatch

from ..intake import head_lines, watched_trees, watches
from ..models import Apply, Order, Run, Submission, Watch, WatchedHead
from ..orders import orders
from ..orders.source import Context, Proposal, Source, Stop, lab_failure
from ..storage.db import clock
from ..wait import Wait
from .commit_pairs import lock_tree, propose_pair, usable_devices

_DIFFERENT = frozenset({Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.FAILED})


class TreeSource(Source):
    """New heads of branches and tags; each is compared with the last one that was measured. Keys are ids of heads."""

    name = watches.TREE_SOURCE
    tries = 3
    mistakes = ErrorKind.INFRASTRUCTURE

    def items(self, context: Context) -> Sequence[str]:
        enabled = context.session.scalars(select(Watch).where(Watch.enabled_at.is_not(None)).order_by(Watch.name))
        return [watch.name for watch in enabled if isinstance(watch.spec, TreeWatch)]

    def find(self, context: Context, item: int | str) -> None:
        """Look for heads if that is due, skip those that the branch has left, and order the next one of each line."""
        session, now = context.session, clock(context.session)
        watch = session.get_one(Watch, item, with_for_update=True)
        if watch.enabled_at is None:
            return
        spec = watch.tree_spec
        watched_trees.look(session, watch, context.data)
        chosen = []
        for heads in watched_trees.lines_of(session, watch.name).values():
            for head in head_lines.left_behind(heads, spec.batch):
                last = head_lines.last_seen(heads)
                head_lines.skip(head, last, f"the branch went back to {last.commit[:12]} before it was measured", now)
            choice = head_lines.choose(heads, spec.batch)
            chosen += [choice.head.id] if choice is not None else []
        orders.place_instead(session, self.name, chosen, watch=watch.name, reason="another head is measured first")

    def propose(self, context: Context, order: Order) -> Proposal:
        head = context.session.get_one(WatchedHead, int(order.key))
        spec = lock_tree(context.session, head.watch)
        choice = _choice(context.session, spec, head)
        pair = CommitPair(baseline=choice.parent.commit, candidate=head.commit, ref=head.name)
        return propose_pair(context, spec, pair, spec.targets, choice.parent.devices)

    def submitted(self, context: Context, order: Order, submission: Submission) -> None:
        session, now = context.session, clock(context.session)
        head = session.get_one(WatchedHead, int(order.key))
        choice = _choice(session, session.get_one(Watch, head.watch).tree_spec, head)
        _, cut = usable_devices(session, choice.parent.devices, context.data)
        head.state, head.submission_id, head.parent_id = WatchedHeadState.RUNNING, submission.id, choice.parent.id
        head.reason, head.cut, head.submitted_at = "", cut, now
        for other in choice.passed_over:
            head_lines.skip(other, head, f"{head.commit[:12]} was seen before it could be measured", now)

    def conclude(self, context: Context, order: Order, submission: Submission) -> str:
        session = context.session
        head = session.get_one(WatchedHead, int(order.key))
        spec = session.get_one(Watch, head.watch, with_for_update=True).tree_spec
        apply = session.scalars(select(Apply).where(Apply.submission_id == submission.id)).one()
        measured = select(Run).where(Run.submission_id == submission.id, Run.purpose == RunPurpose.MEASURE)
        runs = session.scalars(measured.order_by(Run.target)).all()
        head.related = apply.result.range if apply.result is not None else None
        head.verdicts = sorted({run.verdict for run in runs if run.verdict is not None and not run.plan.is_modelled})
        failure = submission.failure
        if submission.outcome is Outcome.PASSED:
            _take_measurement(session, spec, head, runs)
        elif reason := lab_failure(submission):
            head.state, head.reason = WatchedHeadState.WAITING, f"{reason}; it is tried again"
            return reason
        else:
            what = failure.summary if failure is not None else str(submission.outcome)
            head.state, head.reason = WatchedHeadState.FAILED, f"submission {submission.id}: {what}"
            head.ranged = _differs(spec, head, failure)
        head.ended_at = clock(session)
        return ""

    def stopped(self, context: Context, order: Order, stop: Stop) -> None:
        head = context.session.get_one(WatchedHead, int(order.key))
        head.state, head.reason, head.ended_at = WatchedHeadState.FAILED, str(stop), clock(context.session)


def _choice(session: Session, spec: TreeWatch, head: WatchedHead) -> head_lines.Choice:
    """Return what the head is compared with. Raises Wait if another head of its line is measured first."""
    choice = head_lines.choose(watched_trees.lines_of(session, head.watch)[head.ref], spec.batch)
    if choice is None or choice.head is not head:
        raise Wait("another head is measured first")
    return choice


def _take_measurement(session: Session, spec: TreeWatch, head: WatchedHead, runs: Sequence[Run]) -> None:
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


def _differs(spec: TreeWatch, head: WatchedHead, failure: Failure | None) -> bool:
    """Return True if the commits since the parent are a range to bisect."""
    broken = failure is not None and failure.kind in {ErrorKind.KERNEL, ErrorKind.USER}
    return spec.batch is Batch.RANGE and (broken or bool(_DIFFERENT & set(head.verdicts)))
