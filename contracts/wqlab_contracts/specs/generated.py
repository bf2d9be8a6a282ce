"""Generated device types: instrumented and modelled devices of a topology that is read from the type's name.

`instrumented-16c-4l3-1n` has 16 CPUs, four L3 domains and one NUMA node; `instrumented-32c-1l3-1n-4s` has one L3 domain
that the affinity scope cache_shard divides into shards of four cores; `modelled-grace-16c-1l3-1n` is a modelled device
with the costs of the profile `grace`. The name describes the whole type, so the same topology is always the same type,
and nothing has to be stored to know it again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from .devices import INSTRUMENTED_CPUS, DeviceType
from .topology import Topology

Dimension = Literal["cpus", "l3", "nodes", "shard"]
"""Dimension of a generated topology: CPUs, last-level cache domains, NUMA nodes, cores of a cache shard."""

DIMENSIONS: tuple[Dimension, ...] = ("cpus", "l3", "nodes", "shard")

NOUNS: Mapping[Dimension, tuple[str, str]] = {
    "cpus": ("CPU", "CPUs"),
    "l3": ("L3 domain", "L3 domains"),
    "nodes": ("NUMA node", "NUMA nodes"),
    "shard": ("core in a cache shard", "cores in a cache shard"),
}
"""Singular and plural of each dimension, for texts."""

_NAME = re.compile(
    r"(?:instrumented|modelled-([A-Za-z0-9][A-Za-z0-9_.-]*))"
    r"-([1-9][0-9]{0,2})c-([1-9][0-9]{0,2})l3-([1-9][0-9]{0,2})n(?:-([1-9][0-9]{0,2})s)?"
)
_MOST_NODES = 16
_SUMMARY = {False: "every instruction and cache line counted", True: "in virtual time"}
_SHARD_ARGUMENT = "workqueue.cache_shard_size"
_MIB_PER_CPU = 128
_LEAST_MIB = 2048
_SLOW_CLOCK_CPUS = 32
"""Largest number of CPUs with the default clock of 8 ns per instruction. Larger topologies have 16 ns: while the kernel
boots, all CPUs execute busy waits, and a faster clock ends these after fewer instructions."""


@dataclass(frozen=True)
class GeneratedTopology:
    """Topology of a generated device type: one thread per core, as many sockets as NUMA nodes, equal domains."""

    cpus: int = 16
    l3: int = 4
    nodes: int = 1
    shard: int = 0
    """Kernel argument workqueue.cache_shard_size of Linux 7.1 and later; 0: the kernel's own choice, 8."""
    costs: str = ""
    """Cost profile if the type is modelled; empty if it is instrumented."""

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return the topology that a device type's name describes; None if the type is not a generated one.

        The topology may be impossible: see `problem`.
        """
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        cpus, l3, nodes, shard = (int(group or 0) for group in match.groups()[1:])
        return cls(cpus, l3, nodes, shard, match[1] or "")

    @property
    def name(self) -> str:
        """Return the name of the device type."""
        kind = f"modelled-{self.costs}" if self.costs else "instrumented"
        return f"{kind}-{self.cpus}c-{self.l3}l3-{self.nodes}n" + (f"-{self.shard}s" if self.shard else "")

    def value(self, dimension: Dimension) -> int:
        return {"cpus": self.cpus, "l3": self.l3, "nodes": self.nodes, "shard": self.shard}[dimension]

    def replaced(self, dimension: Dimension, value: int) -> Self:
        """Return the topology with another value of one dimension."""
        numbers = {each: self.value(each) for each in DIMENSIONS} | {dimension: value}
        return type(self)(**numbers, costs=self.costs)

    def problem(self) -> str:
        """Return why no instrumented device has this topology, with the fix; empty if one can."""
        for dimension in DIMENSIONS:
            least = 0 if dimension == "shard" else 1
            if self.value(dimension) < least:
                return f"{dimension}={self.value(dimension)}: there must be at least one; use 1 or more"
        if self.cpus > INSTRUMENTED_CPUS:
            return f"cpus={self.cpus}: an instrumented device has at most {INSTRUMENTED_CPUS} CPUs"
        if self.nodes > _MOST_NODES:
            return f"nodes={self.nodes}: a generated device type has at most {_MOST_NODES}, one for each socket"
        if self.cpus % self.l3:
            return (
                f"cpus={self.cpus} do not divide into l3={self.l3}: every L3 domain has equally many CPUs; use a "
                f"multiple of {self.l3} as cpus, or one of {_divisors(self.cpus)} as l3"
            )
        if self.l3 < self.nodes:
            return (
                f"l3={self.l3} is less than nodes={self.nodes}: every NUMA node has an L3 domain of its own; use a "
                f"multiple of {self.nodes} as l3, or at most {self.l3} as nodes"
            )
        if self.l3 % self.nodes:
            return (
                f"l3={self.l3} do not divide into nodes={self.nodes}: every NUMA node has equally many L3 domains; use "
                f"a multiple of {self.nodes} as l3, or one of {_divisors(self.l3)} as nodes"
            )
        if self.shard > self.cpus // self.l3:
            return (
                f"shard={self.shard} is more than the {self.cpus // self.l3} cores of an L3 domain; use fewer, or "
                "fewer domains"
            )
        return ""

    def describe(self, omit: Dimension | None = None) -> str:
        """Return the topology as text, `16 CPUs, 4 L3 domains, 1 NUMA node`, without one dimension if given."""
        values = {each: self.value(each) for each in DIMENSIONS if each != omit}
        parts = [counted(each, value) for each, value in values.items() if value]
        return ", ".join([*parts, f"modelled on {self.costs} costs"] if self.costs else parts)

    def topology(self) -> Topology:
        """Return the topology of the device type; it must have no `problem`."""
        return Topology(
            sockets=self.nodes,
            l3_per_socket=self.l3 // self.nodes,
            cores_per_l3=self.cpus // self.l3,
            threads_per_core=1,
            numa_nodes=self.nodes,
        )

    def device_type(self, lab: str, common: Mapping[str, Any] | None = None) -> DeviceType:
        """Return the device type, with one device in `lab`.

        `common` has defaults for all types of a data folder (`common.yaml`). Raises ValueError if the topology is
        impossible, or pydantic's ValidationError, which is one, if it contradicts the defaults.
        """
        if problem := self.problem():
            raise ValueError(problem)
        own: dict[str, Any] = {
            "name": self.name,
            "summary": f"{self.describe()}, {_SUMMARY[bool(self.costs)]}; generated from its name",
            "arch": "x86_64",
            "topology": self.topology(),
            "emulation": {**self._clock(), "memory_mib": max(_LEAST_MIB, _MIB_PER_CPU * self.cpus)},
            "units": [{"name": f"{self.name}-1", "lab": lab}],
        }
        if self.shard:
            own["boot"] = {**(common or {}).get("boot", {}), "kernel_arguments": f"{_SHARD_ARGUMENT}={self.shard}"}
        return DeviceType.model_validate({**(common or {}), **own})

    def _clock(self) -> dict[str, Any]:
        if self.costs:
            return {"clock": "model", "profile": self.costs}
        return {"clock": "instruction", "instruction_ns": 8 if self.cpus <= _SLOW_CLOCK_CPUS else 16}


def counted(dimension: Dimension, value: int) -> str:
    """Return a value with its noun: `1 NUMA node`, `4 L3 domains`."""
    return f"{value} {NOUNS[dimension][value != 1]}"


def _divisors(number: int) -> str:
    return ", ".join(f"{each}" for each in range(1, number + 1) if number % each == 0)
