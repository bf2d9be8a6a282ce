"""Declare in a device type the topology that a kernel has measured. Pure."""

from __future__ import annotations

from itertools import groupby

from pydantic import ValidationError

from wqlab_contracts.messages import MeasuredTopology
from wqlab_contracts.specs import Cluster, Topology

from .probe import topology_differences


def declare(measured: MeasuredTopology) -> Topology | None:
    """Return the topology as a device type declares it; None if none describes the machine."""
    if measured.last_level != "L3" or _kinds(measured) > 1:
        return _declare_clusters(measured)
    sockets, domains = len(set(measured.package)), len(set(measured.l3))
    cores = len(set(measured.core))
    if domains % sockets or cores % domains or measured.cpus % cores:
        return None
    threads = measured.cpus // cores
    try:
        declared = Topology(
            sockets=sockets,
            l3_per_socket=domains // sockets,
            cores_per_l3=cores // domains,
            threads_per_core=threads,
            numa_nodes=len(set(measured.node)),
            numbering="smt_last" if threads == 2 and measured.core[1] != measured.core[0] else "contiguous",
        )
    except ValidationError:
        return None
    return None if topology_differences(measured, declared) else declared


def _kinds(measured: MeasuredTopology) -> int:
    return len(set(measured.capacity or [1024]))


def _declare_clusters(measured: MeasuredTopology) -> Topology | None:
    """Declare cores of several kinds, or cores without an L3 cache: consecutive CPUs of one capacity and one cache."""
    capacity = measured.capacity or [1024] * measured.cpus
    has_l3 = measured.last_level == "L3"
    kinds = capacity if has_l3 else list(zip(measured.l3, capacity, strict=True))
    clusters = [list(group) for _, group in groupby(range(measured.cpus), key=kinds.__getitem__)]
    domains = len(set(measured.l3))
    if measured.cpus != len(set(measured.core)) or (measured.cpus % domains and has_l3):
        return None
    try:
        declared = Topology(
            sockets=1,
            l3_per_socket=domains if has_l3 else 0,
            cores_per_l3=measured.cpus // domains if has_l3 else 0,
            threads_per_core=1,
            clusters=[Cluster(cores=len(cpus), capacity=capacity[cpus[0]]) for cpus in clusters],
        )
    except ValidationError:
        return None
    return None if topology_differences(measured, declared) else declared


def describe(topology: Topology) -> str:
    """Return a topology in words: `2 sockets, 1 L3 each with 40 cores, 2 threads per core, 2 NUMA nodes, smt_last`, or
    `8 cores in 1 L3, of which 6 with capacity 312, 2 with capacity 1024`.
    """
    if topology.clusters:
        caches = f"in {topology.l3_per_socket} L3" if topology.l3_per_socket else "without an L3 cache"
        kinds = ", ".join(f"{each.cores} with capacity {each.capacity}" for each in topology.clusters)
        return f"{topology.cores} cores {caches}, of which {kinds}"
    return (
        f"{topology.sockets} sockets, {topology.l3_per_socket} L3 each with {topology.cores_per_l3} cores,"
        f" {topology.threads_per_core} threads per core, {topology.numa_nodes} NUMA nodes, {topology.numbering}"
    )
