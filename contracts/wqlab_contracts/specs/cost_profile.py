"""Cost profiles: what instructions, cache lines, interrupts and idle CPUs cost on a modelled device.

A profile is a file device-types/costs/<name>.yaml. Each cost states where its figure comes from. A device type with
`emulation: {clock: model, profile: <name>}` has the times of this profile.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, ClassVar, Self

from pydantic import Field, StringConstraints, ValidationInfo, field_validator, model_validator

from .base import Name, Strict
from .topology import Topology

Source = Annotated[str, StringConstraints(min_length=10, max_length=1000)]
"""Publication, table or file that has the figure; `estimate: <reason>` if there is none."""
Amount = Annotated[float, Field(strict=True, ge=0, le=1e9, allow_inf_nan=False)]
Percent = Annotated[float, Field(strict=True, ge=0, le=10000, allow_inf_nan=False)]


_OPTIONAL = ("smt", "smt_percent", "other_l3", "other_node")
"""Costs of levels that a machine need not have."""
MOST_THREADS = 2
"""Maximum number of threads per core of a modelled device."""
LEAST_TIME = 0.01
"""Least time, in nanoseconds or cycles, of an instruction and of a turn: a picosecond at 10 GHz."""
_BOUNDS = {"smt_percent": (100, 10000), "jitter_percent": (0, 100)}
"""Smallest and largest percentage. An instruction takes time, and no transfer ends before it begins."""


class Clock(Strict):
    """Frequency by which costs in cycles are converted to time."""

    ghz: Annotated[float, Field(strict=True, gt=0, le=10, allow_inf_nan=False)]
    source: Source


class Time(Strict):
    """A duration, in nanoseconds or in cycles of the profile's clock."""

    absent_value: ClassVar[int] = 0

    ns: Amount | None = None
    cycles: Amount | None = None
    absent: bool = False
    """True: the machine has no such level. Device types whose topology has it cannot use the profile."""
    source: Source

    @model_validator(mode="after")
    def _check_one_value(self) -> Self:
        if (self.ns is not None) + (self.cycles is not None) + self.absent != 1:
            raise ValueError("a duration needs one of `ns` and `cycles`, or `absent: true`")
        return self


class Share(Strict):
    """A share of a duration, in percent."""

    absent_value: ClassVar[int] = 100

    percent: Percent | None = None
    absent: bool = False
    """True: the machine has no such level, as for a duration."""
    source: Source

    @model_validator(mode="after")
    def _check_one_value(self) -> Self:
        if (self.percent is not None) + self.absent != 1:
            raise ValueError("a share needs `percent`, or `absent: true`")
        return self


class Size(Strict):
    """Size of a cache."""

    kib: Annotated[int, Field(strict=True, ge=1, le=1 << 22)]
    source: Source


class Clusters(Strict):
    """A share for each last-level cache domain, in the order of their numbers."""

    percent: list[Annotated[float, Field(strict=True, ge=1, le=10000, allow_inf_nan=False)]] = Field(min_length=1)
    source: Source


class CostProfile(Strict):
    """Costs of a machine: content of device-types/costs/<name>.yaml.

    An instruction costs the time of its class. An access to memory costs nothing more if the L1 cache has the line,
    else the time of the level from which it comes.
    """

    name: Name
    summary: str
    clock: Clock

    simple: Time
    """An instruction of no other class: its share of a core's time, so that a core that executes two a cycle has half
    a cycle."""
    multiply: Time
    divide: Time
    simd: Time
    """A vector or floating-point instruction."""
    crypto: Time
    """An instruction for AES, SHA or carry-less multiplication."""
    atomic: Time
    """A locked instruction, or an exclusive store, on a line that the CPU owns."""
    pause: Time
    """`pause` on x86-64, `yield` on arm64."""
    string: Time
    """An iteration of a repeated string instruction of x86-64, such as a byte of `rep movsb`."""

    l2_hit: Time
    l3_hit: Time
    dram: Time
    within_l3: Time
    """A line that a CPU of another core in the same L3 domain wrote."""
    other_l3: Time
    """A line from another L3 domain of the same NUMA node."""
    other_node: Time
    """A line from another socket or NUMA node."""
    smt: Time
    """A line that the other thread of the core wrote."""
    store_percent: Share
    """Share of the time of a transfer for which a store waits that is not locked."""
    stream_percent: Share
    """Share of the time of a miss for which an access waits that continues a sequence of addresses."""
    jitter_percent: Share
    """By how much the time of a transfer varies at most, more or less. Without it, equal loops on several CPUs keep in
    step with each other, so that a change of one cycle can show as a jump."""
    l1_kib: Size
    l2_kib: Size
    l3_kib: Size
    """Size of the cache of each L3 domain; without L3 cache, of the L2 cache of each cluster."""

    io: Time
    """An access to a register of a device."""
    ipi: Time
    """Latency of an interrupt from one CPU to another, until that CPU accepts it."""
    interrupt: Time
    """Entry into the kernel on a CPU that is not idle."""
    idle_exit: Time
    """From an interrupt until an idle CPU executes its first instruction."""
    idle_exit_deep: Time
    """The same for a CPU that has been idle for `idle_deep_after`."""
    idle_deep_after: Time
    smt_percent: Share
    """Time of an instruction while the other thread of the core runs, relative to that of a core with one thread."""
    quantum: Time
    """How far the clock of one CPU may run ahead of the others."""
    cluster_percent: Clusters = Clusters(percent=[100.0], source="the cores of all domains are alike")
    """Time of an instruction in each last-level cache domain, relative to the other costs; a single number counts for
    all domains."""

    @field_validator("*")
    @classmethod
    def _check_cost(cls, cost: object, info: ValidationInfo) -> object:
        name = info.field_name
        if isinstance(cost, Time | Share) and cost.absent and name not in _OPTIONAL:
            raise ValueError(f"{name} cannot be absent: every machine has it (only {', '.join(_OPTIONAL)} can)")
        if isinstance(cost, Time) and name in ("simple", "quantum") and (cost.ns or cost.cycles or 0) < LEAST_TIME:
            raise ValueError(f"{name} is less than {LEAST_TIME}: with no time, a busy CPU would never end its turn")
        if isinstance(cost, Share) and cost.percent is not None and name in _BOUNDS:
            least, most = _BOUNDS[name]
            if not least <= cost.percent <= most:
                raise ValueError(f"{name} is {cost.percent:g}, not {least} to {most}")
        return cost

    def number(self, name: str) -> int:
        """Return a cost as the plugin takes it: picoseconds, percent or KiB. Not for `cluster_percent`."""
        cost = getattr(self, name)
        match cost:
            case Size(kib=kib):
                return kib
            case Share(percent=percent) if percent is not None:
                return round(percent)
            case Time(ns=ns) if ns is not None:
                return round(ns * 1000)
            case Time(cycles=cycles) if cycles is not None:
                return round(cycles * 1000 / self.clock.ghz)
            case Time() | Share():
                return cost.absent_value
        raise KeyError(name)

    def clusters(self, domains: int) -> list[int]:
        """Return `cluster_percent` for a number of domains. Raises ValueError if the profile has another number."""
        given = [round(each) for each in self.cluster_percent.percent]
        if len(given) == 1:
            return given * domains
        if len(given) != domains:
            raise ValueError(f"cluster_percent of cost profile {self.name} has {len(given)} numbers, not {domains}")
        return given

    def problem(self, topology: Topology) -> str:
        """Return why the profile has no costs for a topology; empty if it has."""
        if topology.threads_per_core > MOST_THREADS:
            return (
                f"the topology has {topology.threads_per_core} threads a core; a modelled device has at most "
                f"{MOST_THREADS}, since smt_percent is the time beside one other thread"
            )
        needed = {
            "smt": topology.threads_per_core > 1,
            "smt_percent": topology.threads_per_core > 1,
            "other_l3": topology.l3_domains > topology.numa_nodes,
            "other_node": topology.numa_nodes > 1,
        }
        for name in _OPTIONAL:
            if needed[name] and getattr(self, name).absent:
                return f"the topology needs the cost {name}, which cost profile {self.name} states as absent"
        try:
            self.clusters(topology.l3_domains)
        except ValueError as error:
            return f"{error}, the last-level cache domains of the topology"
        return ""


def costs_text(profile: CostProfile, domains: int) -> str:
    """Return what the plugin reads: a line `name value` for each cost, in picoseconds, percent or KiB.

    `domains` is the number of last-level cache domains. Raises ValueError if `cluster_percent` has another number.
    """
    lines = [f"{name} {profile.number(name)}" for name in COST_NAMES]
    lines.append(f"cluster_percent {'/'.join(map(str, profile.clusters(domains)))}")
    return "\n".join(lines) + "\n"


def write_costs(profile: CostProfile, file: Path, domains: int) -> None:
    """Write the file that the plugin reads. Raises ValueError as `costs_text` does, and OSError."""
    file.write_text(costs_text(profile, domains))


def cost_profile_hash(profile: CostProfile) -> str:
    """Return the SHA-256 of all values of a profile, in hexadecimal digits.

    Neither its name nor the text of summary and sources counts: profiles with equal hashes give equal times.
    """
    values = {name: profile.number(name) for name in COST_NAMES}
    content = {**values, "cluster_percent": [round(each) for each in profile.cluster_percent.percent]}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


COST_NAMES = tuple(name for name, field in CostProfile.model_fields.items() if field.annotation in (Time, Share, Size))
"""Costs with one value, in the order of the plugin's file; `cluster_percent` follows."""
