"""The values behind one cell of a report."""

from __future__ import annotations

import pytest

from wqlab_contracts.enums import Arm
from wqlab_server.http.problems import ApiProblem
from wqlab_server.models import Run
from wqlab_server.runs.values import cell_values

from ..support.lab import LabUnderTest

pytestmark = pytest.mark.integration


def test_cell_has_a_value_and_the_repetitions_of_every_valid_boot(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    submission_id = lab.submit("locks@single")
    lab.finished(submission_id)
    with lab.transaction() as session:
        run = session.get_one(Run, lab.runs(submission_id)[0].id)
        cell = cell_values(session, run, "flush", "locks_per_flush", None)
    assert (cell.unit, len(cell.points)) == ("locks", 4)
    values = {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0}
    assert all((point.value, point.repetitions) == (values[point.arm], [values[point.arm]]) for point in cell.points)


def test_unknown_metric_is_not_found_with_a_suggestion(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@single")
    with lab.transaction() as session:
        run = session.get_one(Run, lab.runs(submission_id)[0].id)
        with pytest.raises(ApiProblem, match="throughput"):
            cell_values(session, run, "flush", "throughputs", None)
        with pytest.raises(ApiProblem, match="scenario"):
            cell_values(session, run, "flushes", "throughput", None)
