"""Device types of the data folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_bench import topology
from wqlab_bench.device_types import load_device_types
from wqlab_contracts.loading import DataError

ROOT = Path(__file__).resolve().parents[3]


def test_device_types_of_the_project_can_be_emulated() -> None:
    types = load_device_types(ROOT)
    assert {"tiny", "ryzen-3900x", "xeon-2s"} <= types.keys()
    for device_type in types.values():
        # An instrumented device uses all cores, so a second one would only slow both down.
        assert len(device_type.units) >= (1 if device_type.instrumented else 2)
        assert device_type.emulation is not None
        topology.check(device_type.topology, device_type.emulation.memory_mib, device_type.arch)


def test_mistake_in_defaults_is_reported_for_their_file(tmp_path: Path) -> None:
    folder = tmp_path / "device-types"
    folder.mkdir()
    (folder / "common.yaml").write_text("summary: 2024-13-45\n")
    (folder / "tiny.yaml").write_text((ROOT / "device-types" / "tiny.yaml").read_text())
    with pytest.raises(DataError, match=r"^device-types/common\.yaml:1: summary: '2024-13-45' cannot be read"):
        load_device_types(tmp_path)
