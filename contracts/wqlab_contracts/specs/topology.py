"""CPU topology that a device type declares."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from .base import LastLevel, Strict


class Cluster(Strict):
    """Cores of one kind on a big.LITTLE device, with consecutive numbers."""

    cores: int = Field(ge=1, le=64)
    capacity: int = Field(ge=1, le=1024)
    """CPU capacity at the highest clock, relative to 1024 of the strongest kind (`capacity-dmips-mhz`)."""


class Topology(Strict):
    """CPU topology declared by a device type; the measured topology of each boot is checked against it.

    The number of CPUs is `sockets * l3_per_socket * cores_per_l3 * threads_per_core`. `clusters` lists the kinds of
    cores of a socket in the order of their numbers; without an L3 cache each cluster is a last-level cache domain.
    """

    sockets: int = Field(ge=1, le=16)
    l3_per_socket: int = Field(ge=0, le=64)
    """0: no L3 cache; then `clusters` lists all cores and `cores_per_l3` is omitted."""
    cores_per_l3: int = Field(default=0, ge=0, le=256)
    threads_per_core: int = Field(ge=1, le=8)
    numa_nodes: int = Field(default=1, ge=1, le=64)
    numbering: Literal["contiguous", "smt_last"] = "contiguous"
    """`contiguous`: SMT siblings have adjacent numbers (0,1). `smt_last`: the sibling of CPU i is CPU i + N/2."""
    clusters: list[Cluster] = Field(default_factory=list)

    @property
    def domain_cores(self) -> list[int]:
        """Return the number of cores of each last-level cache domain: of each L3, or of each cluster without L3."""
        if self.l3_per_socket == 0:
            return [cluster.cores for cluster in self.clusters]
        return [self.cores_per_l3] * (self.sockets * self.l3_per_socket)

    @property
    def cores(self) -> int:
        return sum(self.domain_cores)

    @property
    def cpus(self) -> int:
        return self.cores * self.threads_per_core

    @property
    def l3_domains(self) -> int:
        return len(self.domain_cores)

    @property
    def last_level(self) -> LastLevel:
        return "L3" if self.l3_per_socket else "L2"

    @property
    def core_capacity(self) -> list[int] | None:
        """Return the capacity of each core; None if all cores are alike."""
        kinds = [cluster.capacity for cluster in self.clusters for _ in range(cluster.cores)]
        return kinds if len(set(kinds)) > 1 else None

    @model_validator(mode="after")
    def _check_clusters(self) -> Self:
        if self.clusters:
            if self.sockets > 1 or self.numa_nodes > 1 or self.numbering != "contiguous":
                raise ValueError("clusters need a device with one socket, one NUMA node and contiguous numbering")
            if max(cluster.capacity for cluster in self.clusters) != 1024:
                raise ValueError("the strongest cluster must have capacity 1024")
        if self.l3_per_socket == 0:
            if not self.clusters or self.cores_per_l3:
                raise ValueError("l3_per_socket 0 (no L3 cache) needs clusters, and no cores_per_l3")
        elif self.cores_per_l3 == 0:
            raise ValueError("cores_per_l3 is missing")
        elif self.clusters and sum(cluster.cores for cluster in self.clusters) != self.cores:
            raise ValueError(f"the clusters have {sum(c.cores for c in self.clusters)} cores, the L3s {self.cores}")
        return self

    @model_validator(mode="after")
    def _check_cpu_counts(self) -> Self:
        if self.cpus > 512:
            raise ValueError(f"{self.cpus} CPUs; the lab's kernels are built for at most 512")
        if self.cpus % self.numa_nodes:
            raise ValueError(f"{self.cpus} CPUs do not divide into {self.numa_nodes} NUMA nodes")
        if self.numbering == "smt_last" and self.threads_per_core != 2:
            raise ValueError("numbering smt_last needs threads_per_core: 2")
        return self
