"""Finish requests of applies and builds."""

from __future__ import annotations

import pytest

from wqlab_contracts.celery_names import ADVANCE
from wqlab_contracts.enums import JobKind, Outcome
from wqlab_contracts.messages import ApplyJob, BuildResult

from ..support.lab import LabUnderTest, passing_apply

pytestmark = pytest.mark.integration


def test_repeated_finish_of_an_apply_is_accepted(lab: LabUnderTest) -> None:
    lab.submit("locks@device")
    claim = lab.worker.claim(1)
    assert claim is not None
    lab.worker._fence = (1, claim["fence"])
    result = passing_apply(ApplyJob.model_validate(claim["job"]), lab.worker)
    for _ in range(2):
        lab.worker.finish(1, claim["fence"], result)
    lab.worker.finish(1, claim["fence"], result.model_copy(update={"title": "other"}), expect=409)


def test_build_cannot_pass_without_uploaded_kernel(lab: LabUnderTest) -> None:
    lab.submit("locks@device")
    lab.work(JobKind.APPLY, ADVANCE)
    build_id = next(message.id for message in lab.sent if message.task == JobKind.BUILD)
    assert build_id is not None
    claim = lab.worker.claim(build_id)
    assert claim is not None
    kernel = {"sha256": "a" * 64, "size": 3, "kind": "kernel", "name": "bzImage"}
    result = BuildResult(outcome=Outcome.PASSED, build_id_gnu="b" * 40, artifacts=[kernel])  # type: ignore[list-item]
    answer = lab.worker.finish(build_id, claim["fence"], result, expect=422)
    assert "was not uploaded" in answer.json()["detail"]
