"""Devices by availability, health checks and queued runs."""

from __future__ import annotations

import pytest

from wqlab_contracts.celery_names import ADVANCE
from wqlab_contracts.enums import JobKind
from wqlab_server.http.problems import ApiProblem
from wqlab_server.lab import queries
from wqlab_server.lab.queries import PoolCounts

from ..support.lab import LabUnderTest


def test_pool_has_a_problem_only_if_every_device_has_the_same() -> None:
    assert PoolCounts().problem == ""
    assert PoolCounts(unavailable_reasons={"LAVA does not answer"}).problem == "LAVA does not answer"
    assert PoolCounts(unavailable_reasons={"", "LAVA does not answer"}).problem == ""


@pytest.mark.integration
def test_devices_are_counted_by_type_and_by_lab(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    lab.sql("UPDATE devices SET health = 'quarantined' WHERE name = 'device-2'")
    lab.submit("locks@single")
    lab.work(JobKind.APPLY, JobKind.BUILD, ADVANCE)
    with lab.transaction() as session:
        by_type = queries.count_devices(queries.devices(session))
        by_lab = queries.pool_counts(session)
    assert (by_type["device"].good, by_type["device"].quarantined, by_type["single"].busy) == (1, 1, 1)
    local = by_lab["local"]
    assert (local.devices, local.free, local.busy, local.unavailable) == (3, 1, 1, 1)


@pytest.mark.integration
def test_unfinished_check_and_queued_runs_are_reported(lab: LabUnderTest) -> None:
    lab.submit("locks@single")
    lab.work(JobKind.APPLY, JobKind.BUILD, ADVANCE)
    lab.tick()
    (check,) = lab.checks("single-1")
    with lab.transaction() as session:
        assert queries.unfinished_checks(session, ["single-1", "device-1"]) == {"single-1": check.id}
        assert queries.queued_by_type(session)["single"] >= 1


@pytest.mark.integration
def test_unknown_device_is_not_found_with_a_suggestion(lab: LabUnderTest) -> None:
    with lab.transaction() as session, pytest.raises(ApiProblem, match="single-1"):
        queries.device(session, "singel-1")
