"""Tests of a full artifact store.

`test_full_volume.py` runs this file with the store on a tmpfs whose size in bytes is WQLAB_TEST_VOLUME_BYTES.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Select, select

from wqlab_contracts.enums import ArtifactKind, Outcome
from wqlab_contracts.messages import RunResult
from wqlab_server.models import Artifact, Run
from wqlab_server.settings import Settings

from ..support.lab import LabUnderTest, RunSession, passing_run

pytestmark = pytest.mark.integration

VOLUME = Path(os.environ["WQLAB_TEST_VOLUME"])
VOLUME_BYTES = int(os.environ["WQLAB_TEST_VOLUME_BYTES"])


@pytest.fixture
def settings(settings: Settings) -> Iterator[Settings]:
    yield settings.model_copy(update={"artifact_dir": VOLUME, "reserve_bytes": VOLUME_BYTES * 3 // 4})
    for path in sorted(VOLUME.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def stored(folder: Path = VOLUME) -> int:
    """Return the number of files on the volume."""
    return sum(path.is_file() for path in folder.rglob("*"))


def test_upload_to_a_full_volume_is_refused_and_can_be_repeated(lab: LabUnderTest, run: RunSession) -> None:
    lab.worker._fence = (run.job.run_id, run.fence)
    before = stored()
    large = os.urandom(VOLUME_BYTES)
    headers = {"X-Job": str(run.job.run_id), "X-Fence": str(run.fence)}
    lab.worker.upload(ArtifactKind.RAW_OUTPUT, "large", large, expect=507)
    assert stored() == before, "nothing is left of the refused upload"
    path = f"artifacts/{'0' * 64}?kind=raw_output&name=x"
    refused = lab.worker.request("PUT", path, headers=headers, content=large)
    assert refused.json()["type"] == "urn:wqlab:problem:insufficient-storage"
    assert f"the volume of the artifact store {VOLUME} is full" in refused.json()["detail"]
    assert refused.headers["Retry-After"]
    lab.worker.upload(ArtifactKind.RAW_OUTPUT, "small", b"fits")


def test_retention_makes_space_and_work_goes_on(lab: LabUnderTest) -> None:
    """An old submission fills the volume; a new one is refused, the tick makes space, and the new one passes."""
    lab.mark_all_good()
    lab.worker.on_run = lambda run: _upload_and_pass(run, VOLUME_BYTES // 4)
    for _ in range(3):
        old = lab.submit("locks@single")
        lab.finished(old)
    for table in ("submissions", "jobs"):
        lab.sql(f"UPDATE {table} SET finished_at = finished_at - interval '2 hours'")
    files = stored()
    refusals = []

    def pass_after_refusal(run: RunSession) -> RunResult:
        try:
            return _upload_and_pass(run, VOLUME_BYTES // 2)
        except AssertionError as refused:
            refusals.append(str(refused))
            lab.sql("UPDATE storage_reports SET reported_at = now() - interval '1 minute'")
            lab.tick()
            return _upload_and_pass(run, VOLUME_BYTES // 2)

    lab.worker.on_run = pass_after_refusal
    new = lab.submit("locks@single")
    assert lab.finished(new).outcome is Outcome.PASSED
    assert len(refusals) == 1
    assert "is full" in refusals[0]
    assert stored() < files
    with lab.transaction() as session:
        deleted = session.scalars(select(Run.submission_id).where(Run.files_deleted_at.is_not(None))).all()
        assert deleted
        assert new not in deleted
        assert all(lab.app.state.store.has(sha256) for sha256 in session.scalars(_kept_artifacts()))
    for submission_id in (1, new):
        assert lab.report(submission_id).targets


def _kept_artifacts() -> Select[str]:
    return select(Artifact.sha256).where(Artifact.deleted_at.is_(None))


def _upload_and_pass(run: RunSession, size: int) -> RunResult:
    run.worker._fence = (run.job.run_id, run.fence)
    run.worker.upload(ArtifactKind.RAW_OUTPUT, "output", os.urandom(size))
    return passing_run(run)
