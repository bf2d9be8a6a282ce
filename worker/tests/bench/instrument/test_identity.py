"""Identity of an emulator, by which hosts are matched."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_bench.instrument import build_plugin, identity
from wqlab_bench.qemu import describe_version


def test_identity_names_version_firmware_and_plugin(tmp_path: Path) -> None:
    text = identity.identify(tmp_path / "a", "x86_64")
    assert text.startswith(describe_version("x86_64").removeprefix("QEMU "))
    assert build_plugin.sha256(build_plugin.plugin(tmp_path / "a")) in text
    assert ", firmware " in text
    assert len(text) <= 300
    assert identity.identify(tmp_path / "b", "x86_64") == text, "another cache on the same host"


def test_missing_emulator_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(build_plugin.InstrumentUnsupported, match="install package qemu-system-x86"):
        identity.identify(tmp_path, "x86_64")
