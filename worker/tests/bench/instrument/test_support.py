"""Which instrumented types this machine supports."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_bench.device_types import load_device_types
from wqlab_bench.instrument import support
from wqlab_bench.qemu import UnsupportedTypeError

TYPES = load_device_types(Path(__file__).resolve().parents[4])


def test_missing_emulator_is_named_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnsupportedTypeError, match=r"instrumented-tiny: .*install package qemu-system-x86"):
        support.check(TYPES["instrumented-tiny"], tmp_path)


def test_types_of_the_project_are_supported(tmp_path: Path) -> None:
    support.check(TYPES["instrumented-8l3"], tmp_path)
    assert list(tmp_path.glob("instrument/*/wqlab-instrument.so"))


def test_topology_that_does_not_exist_is_named(tmp_path: Path) -> None:
    tiny = TYPES["instrumented-tiny"]
    assert tiny.emulation
    small = tiny.model_copy(
        update={
            "topology": TYPES["instrumented-8l3"].topology,
            "emulation": tiny.emulation.model_copy(update={"memory_mib": 256}),
        }
    )
    with pytest.raises(UnsupportedTypeError, match="each needs at least 128 MiB"):
        support.check(small, tmp_path)


def test_other_types_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTypeError, match="not an instrumented device type"):
        support.check(TYPES["tiny"], tmp_path)
