"""What a change of the kernel touches: the plans that are proposed for files and functions."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from .base import Name, Strict
from .devices import DeviceType
from .plans import format_setting, parse_setting

_Path = Annotated[str, StringConstraints(pattern=r"^[^\s/][^\s*]*$", max_length=300)]
_Symbol = Annotated[
    str, StringConstraints(pattern=r"^(\*?[A-Za-z_][A-Za-z0-9_]*|[A-Za-z_][A-Za-z0-9_]*\*)$", max_length=100)
]
_Question = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=20, max_length=300, pattern=r"^[^?]+\?( [^?]+\.)?$")
]
"""A question, and optionally one sentence about its limits."""


class DeviceKind(StrEnum):
    """Property of a device type that a plan needs to find something."""

    MULTI_L3 = "multi_l3"
    """Several L3 caches."""
    MULTI_NODE = "multi_node"
    """Several NUMA nodes."""
    SMT = "smt"
    """Several threads on each core."""
    BIG_LITTLE = "big_little"
    """Cores of different capacity."""
    INSTRUMENTED = "instrumented"
    """The emulator counts every instruction and cache line transfer."""


KIND_NAMES = {
    DeviceKind.MULTI_L3: "several L3 caches",
    DeviceKind.MULTI_NODE: "several NUMA nodes",
    DeviceKind.SMT: "SMT",
    DeviceKind.BIG_LITTLE: "big.LITTLE cores",
    DeviceKind.INSTRUMENTED: "instrumentation",
}


def device_kinds(device_type: DeviceType) -> set[DeviceKind]:
    """Return the kinds that a device type is of."""
    topology = device_type.topology
    holds = {
        DeviceKind.MULTI_L3: topology.l3_per_socket > 0 and topology.l3_domains > 1,
        DeviceKind.MULTI_NODE: topology.numa_nodes > 1,
        DeviceKind.SMT: topology.threads_per_core > 1,
        DeviceKind.BIG_LITTLE: topology.core_capacity is not None,
        DeviceKind.INSTRUMENTED: device_type.instrumented,
    }
    return {kind for kind, held in holds.items() if held}


class ProposedPlan(Strict):
    """A plan that is proposed, where it is to run, and the question that it answers."""

    plan: Name
    devices: list[DeviceKind] = Field(default_factory=list, max_length=len(DeviceKind))
    """What the device type has to be, all of it. Without `instrumented`, instrumented types are left out."""
    settings: list[str] | None = Field(default=None, min_length=1, max_length=64)
    """Settings to measure; null: those of the plan."""
    asks: _Question
    """What a measurement with the plan could answer about such a change, as a question."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(set(self.devices)) < len(self.devices):
            raise ValueError("a kind of device is listed twice under devices")
        for setting in self.settings or []:
            canonical = format_setting(parse_setting(setting))
            if canonical != setting:
                raise ValueError(f"setting {setting!r} is written {canonical!r}")
        return self


class Touch(Strict):
    """A row of the table: for changes of these files, or of these symbols in them, plans are proposed."""

    name: Name
    paths: list[_Path] = Field(min_length=1, max_length=50)
    """Files (`kernel/workqueue.c`) and folders (`fs/xfs/`)."""
    symbols: list[_Symbol] = Field(default_factory=list, max_length=300)
    """Functions, variables, types and macros; `flush_*` and `*_flush` stand for all that begin or end so. Empty: any
    change of the files counts."""
    plans: list[ProposedPlan] = Field(min_length=1, max_length=16)

    def has_path(self, path: str) -> bool:
        """Return True if the row is about a file."""
        return any(path.startswith(each) if each.endswith("/") else path == each for each in self.paths)

    def matching(self, symbols: Sequence[str]) -> list[str]:
        """Return those of the symbols that the row lists."""
        names = frozenset(self.symbols)
        begin = tuple(each[:-1] for each in self.symbols if each.endswith("*"))
        end = tuple(each[1:] for each in self.symbols if each.startswith("*"))
        return [each for each in symbols if each in names or each.startswith(begin) or each.endswith(end)]
