"""Submissions that a tick leaves out must have nothing to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import ErrorKind, Outcome, SubmissionState
from wqlab_contracts.messages import BuildResult
from wqlab_server.models import Apply, Build, Run, Submission
from wqlab_server.pipeline.advance import advance
from wqlab_server.pipeline.due import due_submissions

from ..support.lab import LabUnderTest, failed

pytestmark = pytest.mark.integration


def states(lab: LabUnderTest) -> list[tuple[object, ...]]:
    with lab.transaction() as session:
        return [
            tuple(row)
            for table in (Submission, Apply, Build, Run)
            for row in session.execute(select(table.id, table.state, table.outcome).order_by(table.id))
        ]


def left_out(lab: LabUnderTest) -> set[int]:
    with lab.transaction() as session:
        unfinished = select(Submission.id).where(Submission.state != SubmissionState.FINISHED)
        return set(session.scalars(unfinished)) - set(due_submissions(session))


def no_event(lab: LabUnderTest) -> None:
    pass


def every_build_fails(lab: LabUnderTest) -> None:
    def build(job: object, worker: object) -> BuildResult:
        return BuildResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.USER, "does not compile"))

    lab.worker.on_build = build


def one_submission_is_canceled(lab: LabUnderTest) -> None:
    lab.sql("UPDATE submissions SET cancel_requested_at = now() WHERE id = 1")


def every_device_is_quarantined(lab: LabUnderTest) -> None:
    lab.sql("UPDATE devices SET health = 'quarantined', health_reason = 'smoke'")


PROBLEMS = (every_build_fails, one_submission_is_canceled, every_device_is_quarantined)


@pytest.mark.parametrize(
    ("event", "at_step", "checked"),
    [
        (no_event, 0, True),
        (no_event, 0, False),
        (one_submission_is_canceled, 6, True),
        *(
            pytest.param(problem, step, step > 1, marks=pytest.mark.nightly)
            for problem in PROBLEMS
            for step in (1, 6)
            if (problem, step) != (one_submission_is_canceled, 6)
        ),
    ],
)
def test_submissions_that_are_not_due_have_nothing_to_do(
    lab: LabUnderTest, event: Callable[[LabUnderTest], None], at_step: int, checked: bool
) -> None:
    """`checked`: the devices are good from the beginning."""
    if checked:
        lab.mark_all_good()
    for targets in (("locks@device",), ("affinity@device", "locks@single"), ("affinity@single",)):
        lab.submit(*targets)
    seen = 0
    for step in range(300):
        if step == at_step:
            event(lab)
        before = states(lab)
        for submission_id in left_out(lab):
            advance(lab.sessions, lab.settings, submission_id)
            assert states(lab) == before
            seen += 1
        if not lab.sent:
            lab.tick()
        if not lab.sent:
            break
        lab.handle(lab.sent.pop(0))
    assert seen, "no submission was ever left out"
    with lab.transaction() as session:
        assert set(session.scalars(select(Submission.state))) == {SubmissionState.FINISHED}
