"""Tests that `test_full_volume.py` runs with the artifact store on a tmpfs of WQLAB_TEST_VOLUME_BYTES bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from wqlab_contracts.enums import ArtifactKind
from wqlab_server.settings import Settings

from ..support.lab import LabUnderTest, RunSession

pytestmark = pytest.mark.integration

VOLUME = Path(os.environ["WQLAB_TEST_VOLUME"])
VOLUME_BYTES = int(os.environ["WQLAB_TEST_VOLUME_BYTES"])


@pytest.fixture
def settings(settings: Settings) -> Iterator[Settings]:
    yield settings.model_copy(update={"artifact_dir": VOLUME})
    for path in sorted(VOLUME.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def stored(folder: Path = VOLUME) -> int:
    """Return the number of files on the volume."""
    return sum(path.is_file() for path in folder.rglob("*"))


def test_upload_to_a_full_volume_is_refused_and_can_be_repeated(lab: LabUnderTest, run: RunSession) -> None:
    lab.worker._fence = (f"runs/{run.job.run_id}", run.fence)
    before = stored()
    large = os.urandom(VOLUME_BYTES)
    headers = {"X-Fence-Job": f"runs/{run.job.run_id}", "X-Fence": str(run.fence)}
    lab.worker.upload(ArtifactKind.RAW_OUTPUT, "large", large, expect=507)
    assert stored() == before, "nothing is left of the refused upload"
    path = f"artifacts/{'0' * 64}?kind=raw_output&name=x"
    refused = lab.worker.request("PUT", path, headers=headers, content=large)
    assert refused.json()["type"] == "urn:wqlab:problem:insufficient-storage"
    assert f"the volume of the artifact store {VOLUME} is full" in refused.json()["detail"]
    assert refused.headers["Retry-After"]
    lab.worker.upload(ArtifactKind.RAW_OUTPUT, "small", b"fits")
