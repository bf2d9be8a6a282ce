"""Mean times of past boots and builds."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import PAIR
from wqlab_server.estimates.timings import BootTime, boot_times, build_times
from wqlab_server.models import Submission

from ..support.lab import LabUnderTest


def test_boot_time_scales_only_its_workload() -> None:
    measured = BootTime(seconds=50.0, count=4, workload_s=30.0, cells=2.0)
    assert measured.scaled_to(2) == 50.0
    assert measured.scaled_to(4) == 80.0


@pytest.mark.integration
def test_only_measured_targets_have_a_boot_time(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    submission_id = lab.submit("locks@single")
    lab.finished(submission_id)
    targets = {("locks", "single"), ("affinity", "single")}
    with lab.transaction() as session:
        times = boot_times(session, targets)
    assert times.keys() == {("locks", "single")}
    assert (times["locks", "single"].count, times["locks", "single"].workload_s) == (4, 3.0)
    assert times["locks", "single"].cells == 1.0


@pytest.mark.integration
def test_build_time_is_the_mean_of_builds_that_compiled(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    submission_id = lab.submit("locks@single")
    lab.finished(submission_id)
    with lab.transaction() as session:
        assert build_times(session) == {}, "the scripted builds took no time"
    lab.sql("UPDATE jobs SET result = jsonb_set(result, '{duration_s}', '90')")
    with lab.transaction() as session:
        times = build_times(session)
    with lab.transaction() as session:
        tree = session.scalars(select(Submission.tree)).one()
    assert {(key[0], key[3]) for key in times} == {(tree, arm) for arm in PAIR}
    assert {(each.seconds, each.count) for each in times.values()} == {(90.0, 1)}
