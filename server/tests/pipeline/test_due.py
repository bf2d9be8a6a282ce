"""A tick passes over submissions that wait; what it passes over must have nothing to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import ErrorKind, Outcome, SubmissionState
from wqlab_contracts.messages import BuildResult
from wqlab_server.models import Apply, Build, Run, Submission
from wqlab_server.pipeline import advance as pipeline
from wqlab_server.pipeline.due import due

from ..support.lab import LabUnderTest, failed

pytestmark = pytest.mark.integration


def states(lab: LabUnderTest) -> list[tuple[object, ...]]:
    with lab.transaction() as session:
        return [
            tuple(row)
            for table in (Submission, Apply, Build, Run)
            for row in session.execute(select(table.id, table.state, table.outcome).order_by(table.id))
        ]


def passed_over(lab: LabUnderTest) -> set[int]:
    with lab.transaction() as session:
        unfinished = select(Submission.id).where(Submission.state != SubmissionState.FINISHED)
        return set(session.scalars(unfinished)) - set(due(session))


def all_goes_well(lab: LabUnderTest) -> None:
    pass


def no_candidate_compiles(lab: LabUnderTest) -> None:
    def build(job: object, worker: object) -> BuildResult:
        return BuildResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.USER, "does not compile"))

    lab.worker.on_build = build


def one_is_canceled(lab: LabUnderTest) -> None:
    lab.sql("UPDATE submissions SET cancel_requested_at = now() WHERE id = 1")


def every_unit_is_quarantined(lab: LabUnderTest) -> None:
    lab.sql("UPDATE devices SET health = 'quarantined', health_reason = 'smoke'")


TROUBLES = (no_candidate_compiles, one_is_canceled, every_unit_is_quarantined)


@pytest.mark.parametrize(
    ("happens", "after"), [(all_goes_well, 0), *((trouble, step) for trouble in TROUBLES for step in (1, 6))]
)
@pytest.mark.parametrize("checked", [True, False])
def test_what_is_passed_over_has_nothing_to_do(
    lab: LabUnderTest, happens: Callable[[LabUnderTest], None], after: int, checked: bool
) -> None:
    """`checked`: the devices have come through a health check before."""
    if checked:
        lab.all_good()
    for targets in (("locks@device",), ("affinity@device", "locks@single"), ("affinity@single",)):
        lab.submit(*targets)
    seen = 0
    for step in range(300):
        if step == after:
            happens(lab)
        before = states(lab)
        for submission_id in passed_over(lab):
            pipeline.advance(lab.sessions, lab.settings, submission_id)
            assert states(lab) == before
            seen += 1
        if not lab.sent:
            lab.tick()
        if not lab.sent:
            break
        lab.handle(lab.sent.pop(0))
    assert seen, "nothing was ever passed over"
    with lab.transaction() as session:
        assert set(session.scalars(select(Submission.state))) == {SubmissionState.FINISHED}
