"""A device's CPUs have one shape, whether a device type describes them or a kernel reported them."""

from __future__ import annotations

import pytest

from wqlab_contracts.cpu_layout import LayoutBasis, described, measured
from wqlab_contracts.messages import MeasuredTopology
from wqlab_contracts.specs import Cluster, Topology


def test_what_a_type_describes() -> None:
    layout = described(Topology(sockets=2, l3_per_socket=1, cores_per_l3=2, threads_per_core=2, numa_nodes=2))
    assert layout.basis is LayoutBasis.DESCRIBED
    assert layout.core == [0, 0, 1, 1, 2, 2, 3, 3]
    assert layout.thread == [0, 1] * 4
    assert layout.l3 == layout.package == layout.node == [0] * 4 + [1] * 4
    assert layout.cluster is None
    assert layout.capacity is None


def test_siblings_that_are_numbered_last() -> None:
    layout = described(Topology(sockets=1, l3_per_socket=2, cores_per_l3=2, threads_per_core=2, numbering="smt_last"))
    assert layout.core == [0, 1, 2, 3, 0, 1, 2, 3]
    assert layout.thread == [0] * 4 + [1] * 4
    assert layout.l3 == [0, 0, 1, 1, 0, 0, 1, 1]
    assert set(layout.package) == set(layout.node) == {0}


@pytest.mark.parametrize("numbering", ["contiguous", "smt_last"])
def test_a_device_that_is_what_its_type_says_is_drawn_the_same(numbering: str) -> None:
    said = described(
        Topology.model_validate(
            {
                "sockets": 2, "l3_per_socket": 2, "cores_per_l3": 3, "threads_per_core": 2, "numa_nodes": 4,
                "numbering": numbering,
            }
        )
    )  # fmt: skip
    seen = measured(MeasuredTopology(cpus=said.cpus, core=said.core, l3=said.l3, node=said.node, package=said.package))
    assert seen.basis is LayoutBasis.MEASURED
    assert seen.model_copy(update={"basis": said.basis}) == said


def test_big_and_little() -> None:
    both = MeasuredTopology(
        cpus=4, core=[0, 1, 2, 3], l3=[0] * 4, node=[0] * 4, package=[0] * 4, cluster=[0, 0, 1, 1],
        capacity=[446, 446, 1024, 1024],
    )  # fmt: skip
    assert measured(both).capacity == [446, 446, 1024, 1024]
    assert measured(both).cluster == [0, 0, 1, 1]
    alike = both.model_copy(update={"capacity": [1024] * 4})
    assert measured(alike).capacity is None, "CPUs that are alike have nothing to draw"


def test_cpus_keep_their_numbers_where_others_are_offline() -> None:
    record = {"cpus": 2, "core": [0, 1], "l3": [0, 0], "node": [0, 0], "package": [0, 0]}
    whole = MeasuredTopology.model_validate(record)
    assert (list(whole.numbers), measured(whole).numbers) == ([0, 1], None)
    holes = MeasuredTopology.model_validate({**record, "online": [0, 2]})
    assert holes.numbers == measured(holes).numbers == [0, 2]


LITTLE, BIG = Cluster(cores=4, capacity=400), Cluster(cores=2, capacity=1024)


def test_clusters_without_an_l3_share_the_last_level() -> None:
    said = described(Topology(sockets=1, l3_per_socket=0, threads_per_core=1, clusters=[LITTLE, BIG]))
    assert said.l3 == [0, 0, 0, 0, 1, 1]
    assert said.last_level == "L2"
    assert said.cluster is None, "the same CPUs as the last level"
    assert said.capacity == [400] * 4 + [1024] * 2
    assert set(said.package) == {0}


def test_clusters_under_one_l3() -> None:
    said = described(Topology(sockets=1, l3_per_socket=1, cores_per_l3=6, threads_per_core=1, clusters=[LITTLE, BIG]))
    assert set(said.l3) == {0}
    assert said.last_level == "L3"
    assert said.cluster == [0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"l3_per_socket": 0}, "needs clusters"),
        ({"l3_per_socket": 0, "cores_per_l3": 4, "clusters": [BIG]}, "no cores_per_l3"),
        ({"l3_per_socket": 1}, "cores_per_l3 is missing"),
        ({"l3_per_socket": 1, "cores_per_l3": 8, "clusters": [LITTLE, BIG]}, "the clusters have 6 cores, the L3s 8"),
        ({"l3_per_socket": 0, "clusters": [LITTLE]}, "capacity 1024"),
        ({"l3_per_socket": 0, "sockets": 2, "clusters": [LITTLE, BIG]}, "one socket"),
    ],
)
def test_clusters_that_do_not_fit(fields: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Topology.model_validate({"sockets": 1, "threads_per_core": 1} | fields)
