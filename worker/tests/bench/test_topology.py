from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from wqlab_bench import topology
from wqlab_bench.device_types import load_device_types
from wqlab_contracts.loading import DataError
from wqlab_contracts.specs import Cluster, Topology

ROOT = Path(__file__).resolve().parents[3]


@st.composite
def layouts(draw: st.DrawFn) -> Topology:
    sockets, domains, cores = draw(st.integers(1, 4)), draw(st.integers(1, 8)), draw(st.integers(1, 16))
    threads = draw(st.integers(1, 4))
    cpus = sockets * domains * cores * threads
    assume(cpus <= 512)
    nodes = draw(st.sampled_from([n for n in range(1, 17) if cpus % n == 0]))
    numbering = draw(st.sampled_from(["contiguous", "smt_last"] if threads == 2 else ["contiguous"]))
    return Topology(
        sockets=sockets, l3_per_socket=domains, cores_per_l3=cores, threads_per_core=threads, numa_nodes=nodes,
        numbering=numbering,
    )  # fmt: skip


def options(words: list[str], option: str) -> list[str]:
    return [value for name, value in itertools.pairwise(words) if name == option]


def numbers(text: str) -> dict[str, int]:
    return {key: int(value) for key, value in re.findall(r"([\w-]+)=(\d+)", text)}


@given(layouts())
def test_every_layout_is_built_whole_or_refused_with_a_reason(layout: Topology) -> None:
    try:
        words = topology.arguments(layout, 4096)
    except topology.TopologyError as error:
        assert "NUMA" in str(error) or "APIC" in str(error)
        return
    smp = numbers(options(words, "-smp")[0])
    assert smp["sockets"] * smp["dies"] * smp["cores"] * smp["threads"] == smp["maxcpus"] == layout.cpus
    nodes = [numbers(text) for text in options(words, "-numa") if text.startswith("node,")]
    placed = [numbers(text) for text in options(words, "-numa") if text.startswith("cpu,")]
    if layout.numa_nodes == 1:
        assert not nodes and not placed
        return
    assert [node["nodeid"] for node in nodes] == list(range(layout.numa_nodes))
    # Every L3 domain is in exactly one node, and every node has equally many.
    assert len({(p["socket-id"], p.get("die-id", 0)) for p in placed}) == layout.l3_domains == len(placed)
    counts = [sum(p["node-id"] == node for p in placed) for node in range(layout.numa_nodes)]
    assert counts == [layout.l3_domains // layout.numa_nodes] * layout.numa_nodes
    sizes = [numbers(text)["size"] for text in options(words, "-object")]
    assert f"{sum(sizes)}M" == options(words, "-m")[0]


@given(layouts())
def test_siblings_are_a_partition_in_the_stated_numbering(layout: Topology) -> None:
    cores = topology.siblings(layout)
    assert sorted(cpu for core in cores for cpu in core) == list(range(layout.cpus))
    for core in cores:
        step = layout.cpus // 2 if layout.numbering == "smt_last" else 1
        assert [b - a for a, b in itertools.pairwise(core)] == [step] * (layout.threads_per_core - 1)


def test_apic_ids_are_rounded_up_level_by_level() -> None:
    ryzen = Topology(sockets=1, l3_per_socket=4, cores_per_l3=3, threads_per_core=2)
    assert topology.largest_apic_id(ryzen) == 0b11_10_1
    assert topology.largest_apic_id(Topology(sockets=1, l3_per_socket=1, cores_per_l3=1, threads_per_core=1)) == 0


def shape(sockets: int, domains: int, cores: int, threads: int, nodes: int = 1) -> Topology:
    return Topology(
        sockets=sockets, l3_per_socket=domains, cores_per_l3=cores, threads_per_core=threads, numa_nodes=nodes
    )


@pytest.mark.parametrize(
    ("layout", "memory", "complaint"),
    [
        (shape(3, 1, 2, 1, nodes=2), 1024, "whole L3 domains"),
        (shape(2, 3, 2, 1, nodes=3), 1024, "divide"),
        (shape(2, 1, 2, 1, nodes=2), 200, "at least 128 MiB"),
        (shape(4, 5, 9, 2), 1024, "APIC ids up to 913"),
    ],
)
def test_a_layout_that_qemu_cannot_show_is_refused(layout: Topology, memory: int, complaint: str) -> None:
    with pytest.raises(topology.TopologyError, match=complaint):
        topology.arguments(layout, memory)


def test_the_labs_own_types_can_be_built() -> None:
    types = load_device_types(ROOT)
    assert {"tiny", "ryzen-3900x", "xeon-2s"} <= types.keys()
    for device_type in types.values():
        assert len(device_type.units) >= 2
        assert device_type.emulation is not None
        topology.check(device_type.topology, device_type.emulation.memory_mib, device_type.arch)


@pytest.mark.parametrize(
    ("layout", "complaint"),
    [
        (Topology(sockets=1, l3_per_socket=2, cores_per_l3=2, threads_per_core=1), "one L3 cache or none"),
        (Topology(sockets=2, l3_per_socket=1, cores_per_l3=2, threads_per_core=1), "one socket"),
        (Topology(sockets=1, l3_per_socket=1, cores_per_l3=2, threads_per_core=2), "no SMT"),
    ],
)
def test_what_an_arm64_device_cannot_be(layout: Topology, complaint: str) -> None:
    with pytest.raises(topology.TopologyError, match=complaint):
        topology.arguments(layout, 1024, "arm64")


def test_clusters_are_of_arm64_devices() -> None:
    layout = Topology(
        sockets=1,
        l3_per_socket=0,
        threads_per_core=1,
        clusters=[Cluster(cores=4, capacity=400), Cluster(cores=2, capacity=1024)],
    )
    assert topology.arguments(layout, 1024, "arm64")[1].startswith("6,")
    with pytest.raises(topology.TopologyError, match="arm64 devices only"):
        topology.arguments(layout, 1024)


def test_an_unreadable_default_is_a_mistake_in_its_own_file(tmp_path: Path) -> None:
    folder = tmp_path / "device-types"
    folder.mkdir()
    (folder / "common.yaml").write_text("summary: 2024-13-45\n")
    (folder / "tiny.yaml").write_text((ROOT / "device-types" / "tiny.yaml").read_text())
    with pytest.raises(DataError, match=r"^device-types/common\.yaml:1: summary: '2024-13-45' cannot be read"):
        load_device_types(tmp_path)
