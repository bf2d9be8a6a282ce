"""When an order is submitted, waits or stops, whatever its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import time

import pytest
from sqlalchemy import select

from wqlab_contracts.api.queue import QueueView
from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import ErrorKind, OrderState, Outcome, SubmissionState
from wqlab_contracts.messages import Target
from wqlab_contracts.specs import TreeWatch
from wqlab_contracts.specs.watches import QuietHours
from wqlab_server.models import Order, Submission, Watch
from wqlab_server.orders import orders
from wqlab_server.orders.source import Context, Proposal, Source, Stop, lab_failure
from wqlab_server.sources import SOURCES
from wqlab_server.wait import Wait

from ..support.lab import SERIES, LabUnderTest, failed

pytestmark = pytest.mark.integration

ALWAYS = [QuietHours(begins=time(0), ends=time(12)), QuietHours(begins=time(12), ends=time(0))]


def proposal(target: str = "locks@single", tree: str = "lab-tree", owner: str = "dev") -> Proposal:
    plan, _, device_type = target.partition("@")
    wanted = SubmissionRequest(series=SERIES, tree=tree, targets=[Target(plan=plan, device_type=device_type)])
    return Proposal(wanted, owner)


def watch(minutes_a_day: int = 240, quiet_hours: Sequence[QuietHours] = ()) -> TreeWatch:
    return TreeWatch(
        kind="tree", name="toys", tree="lab-tree", branches=["main"], targets=["locks@single"], owner="dev",
        minutes_a_day=minutes_a_day, quiet_hours=list(quiet_hours),
    )  # fmt: skip


@dataclass
class Toy(Source):
    """A source with one order a key, which says what a test wants it to say."""

    answer: Proposal | Exception = field(default_factory=proposal)
    watch: TreeWatch = field(default_factory=watch)
    wanted: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    name = "toy"
    tries = 2

    def items(self, context: Context) -> Sequence[str]:
        return self.wanted

    def find(self, context: Context, item: int | str) -> None:
        spec = self.watch
        if context.session.get(Watch, spec.name) is None:
            context.session.add(Watch(name=spec.name, spec=spec, from_file=False, created_by="dev", changed_by="dev"))
            context.session.flush()
        context.session.get_one(Watch, spec.name).spec = spec
        orders.place(context.session, self.name, item, watch=spec.name)

    def propose(self, context: Context, order: Order) -> Proposal:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def submitted(self, context: Context, order: Order, submission: Submission) -> None:
        self.heard.append("submitted")

    def waits(self, context: Context, order: Order, reason: Exception) -> None:
        self.heard.append("waits")

    def stopped(self, context: Context, order: Order, stop: Stop) -> None:
        self.heard.append("stopped")

    def conclude(self, context: Context, order: Order, submission: Submission) -> str:
        self.heard.append("concluded")
        return lab_failure(submission)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Toy:
    source = Toy()
    monkeypatch.setitem(SOURCES, source.name, source)
    return source


def order(lab: LabUnderTest, key: str) -> Order:
    with lab.transaction() as session:
        found = orders.find(session, "toy", key)
        assert found is not None
        return found


OBSTACLES = [
    (Wait("the moon is full"), watch(), OrderState.WAITING, "the moon is full"),
    (Stop("nobody wants it"), watch(), OrderState.STOPPED, "nobody wants it"),
    (proposal(), watch(quiet_hours=ALWAYS), OrderState.WAITING, "quiet hours"),
    (proposal(), watch(minutes_a_day=1), OrderState.STOPPED, "watch toys has 1 a day; raise minutes_a_day"),
    (proposal(owner="nobody"), watch(), OrderState.WAITING, "no account 'nobody'"),
    (proposal(tree="gone"), watch(), OrderState.WAITING, "the lab has no tree gone any more"),
    (proposal(target="nothing@single"), watch(), OrderState.STOPPED, "nothing"),
    (proposal(), watch(), OrderState.SUBMITTED, ""),
]


def test_what_prevents_a_submission_is_recorded_and_tried_again_or_not(lab: LabUnderTest, toy: Toy) -> None:
    for number, (answer, spec, state, reason) in enumerate(OBSTACLES):
        toy.answer, toy.watch, toy.wanted, toy.heard = answer, spec, [str(number)], []
        lab.tick()
        found = order(lab, str(number))
        assert (found.state, reason in found.reason) == (state, True), (answer, found.reason)
        assert toy.heard == [{"waiting": "waits"}.get(state, state.value)]
        lab.sql("UPDATE orders SET due_at = now() + interval '1 hour' WHERE state = 'waiting'")
    with lab.transaction() as session:
        assert len(session.scalars(select(Submission)).all()) == 1
    assert lab.tick_errors() == {}


def test_queue_lists_orders_that_wait(lab: LabUnderTest, toy: Toy) -> None:
    toy.wanted, toy.answer = ["7"], Wait("the moon is full")
    lab.tick()
    answer = lab.client.get("/api/v1/queue", headers={"Authorization": f"Bearer {lab.token}"})
    (shown,) = QueueView.model_validate_json(answer.content).orders
    assert (shown.source, shown.key, shown.watch, shown.reason) == ("toy", "7", "toys", "the moon is full")
    assert shown.retry_at == order(lab, "7").due_at


def test_order_waits_until_the_operator_has_corrected_a_mistake(lab: LabUnderTest, toy: Toy) -> None:
    toy.mistakes, toy.wanted, toy.answer = ErrorKind.INFRASTRUCTURE, ["1"], proposal(target="nothing@single")
    lab.tick()
    assert order(lab, "1").state is OrderState.WAITING
    toy.answer = proposal()
    lab.tick()  # after a pause only
    assert order(lab, "1").state is OrderState.WAITING
    lab.sql("UPDATE orders SET due_at = now()")
    lab.tick()
    assert order(lab, "1").state is OrderState.SUBMITTED


def test_budget_counts_what_all_of_its_orders_started_in_a_day(lab: LabUnderTest, toy: Toy) -> None:
    toy.wanted, toy.watch = ["1"], watch(minutes_a_day=100)
    lab.tick()
    lab.sql("UPDATE orders SET quoted_s = 6000")
    toy.wanted = ["2"]
    lab.tick()
    assert "100 of 100 a day are used; some is left again at" in order(lab, "2").reason
    lab.sql("UPDATE orders SET submitted_at = submitted_at - interval '25 hours', due_at = now()")
    lab.tick()
    assert order(lab, "2").state is OrderState.SUBMITTED


def test_lab_failure_is_submitted_again_after_a_pause_and_then_given_up(lab: LabUnderTest, toy: Toy) -> None:
    toy.wanted = ["1"]
    lab.tick()
    for tries in (1, 2):
        number = order(lab, "1").submission_id
        with lab.transaction() as session:
            submission = session.get_one(Submission, number)
            submission.state, submission.outcome = SubmissionState.FINISHED, Outcome.FAILED
            submission.failure = failed(ErrorKind.INFRASTRUCTURE, "the outlet is dead")
        lab.tick()
        found = order(lab, "1")
        assert (found.state, found.tries) == (OrderState.STOPPED if tries == 2 else OrderState.WAITING, tries)
        assert "the outlet is dead" in found.reason
        lab.tick()  # not due yet
        assert order(lab, "1").submission_id == number
        lab.sql("UPDATE orders SET due_at = now()")
        lab.tick()
    assert toy.heard == ["submitted", "concluded", "waits", "submitted", "concluded", "stopped"]


def test_withdrawn_order_can_be_placed_again(lab: LabUnderTest, toy: Toy) -> None:
    toy.wanted, toy.watch = ["1"], watch(quiet_hours=ALWAYS)
    lab.tick()
    with lab.transaction() as session:
        orders.place_instead(session, "toy", [], watch="toys", reason="not wanted")
        assert orders.find(session, "toy", "1").state is OrderState.WITHDRAWN  # type: ignore[union-attr]
    toy.watch = watch()
    lab.tick()
    assert order(lab, "1").state is OrderState.SUBMITTED
