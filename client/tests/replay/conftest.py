"""Bundles of submissions that the real server finished."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from bundles import SaveBundle
from server_fixtures import *  # noqa: F403 - fixtures

from server.tests.support.lab import LabUnderTest
from wqlab_server.reports.bundle import BundleWriter
from wqlab_server.storage.signing import SigningKey


@pytest.fixture
def save(real_lab: LabUnderTest, tmp_path: Path) -> SaveBundle:
    """Write the bundle of a finished submission as the server's endpoint does."""

    def write(submission_id: int) -> Path:
        key = SigningKey.read(real_lab.settings.signing_key_file)
        writer = BundleWriter(real_lab.sessions, real_lab.app.state.store, key, "http://lab.test", submission_id)
        path = tmp_path / f"{submission_id}.zip"
        path.write_bytes(b"".join(writer.chunks()))
        return path

    return write


@pytest.fixture
def improvement(real_lab: LabUnderTest, save: SaveBundle) -> Path:
    """The bundle of a series that takes fewer locks."""
    real_lab.mark_all_good()
    submission_id = real_lab.submit("locks@device")
    real_lab.until_idle()
    return save(submission_id)


@pytest.fixture(scope="session")
def other_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key of somebody else."""
    key = tmp_path_factory.mktemp("keys") / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    return key
