"""Make the device tree of an emulated arm64 device, with the clusters, caches and capacities of its device type.

QEMU's own tree describes equal cores and no caches. Linux reads from the device tree which cores form a cluster
(`cpu-map`), which cores share a cache (`next-level-cache`) and the capacity of each core (`capacity-dmips-mhz`).
Bindings: cpu-capacity.txt, cpu-topology.txt and cache-controller of the Devicetree specification v0.4, 3.9. The tree
survives kexec.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from wqlab_contracts.specs import Topology
from wqlab_host import tool

_PHANDLE = 0x9000
"""First phandle of our nodes, above those of QEMU."""


class DeviceTreeError(Exception):
    """The tree cannot be made; the message has the output of the failed tool."""


def device_tree(device_type: str, topology: Topology, qemu: Sequence[str], folder: Path) -> Path:
    """Return the file of the tree, and make it in `folder` unless it exists. Raises DeviceTreeError.

    `qemu` is a command line with the machine, its CPUs and its memory; its first `-machine` option is extended.
    """
    clusters = [cluster.model_dump() for cluster in topology.clusters]
    inputs = (list(qemu), clusters, topology.l3_per_socket, Path(__file__).read_text())
    tree = folder / f"{device_type}-{hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:16]}.dtb"
    if tree.exists():
        return tree
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        draft = Path(name) / "device.dtb"
        machine = qemu.index("-machine") + 1
        _run([*qemu[:machine], f"{qemu[machine]},dumpdtb={draft}", *qemu[machine + 1 :]])
        for edit in _edits(topology, _cpu_nodes(draft)):
            _run(["fdtput", *edit.options, str(draft), *edit.words])
        draft.rename(tree)
    return tree


def _cpu_nodes(tree: Path) -> list[tuple[str, int]]:
    """Return path and phandle of every CPU's node, in CPU order."""
    names = [name for name in _run(["fdtget", "-l", str(tree), "/cpus"]).split() if name.startswith("cpu@")]
    names.sort(key=lambda name: int(name.removeprefix("cpu@"), 16))
    return [(f"/cpus/{name}", int(_run(["fdtget", str(tree), f"/cpus/{name}", "phandle"]))) for name in names]


class _Edit(NamedTuple):
    """A call of fdtput: the arguments before and after the name of the tree."""

    options: list[str]
    words: list[str]


def _number(node: str, name: str, value: int) -> _Edit:
    return _Edit(["-p", "-t", "i"], [node, name, str(value)])


def _text(node: str, name: str, *value: str) -> _Edit:
    return _Edit(["-p", "-t", "s"], [node, name, *value])


def _edits(topology: Topology, cpus: Sequence[tuple[str, int]]) -> Iterator[_Edit]:
    yield _Edit(["-r"], ["/cpus/cpu-map"])
    l3 = _PHANDLE
    if topology.l3_per_socket:
        yield from _cache("/cpus/l3-cache", l3, level=3)
    first = 0
    for number, cluster in enumerate(topology.clusters):
        l2 = _PHANDLE + 1 + number
        node = f"/cpus/l2-cache{number}"
        yield from _cache(node, l2, level=2)
        if topology.l3_per_socket:
            yield _number(node, "next-level-cache", l3)
        for place, (cpu, phandle) in enumerate(cpus[first : first + cluster.cores]):
            yield _number(cpu, "capacity-dmips-mhz", cluster.capacity)
            yield _number(cpu, "next-level-cache", l2)
            yield _number(f"/cpus/cpu-map/socket0/cluster{number}/core{place}", "cpu", phandle)
        first += cluster.cores


def _cache(node: str, phandle: int, level: int) -> Iterator[_Edit]:
    yield _text(node, "compatible", "cache")
    yield _number(node, "cache-level", level)
    yield _text(node, "cache-unified")
    yield _number(node, "phandle", phandle)


def _run(words: Sequence[str]) -> str:
    return tool.output(words, DeviceTreeError, advice="; run `make arm64`")
