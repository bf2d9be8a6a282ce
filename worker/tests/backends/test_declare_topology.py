"""Make the `topology` of a device type from the topology that the kernel of its machine reports."""

from __future__ import annotations

import pytest

from wqlab_contracts.messages import MeasuredTopology
from wqlab_contracts.specs import LastLevel
from wqlab_worker.backends.declare_topology import declare, describe


def measured(
    l3: list[int], capacity: list[int] | None, level: LastLevel = "L3", core: list[int] | None = None
) -> MeasuredTopology:
    cpus = len(l3)
    return MeasuredTopology(
        cpus=cpus,
        core=core or list(range(cpus)),
        l3=l3,
        last_level=level,
        node=[0] * cpus,
        package=[0] * cpus,
        capacity=capacity,
    )


SC7180 = measured([0] * 8, [312] * 6 + [1024] * 2)
MT8183 = measured([0] * 4 + [1] * 4, [500] * 4 + [1024] * 4, "L2")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (SC7180, "8 cores in 1 L3, of which 6 with capacity 312, 2 with capacity 1024"),
        (MT8183, "8 cores without an L3 cache, of which 4 with capacity 500, 4 with capacity 1024"),
        (
            measured([0, 0, 1, 1], [1024] * 4, "L2"),
            "4 cores without an L3 cache, of which 2 with capacity 1024, 2 with capacity 1024",
        ),
        (
            measured([0] * 4, None, core=[0, 0, 1, 1]),
            "1 sockets, 1 L3 each with 2 cores, 2 threads per core, 1 NUMA nodes, contiguous",
        ),
    ],
)
def test_what_was_measured_can_be_declared(found: MeasuredTopology, words: str) -> None:
    declared = declare(found)
    assert declared is not None
    assert describe(declared) == words
    assert declared.cpus == found.cpus


@pytest.mark.parametrize(
    "found",
    [
        measured([0] * 4, [300, 300, 600, 600]),  # the strongest has no capacity 1024
        measured([0] * 4, [300, 300, 1024, 1024], core=[0, 0, 1, 1]),  # kinds of cores with SMT
        measured([0, 1, 0, 1], [1024] * 4, "L2"),  # the CPUs of a cache are not consecutive
    ],
)
def test_what_no_device_type_can_say_is_not_declared(found: MeasuredTopology) -> None:
    assert declare(found) is None
