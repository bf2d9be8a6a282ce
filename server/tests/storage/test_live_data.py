"""The live data folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wqlab_contracts.loading import DataError
from wqlab_server.storage.live_data import LiveData

TINY = """\
name: tiny
summary: two CPUs
arch: x86_64
topology: {sockets: 1, l3_per_socket: 1, cores_per_l3: 2, threads_per_core: 1}
units: [{name: tiny-1}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "device-types/tiny.yaml": TINY,
        "kernels/trees.yaml": "default: t\ntrees: [{name: t, summary: s, url: https://example.org/t.git}]\n",
        "kernels/recipes/measure.yaml": "name: measure\nsummary: s\nfragments: [base]\n",
        "kernels/fragments/base.config": "CONFIG_SMP=y\n",
        "testplans/health-check/plan.yaml": (
            "name: health-check\nsummary: s\nscript: check.sh\nparser: health\nchecks_health: true\n"
            "scenarios: [{name: alive, summary: s}]\nreference_setting: ''\n"
            "hardware: {settings: ['']}\nemulated: {settings: ['']}\nmetrics: []\n"
        ),
        "testplans/health-check/check.sh": "true\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


class Clock:
    now = 0.0

    def __call__(self) -> float:
        self.now += 10
        return self.now


def test_added_device_type_is_loaded(folder: Path) -> None:
    data = LiveData(folder, Clock())
    assert set(data.current().device_types) == {"tiny"}
    (folder / "device-types" / "big.yaml").write_text(TINY.replace("tiny", "big"))
    assert set(data.current().device_types) == {"tiny", "big"}
    assert data.problems() == []


def test_invalid_file_is_reported_and_keeps_the_last_valid_content(folder: Path) -> None:
    data = LiveData(folder, Clock())
    good = data.current()
    path = folder / "device-types" / "tiny.yaml"
    path.write_text(TINY.replace("summary", "sumary"))
    assert data.current() is good
    assert any("device-types/tiny.yaml:2" in problem for problem in data.problems())
    path.write_text(TINY.replace("two CPUs", "a pair"))
    os.utime(path, ns=(1, 1))
    assert data.current().device_types["tiny"].summary == "a pair"
    assert data.problems() == []


def test_failed_load_is_reported_and_retried(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = LiveData(folder, Clock())
    good = data.current()
    path = folder / "device-types" / "tiny.yaml"
    path.write_text(TINY.replace("two CPUs", "a pair of CPUs"))
    with monkeypatch.context() as broken:
        broken.setattr("wqlab_server.storage.live_data.load_data", lambda _path: {}["surprise"])
        assert data.current() is good
        assert data.problems() == ["the data folder cannot be loaded: KeyError('surprise')"]
    assert data.current().device_types["tiny"].summary == "a pair of CPUs"
    assert data.problems() == []


def test_folder_without_valid_content_raises(tmp_path: Path) -> None:
    data = LiveData(tmp_path, Clock())
    with pytest.raises(DataError):
        data.current()
    assert data.problems()
