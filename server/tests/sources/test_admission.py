"""When an order is submitted, waits or stops, whatever its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import time

import pytest
from sqlalchemy import select

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import ErrorKind, OrderState, Outcome, SubmissionState
from wqlab_contracts.messages import Target
from wqlab_contracts.specs.watches import QuietHours
from wqlab_server.models import Order, Submission
from wqlab_server.orders import orders
from wqlab_server.orders.source import Budget, Context, Proposal, Source, Stop, lab_failure
from wqlab_server.sources import SOURCES
from wqlab_server.wait import Wait

from ..support.lab import SERIES, LabUnderTest, failed

pytestmark = pytest.mark.integration

ALWAYS = [QuietHours(begins=time(0), ends=time(12)), QuietHours(begins=time(12), ends=time(0))]


def proposal(
    target: str = "locks@single",
    tree: str = "lab-tree",
    owner: str = "dev",
    minutes_a_day: int = 240,
    quiet_hours: Sequence[QuietHours] = (),
) -> Proposal:
    plan, _, device_type = target.partition("@")
    wanted = SubmissionRequest(series=SERIES, tree=tree, targets=[Target(plan=plan, device_type=device_type)])
    return Proposal(wanted, owner, Budget("toy budget", minutes_a_day, quiet_hours))


@dataclass
class Toy(Source):
    """A source with one order a key, which says what a test wants it to say."""

    answer: Proposal | Exception = field(default_factory=proposal)
    wanted: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    name = "toy"
    tries = 2

    def items(self, context: Context) -> Sequence[str]:
        return self.wanted

    def find(self, context: Context, item: int | str) -> None:
        orders.place(context.session, self.name, item)

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
    (Wait("the moon is full"), OrderState.WAITING, "the moon is full"),
    (Stop("nobody wants it"), OrderState.STOPPED, "nobody wants it"),
    (proposal(quiet_hours=ALWAYS), OrderState.WAITING, "quiet hours"),
    (proposal(minutes_a_day=1), OrderState.STOPPED, "toy budget has 1 a day; raise minutes_a_day"),
    (proposal(owner="nobody"), OrderState.WAITING, "no account 'nobody'"),
    (proposal(tree="gone"), OrderState.WAITING, "the lab has no tree gone any more"),
    (proposal(target="nothing@single"), OrderState.STOPPED, "nothing"),
    (proposal(), OrderState.SUBMITTED, ""),
]


def test_what_prevents_a_submission_is_recorded_and_tried_again_or_not(lab: LabUnderTest, toy: Toy) -> None:
    for number, (answer, state, reason) in enumerate(OBSTACLES):
        toy.answer, toy.wanted, toy.heard = answer, [str(number)], []
        lab.tick()
        found = order(lab, str(number))
        assert (found.state, reason in found.reason) == (state, True), (answer, found.reason)
        assert toy.heard == [{"waiting": "waits"}.get(state, state.value)]
        lab.sql("UPDATE orders SET due_at = now() + interval '1 hour' WHERE state = 'waiting'")
    with lab.transaction() as session:
        assert len(session.scalars(select(Submission)).all()) == 1
    assert lab.tick_errors() == {}


def test_patient_source_waits_until_a_refused_order_is_possible(lab: LabUnderTest, toy: Toy) -> None:
    toy.patient, toy.wanted, toy.answer = True, ["1"], proposal(target="nothing@single")
    lab.tick()
    assert order(lab, "1").state is OrderState.WAITING
    toy.answer = proposal()
    lab.tick()  # after a pause only
    assert order(lab, "1").state is OrderState.WAITING
    lab.sql("UPDATE orders SET due_at = now()")
    lab.tick()
    assert order(lab, "1").state is OrderState.SUBMITTED


def test_budget_counts_what_all_of_its_orders_started_in_a_day(lab: LabUnderTest, toy: Toy) -> None:
    toy.wanted, toy.answer = ["1"], proposal(minutes_a_day=100)
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
    toy.wanted, toy.answer = ["1"], proposal(quiet_hours=ALWAYS)
    lab.tick()
    with lab.transaction() as session:
        orders.withdraw_others(session, "toy", "", [], "not wanted")
        assert orders.find(session, "toy", "1").state is OrderState.WITHDRAWN  # type: ignore[union-attr]
    toy.answer = proposal()
    lab.tick()
    assert order(lab, "1").state is OrderState.SUBMITTED
