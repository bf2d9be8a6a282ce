"""Heads of the kernel trees."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.messages import ApplyResult, Source
from wqlab_server.models import Apply
from wqlab_server.plans.queries import heads
from wqlab_server.storage.db import transaction

from ..support.scene import REQUEST, Scene

pytestmark = pytest.mark.integration


def test_head_is_the_newest_resolved_commit_without_a_series(scene: Scene) -> None:
    numbers = [scene.submission(request=REQUEST | {"series": None}) for _ in range(2)]
    tree = scene.data.current().trees["t"]
    with transaction(scene.sessions) as session:
        assert heads(session) == {}
        for number, digit in zip(numbers, "ab", strict=True):
            source = Source(tree=tree, base_commit=digit * 40, tree_oid="c" * 40, commit="d" * 40, release="6.12.0")
            apply = session.scalars(select(Apply).where(Apply.submission_id == number)).one()
            apply.state, apply.outcome, apply.finished_at = JobState.FINISHED, Outcome.PASSED, func.now()
            apply.result = ApplyResult(outcome=Outcome.PASSED, baseline=source, toolchain="gcc 12")
    scene.builds(scene.submission())
    with transaction(scene.sessions) as session:
        (head,) = heads(session).values()
    assert (head.commit, head.release, head.failure) == ("b" * 40, "6.12.0", None)
