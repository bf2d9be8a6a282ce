"""Device trees of emulated arm64 devices, with recorded calls in place of QEMU and fdtput."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_bench import devicetree
from wqlab_bench.device_types import load_device_types

ROOT = Path(__file__).resolve().parents[3]
QEMU = ["qemu-system-aarch64", "-machine", "virt", "-smp", "8"]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """All calls of tools, with eight CPUs in QEMU's own tree."""
    made: list[list[str]] = []

    def run(words: list[str]) -> str:
        made.append(list(words))
        if words[0] == QEMU[0]:
            Path(words[2].partition("dumpdtb=")[2]).write_bytes(b"tree")
        if words[:2] == ["fdtget", "-l"]:
            return "cpu-map\n" + "".join(f"cpu@{number:x}\n" for number in reversed(range(8)))
        return str(0x100 + int(words[2].rpartition("@")[2], 16)) if words[0] == "fdtget" else ""

    monkeypatch.setattr(devicetree, "_run", run)
    return made


def test_tree_describes_clusters_caches_and_capacities(calls: list[list[str]], tmp_path: Path) -> None:
    device_type = load_device_types(ROOT)["chromebook-biglittle"]
    tree = devicetree.device_tree(device_type.name, device_type.topology, QEMU, tmp_path)
    assert tree.read_bytes() == b"tree"
    edits = [
        call[call.index(next(word for word in call if word.endswith(".dtb"))) + 1 :]
        for call in calls
        if call[0] == "fdtput"
    ]
    assert ["/cpus/cpu@0", "capacity-dmips-mhz", "400"] in edits
    assert ["/cpus/cpu@7", "capacity-dmips-mhz", "1024"] in edits
    assert ["/cpus/cpu-map/socket0/cluster1/core0", "cpu", str(0x104)] in edits
    l2 = {edit[2] for edit in edits if edit[1:2] == ["next-level-cache"]}
    assert len(l2) == 2, "each cluster has its own L2 cache"


def test_tree_is_made_once(calls: list[list[str]], tmp_path: Path) -> None:
    device_type = load_device_types(ROOT)["chromebook-biglittle"]
    first = devicetree.device_tree(device_type.name, device_type.topology, QEMU, tmp_path)
    made = len(calls)
    assert devicetree.device_tree(device_type.name, device_type.topology, QEMU, tmp_path) == first
    assert len(calls) == made
