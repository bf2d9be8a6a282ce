"""The files of a machine that was tried: written on a lab's host with a data folder, else shown."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from wqlab_contracts.enums import Outcome
from wqlab_contracts.loading import load_data
from wqlab_contracts.messages.device_trials import TrialClaim, TrialResult
from wqlab_contracts.new_devices.description import NewDevice
from wqlab_contracts.specs import Topology
from wqlab_worker.claims.trial_jobs import add_files
from wqlab_worker.settings import Settings

ROOT = Path(__file__).parents[3]
RESULT = TrialResult(
    outcome=Outcome.PASSED,
    topology=Topology(sockets=2, l3_per_socket=1, cores_per_l3=40, threads_per_core=2, numbering="smt_last"),
)


def claim(*, write: bool, **other: Any) -> TrialClaim:
    device = {
        "name": "rack3-1",
        "device_type": "rack3",
        "power": {"kind": "pdu", "model": "apc", "host": "pdu-1", "outlet": 3},
        "console": {"host": "console-1", "port": 7001},
        "ssh": {"host": "192.0.2.11"},
        **other,
    }
    return TrialClaim(device=NewDevice.model_validate(device), write=write, fence=1, expires_in_s=60)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("kernels", "testplans", "intake"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "device-types", folder / "device-types")
    monkeypatch.setenv("WQLAB_DATA_DIR", str(folder))
    return folder


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        server_url="http://127.0.0.1:1", worker_token=SecretStr("t"), cache=tmp_path / "cache", state=tmp_path / "state"
    )


def test_files_are_written_with_the_measured_topology(data: Path, settings: Settings) -> None:
    found = add_files(RESULT, claim(write=True), settings)
    assert [(each.path, each.written) for each in found.files] == [
        ("device-types/rack3.yaml", True),
        ("device-types/addresses.env", True),
        ("labgrid/exporter.yaml.d/rack3-1.yaml", True),
    ]
    assert found.refusal == ""
    assert load_data(data).device_types["rack3"].topology == RESULT.topology
    assert (settings.state / "labgrid/exporter.yaml.d/rack3-1.yaml").exists()


def test_files_are_only_shown_if_that_was_asked_for(data: Path, settings: Settings) -> None:
    found = add_files(RESULT, claim(write=False), settings)
    assert {each.written for each in found.files} == {False}
    assert not (data / "device-types/rack3.yaml").exists()
    assert not settings.state.exists()


def test_a_refusal_says_why_and_shows_the_texts(data: Path, settings: Settings) -> None:
    found = add_files(RESULT, claim(write=True, device_type="tiny"), settings)
    assert "device-types/tiny.yaml was written or edited by a person" in found.refusal
    assert {each.written for each in found.files} == {False}
    assert "RACK3_1_PDU=pdu-1" in next(each.added for each in found.files if each.path.endswith(".env"))
    assert not (data / "device-types/addresses.env").exists()


def test_a_lab_without_a_data_folder_shows_what_to_write(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WQLAB_DATA_DIR", raising=False)
    found = add_files(RESULT, claim(write=True, lab="berlin"), settings)
    assert found.refusal.startswith("Lab berlin has no device types of its own")
    assert [each.path.rpartition("/")[2] for each in found.files] == ["rack3.yaml", "addresses.env", "rack3-1.yaml"]
