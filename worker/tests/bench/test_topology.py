"""QEMU arguments for CPU topologies."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from wqlab_bench import topology
from wqlab_contracts.specs import Cluster, GeneratedTopology, Topology
from wqlab_contracts.specs.devices import INSTRUMENTED_CPUS


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
def test_every_topology_is_complete_or_rejected_with_a_reason(layout: Topology) -> None:
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
    # Every L3 domain is in exactly one node, and all nodes have the same number.
    assert len({(p["socket-id"], p.get("die-id", 0)) for p in placed}) == layout.l3_domains == len(placed)
    counts = [sum(p["node-id"] == node for p in placed) for node in range(layout.numa_nodes)]
    assert counts == [layout.l3_domains // layout.numa_nodes] * layout.numa_nodes
    sizes = [numbers(text)["size"] for text in options(words, "-object")]
    assert f"{sum(sizes)}M" == options(words, "-m")[0]


@given(layouts())
def test_siblings_follow_the_declared_numbering(layout: Topology) -> None:
    cores = topology.siblings(layout)
    assert sorted(cpu for core in cores for cpu in core) == list(range(layout.cpus))
    for core in cores:
        step = layout.cpus // 2 if layout.numbering == "smt_last" else 1
        assert [b - a for a, b in itertools.pairwise(core)] == [step] * (layout.threads_per_core - 1)


def test_apic_ids_have_a_bit_field_per_level() -> None:
    ryzen = Topology(sockets=1, l3_per_socket=4, cores_per_l3=3, threads_per_core=2)
    assert topology.largest_apic_id(ryzen) == 0b11_10_1
    assert topology.largest_apic_id(Topology(sockets=1, l3_per_socket=1, cores_per_l3=1, threads_per_core=1)) == 0


def shape(sockets: int, domains: int, cores: int, threads: int, nodes: int = 1) -> Topology:
    return Topology(
        sockets=sockets, l3_per_socket=domains, cores_per_l3=cores, threads_per_core=threads, numa_nodes=nodes
    )


@pytest.mark.parametrize(
    ("layout", "memory", "message"),
    [
        (shape(3, 1, 2, 1, nodes=2), 1024, "whole L3 domains"),
        (shape(2, 3, 2, 1, nodes=3), 1024, "divide"),
        (shape(2, 1, 2, 1, nodes=2), 200, "at least 128 MiB"),
        (shape(4, 5, 9, 2), 1024, "APIC ids up to 913"),
    ],
)
def test_topology_that_qemu_cannot_emulate_is_rejected(layout: Topology, memory: int, message: str) -> None:
    with pytest.raises(topology.TopologyError, match=message):
        topology.arguments(layout, memory)


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (Topology(sockets=1, l3_per_socket=2, cores_per_l3=2, threads_per_core=1), "one L3 cache or none"),
        (Topology(sockets=2, l3_per_socket=1, cores_per_l3=2, threads_per_core=1), "one socket"),
        (Topology(sockets=1, l3_per_socket=1, cores_per_l3=2, threads_per_core=2), "no SMT"),
    ],
)
def test_unsupported_arm64_topology_is_rejected(layout: Topology, message: str) -> None:
    with pytest.raises(topology.TopologyError, match=message):
        topology.arguments(layout, 1024, "arm64")


def test_clusters_need_arm64() -> None:
    layout = Topology(
        sockets=1,
        l3_per_socket=0,
        threads_per_core=1,
        clusters=[Cluster(cores=4, capacity=400), Cluster(cores=2, capacity=1024)],
    )
    assert topology.arguments(layout, 1024, "arm64")[1].startswith("6,")
    with pytest.raises(topology.TopologyError, match="on arm64 only"):
        topology.arguments(layout, 1024)


def test_last_cpuid_leaf_of_machine_with_dies_is_empty() -> None:
    dies = Topology(sockets=1, l3_per_socket=4, cores_per_l3=3, threads_per_core=1)
    assert topology.cpu("Skylake-Server", dies) == "Skylake-Server,level=0x20"
    assert topology.cpu("Skylake-Server", dies.model_copy(update={"l3_per_socket": 1})) == "Skylake-Server"
    assert topology.cpu("cortex-a72", dies, "arm64") == "cortex-a72"


def test_every_generated_device_type_can_be_emulated() -> None:
    """The contracts decide which topologies a sweep may have; QEMU must have no reason to refuse one of them."""
    possible = 0
    for cpus in range(1, INSTRUMENTED_CPUS + 1):
        for l3, nodes in itertools.product(range(1, cpus + 1), range(1, 17)):
            generated = GeneratedTopology(cpus, l3, nodes)
            if generated.problem():
                continue
            device_type = generated.device_type("local")
            assert device_type.emulation is not None
            topology.check(device_type.topology, device_type.emulation.memory_mib)
            possible += 1
    assert possible > 500
