"""CPU layouts, declared by a device type or reported by a kernel."""

from __future__ import annotations

import pytest

from wqlab_contracts.cpu_layout import LayoutBasis, declared_layout, measured_layout
from wqlab_contracts.messages import MeasuredTopology
from wqlab_contracts.specs import Cluster, Topology


def test_declared_topology_gives_a_layout() -> None:
    layout = declared_layout(Topology(sockets=2, l3_per_socket=1, cores_per_l3=2, threads_per_core=2, numa_nodes=2))
    assert layout.basis is LayoutBasis.DESCRIBED
    assert layout.core == [0, 0, 1, 1, 2, 2, 3, 3]
    assert layout.thread == [0, 1] * 4
    assert layout.l3 == layout.package == layout.node == [0] * 4 + [1] * 4
    assert layout.cluster is None
    assert layout.capacity is None


def test_smt_last_numbering_puts_sibling_threads_after_all_cores() -> None:
    topology = Topology(sockets=1, l3_per_socket=2, cores_per_l3=2, threads_per_core=2, numbering="smt_last")
    layout = declared_layout(topology)
    assert layout.core == [0, 1, 2, 3, 0, 1, 2, 3]
    assert layout.thread == [0] * 4 + [1] * 4
    assert layout.l3 == [0, 0, 1, 1, 0, 0, 1, 1]
    assert set(layout.package) == set(layout.node) == {0}


@pytest.mark.parametrize("numbering", ["contiguous", "smt_last"])
def test_declared_and_measured_layouts_of_one_topology_are_equal(numbering: str) -> None:
    declared = declared_layout(
        Topology.model_validate(
            {
                "sockets": 2, "l3_per_socket": 2, "cores_per_l3": 3, "threads_per_core": 2, "numa_nodes": 4,
                "numbering": numbering,
            }
        )
    )  # fmt: skip
    reported = measured_layout(
        MeasuredTopology(
            cpus=declared.cpus, core=declared.core, l3=declared.l3, node=declared.node, package=declared.package
        )
    )
    assert reported.basis is LayoutBasis.MEASURED
    assert reported.model_copy(update={"basis": declared.basis}) == declared


def test_layout_has_capacities_of_big_little_cpus() -> None:
    both = MeasuredTopology(
        cpus=4, core=[0, 1, 2, 3], l3=[0] * 4, node=[0] * 4, package=[0] * 4, cluster=[0, 0, 1, 1],
        capacity=[446, 446, 1024, 1024],
    )  # fmt: skip
    assert measured_layout(both).capacity == [446, 446, 1024, 1024]
    assert measured_layout(both).cluster == [0, 0, 1, 1]
    alike = both.model_copy(update={"capacity": [1024] * 4})
    assert measured_layout(alike).capacity is None, "equal CPUs need no capacities"


def test_online_cpus_keep_their_numbers() -> None:
    record = {"cpus": 2, "core": [0, 1], "l3": [0, 0], "node": [0, 0], "package": [0, 0]}
    whole = MeasuredTopology.model_validate(record)
    assert (list(whole.numbers), measured_layout(whole).numbers) == ([0, 1], None)
    gaps = MeasuredTopology.model_validate({**record, "online": [0, 2]})
    assert gaps.numbers == measured_layout(gaps).numbers == [0, 2]


LITTLE, BIG = Cluster(cores=4, capacity=400), Cluster(cores=2, capacity=1024)


def test_clusters_without_l3_are_last_level_domains() -> None:
    declared = declared_layout(Topology(sockets=1, l3_per_socket=0, threads_per_core=1, clusters=[LITTLE, BIG]))
    assert declared.l3 == [0, 0, 0, 0, 1, 1]
    assert declared.last_level == "L2"
    assert declared.cluster is None, "clusters equal the last-level domains"
    assert declared.capacity == [400] * 4 + [1024] * 2
    assert set(declared.package) == {0}


def test_clusters_with_a_common_l3_are_one_domain() -> None:
    declared = declared_layout(
        Topology(sockets=1, l3_per_socket=1, cores_per_l3=6, threads_per_core=1, clusters=[LITTLE, BIG])
    )
    assert set(declared.l3) == {0}
    assert declared.last_level == "L3"
    assert declared.cluster == [0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"l3_per_socket": 0}, "needs clusters"),
        ({"l3_per_socket": 0, "cores_per_l3": 4, "clusters": [BIG]}, "no cores_per_l3"),
        ({"l3_per_socket": 1}, "cores_per_l3 is missing"),
        ({"l3_per_socket": 1, "cores_per_l3": 8, "clusters": [LITTLE, BIG]}, "the clusters have 6 cores, the L3s 8"),
        ({"l3_per_socket": 0, "clusters": [LITTLE]}, "capacity 1024"),
        ({"l3_per_socket": 0, "sockets": 2, "clusters": [LITTLE, BIG]}, "one socket"),
    ],
)
def test_inconsistent_clusters_are_rejected(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Topology.model_validate({"sockets": 1, "threads_per_core": 1} | fields)
