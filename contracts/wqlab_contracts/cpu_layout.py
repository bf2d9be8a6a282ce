"""CPU layout for drawing, either as a device type declares it or as a device's kernel reported it."""

from __future__ import annotations

from collections import defaultdict
from enum import StrEnum

from .messages import MeasuredTopology, Message
from .specs import LastLevel, Topology


class LayoutBasis(StrEnum):
    """Source of a layout."""

    DESCRIBED = "described"
    """The device type's file."""
    MEASURED = "measured"
    """The kernel of the device's last health check."""


class CpuLayout(Message):
    """CPU layout of a device. Each list has one entry per CPU, in CPU order.

    Group numbers start at 0 and are unique within the device.
    """

    basis: LayoutBasis
    cpus: int
    numbers: list[int] | None = None
    """CPU numbers; null if they are 0 to cpus - 1."""
    package: list[int]
    node: list[int]
    """NUMA node."""
    l3: list[int]
    """Last-level cache domain; `last_level` is its level."""
    last_level: LastLevel = "L3"
    cluster: list[int] | None = None
    """Cluster (CPUs that share an L2 or a mid-level bus); null if the device reports none."""
    core: list[int]
    thread: list[int]
    """Index among the SMT siblings of the core, from 0."""
    capacity: list[int] | None = None
    """CPU capacity, 1024 for the strongest (big.LITTLE); null if all CPUs are alike or their capacity is unknown."""


def declared_layout(topology: Topology) -> CpuLayout:
    """Return the layout that a device type declares."""
    cores = topology.cores
    if topology.numbering == "smt_last":
        core = [cpu % cores for cpu in range(topology.cpus)]
    else:
        core = [cpu // topology.threads_per_core for cpu in range(topology.cpus)]
    domain = _spread(topology.domain_cores)
    cluster = _spread([each.cores for each in topology.clusters])
    capacity = topology.core_capacity
    return CpuLayout(
        basis=LayoutBasis.DESCRIBED,
        cpus=topology.cpus,
        package=[domain[each] * topology.sockets // topology.l3_domains for each in core],
        node=[each * topology.numa_nodes // cores for each in core],
        l3=[domain[each] for each in core],
        last_level=topology.last_level,
        cluster=[cluster[each] for each in core] if cluster and cluster != domain else None,
        core=core,
        thread=_threads(core),
        capacity=[capacity[each] for each in core] if capacity else None,
    )


def _spread(sizes: list[int]) -> list[int]:
    """Return the group of each member, given the group sizes: [2, 1] -> [0, 0, 1]."""
    return [group for group, size in enumerate(sizes) for _ in range(size)]


def measured_layout(topology: MeasuredTopology) -> CpuLayout:
    """Return the layout that a booted kernel reported."""
    capacity = topology.capacity
    return CpuLayout(
        basis=LayoutBasis.MEASURED,
        cpus=topology.cpus,
        numbers=topology.online,
        package=topology.package,
        node=topology.node,
        l3=topology.l3,
        last_level=topology.last_level,
        cluster=topology.cluster,
        core=topology.core,
        thread=_threads(topology.core),
        capacity=capacity if capacity is not None and len(set(capacity)) > 1 else None,
    )


def _threads(core: list[int]) -> list[int]:
    seen: dict[int, int] = defaultdict(int)
    threads = []
    for each in core:
        threads.append(seen[each])
        seen[each] += 1
    return threads
