"""Source: heads of pull requests and branches on forges, whose `.wqlab.yaml` a worker has read."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import ErrorKind, HeadDecision, JobState, Outcome
from wqlab_contracts.messages import Failure
from wqlab_contracts.specs import Forge

from ..intake.forges import heads
from ..intake.proposals import proposer
from ..models import FORGE_SOURCE, ForgeChange, ForgeHead, HeadReading, Order, Submission
from ..orders import orders
from ..orders.source import Context, Proposal, Source, Stop
from ..outbox import forge_messages
from ..submissions import service as submissions
from ..wait import Wait


class ForgeSource(Source):
    """Heads that were read. Keys are ids of heads."""

    name = FORGE_SOURCE

    def items(self, context: Context) -> Sequence[int]:
        read = (
            select(ForgeHead.id)
            .join(ForgeHead.reading)
            .where(
                ForgeHead.decision.in_([HeadDecision.OPEN, HeadDecision.WAITS]),
                ForgeHead.withdrawn_at.is_(None),
                HeadReading.state == JobState.FINISHED,
                orders.not_ordered(self.name, ForgeHead.id),
            )
        )
        return context.session.scalars(read.order_by(ForgeHead.id)).all()

    def find(self, context: Context, item: int | str) -> None:
        """Order a head, or store the reason why it is not measured."""
        session = context.session
        head = heads.lock(session, int(item))
        change, forge = _origin(context, head)
        if forge is None:
            return  # until the operator lists it again
        assert head.reading is not None  # noqa: S101 - `items` has seen it finished
        if head.reading.result is None or head.reading.outcome is not Outcome.PASSED:
            failure = head.reading.failure
            kind = ErrorKind.INFRASTRUCTURE if failure is None else failure.kind
            head.decide(HeadDecision.WRONG if kind is ErrorKind.USER else HeadDecision.FAILED, _reason(failure))
            return
        wanted = _request(context, head, change, forge)
        if not isinstance(wanted, heads.NotMeasured):
            orders.place(session, self.name, head.id)
            return
        decision, context_of = wanted.decision, forge_messages.context_of(change)
        if decision is HeadDecision.SILENT and forge_messages.has_status(session, forge.name, head.head, context_of):
            decision = HeadDecision.NOTHING  # that it waited for a label must not be its last status
        head.decide(decision, wanted.reason)

    def propose(self, context: Context, order: Order) -> Proposal:
        head = heads.lock(context.session, int(order.key))
        change, forge = _origin(context, head)
        if head.withdrawn_at is not None:
            raise Stop(head.reason)
        if forge is None:
            raise Wait(f"the lab has no forge {change.forge} any more")
        wanted = _request(context, head, change, forge)
        if isinstance(wanted, heads.NotMeasured):
            raise Stop(wanted.reason)
        return Proposal(wanted, forge.owner, limited=True, on_behalf=True)

    def submitted(self, context: Context, order: Order, submission: Submission) -> None:
        head = heads.lock(context.session, int(order.key))
        change = context.session.get_one(ForgeChange, head.change_id)
        forge = next(each for each in context.data.forges if each.name == change.forge)
        submission.title = submissions.truncate(_title(forge, change))
        submission.series_key = submissions.truncate(f"{forge.name} {change.key}")
        head.decide(HeadDecision.SUBMITTED, "")

    def waits(self, context: Context, order: Order, reason: Exception) -> None:
        head = heads.lock(context.session, int(order.key))
        if head.reason != f"waits: {reason}":
            head.decide(HeadDecision.WAITS, f"waits: {reason}")

    def stopped(self, context: Context, order: Order, stop: Stop) -> None:
        head = heads.lock(context.session, int(order.key))
        if head.withdrawn_at is None:
            head.decide(HeadDecision.WRONG, f".wqlab.yaml: {stop}")


def _origin(context: Context, head: ForgeHead) -> tuple[ForgeChange, Forge | None]:
    change = context.session.get_one(ForgeChange, head.change_id)
    return change, next((each for each in context.data.forges if each.name == change.forge), None)


def _request(
    context: Context, head: ForgeHead, change: ForgeChange, forge: Forge
) -> SubmissionRequest | heads.NotMeasured:
    assert head.reading is not None and head.reading.result is not None  # noqa: S101 - it was read
    propose = proposer(context.session, context.settings, context.data)
    return heads.request_of(forge, change, head, head.reading.result, propose)


def _reason(failure: Failure | None) -> str:
    return "the lab could not read the commit" if failure is None else failure.summary


def _title(forge: Forge, change: ForgeChange) -> str:
    if change.number is None:
        return f"{change.branch} of {forge.repository}"
    return f"{change.title or 'pull request'} ({forge.repository} {change.number})"
