"""The choice between KVM and software emulation."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_bench import accelerator
from wqlab_bench.qemu import Firmware, Golden

GOLDEN = Golden(Path("/golden/kernel"), Path("/golden/rootfs"), "key")


@pytest.fixture
def kvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Firmware]:
    """A KVM device whose test guest does not boot; returns the tests made."""
    device = tmp_path / "kvm"
    device.touch()
    tests: list[Firmware] = []

    async def boots(golden: Golden, firmware: Firmware) -> bool:
        tests.append(firmware)
        return False

    monkeypatch.setattr(accelerator, "KVM", device)
    monkeypatch.setattr(accelerator, "_boots", boots)
    return tests


def test_requested_accelerator_is_used_without_a_test(kvm: list[Firmware], tmp_path: Path) -> None:
    assert accelerator.choose("kvm", GOLDEN, tmp_path) == "kvm"
    assert accelerator.choose("tcg", GOLDEN, tmp_path) == "tcg"
    assert kvm == []


def test_emulation_is_used_without_kvm_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "KVM", tmp_path / "absent")
    assert accelerator.choose("auto", GOLDEN, tmp_path) == "tcg"


def test_kvm_is_tested_once_per_golden_system(kvm: list[Firmware], tmp_path: Path) -> None:
    assert [accelerator.choose("auto", GOLDEN, tmp_path) for _ in range(2)] == ["tcg", "tcg"]
    assert len(kvm) == 1
    other = Golden(Path("/other/kernel"), GOLDEN.rootfs, "key")
    assert accelerator.choose("auto", other, tmp_path) == "tcg"
    assert len(kvm) == 2
