"""Propose targets for the files and symbols that a series changes, by the table of testplans/touches.yaml. Pure.

The series is untrusted: of its files and symbols a limited number is looked at, and each takes a time that depends on
the table only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from .api.series import FileChange, SeriesInspection
from .api.touches import REASONS_LIMIT, UNCOVERED_LIMIT, LeftOutPlan, TargetProposal, TouchedFile, Touches
from .messages import Target
from .specs import DeviceType, TestPlan
from .specs.touches import KIND_NAMES, DeviceKind, ProposedPlan, Touch, device_kinds

FILES_LIMIT = 2_000
SYMBOLS_LIMIT = 10_000
"""Maximum numbers of files and of symbols of a series that are looked at."""


class Known(Protocol):
    """What the table refers to."""

    @property
    def touches(self) -> Sequence[Touch]: ...
    @property
    def plans(self) -> Mapping[str, TestPlan]: ...
    @property
    def device_types(self) -> Mapping[str, DeviceType]: ...


@dataclass
class _Candidate:
    """A plan on a device type, or a plan for which there is none, with everything that led to it."""

    plan: str
    devices: list[DeviceKind]
    device_type: str = ""
    also_on: list[str] = field(default_factory=list)
    why: str = ""
    """Why it is left out; empty if it is proposed."""
    settings: list[str] | None = None
    asks: dict[str, None] = field(default_factory=dict)
    because: dict[str, dict[str, None]] = field(default_factory=dict)
    """Path -> symbols."""
    by_symbol: bool = False
    place: int = 0
    """Index of the first row that led to it, of those with symbols if there are such."""

    def add(self, proposed: ProposedPlan, path: str, symbols: Sequence[str], place: int) -> None:
        """Add a row of the table that led to it."""
        if not self.asks or (symbols and not self.by_symbol):
            self.place = place
        if not self.asks:
            self.settings = proposed.settings
        elif self.settings is not None:
            added = proposed.settings
            self.settings = None if added is None else list(dict.fromkeys([*self.settings, *added]))
        self.asks[proposed.asks] = None
        self.because.setdefault(path, {}).update(dict.fromkeys(symbols))
        self.by_symbol |= bool(symbols)

    def reasons(self) -> list[TouchedFile]:
        """Return what led to it, files with symbols first, cut to REASONS_LIMIT."""
        ordered = sorted(self.because.items(), key=lambda item: not item[1])[:REASONS_LIMIT]
        return [TouchedFile(path=path, symbols=list(symbols)[:REASONS_LIMIT]) for path, symbols in ordered]

    def proposal(self) -> TargetProposal:
        return TargetProposal(
            target=Target(plan=self.plan, device_type=self.device_type, settings=self.settings),
            devices=self.devices,
            also_on=self.also_on,
            asks=list(self.asks),
            because=self.reasons(),
            by_symbol=self.by_symbol,
        )

    def left_out(self) -> LeftOutPlan:
        return LeftOutPlan(plan=self.plan, devices=self.devices, why=self.why, because=self.reasons())


def touched_files(inspection: SeriesInspection) -> list[TouchedFile]:
    """Return the files whose code a series changes, each once, with the symbols that it changes in them."""
    found: dict[str, dict[str, None]] = {}
    for change in (change for patch in inspection.patches for change in patch.files if change.changes_code):
        for path in _paths(change):
            found.setdefault(path, {}).update(dict.fromkeys(change.symbols))
    return [TouchedFile(path=path, symbols=list(symbols)) for path, symbols in found.items()]


def _paths(change: FileChange) -> list[str]:
    """Return the names of a file: a rename concerns those who knew it by the name before."""
    return [change.path, *([change.old_path] if change.old_path else [])]


def propose(files: Sequence[TouchedFile], known: Known, usable: Collection[str] | None = None) -> Touches:
    """Return the targets that are proposed for changes, those that a symbol led to first.

    `usable` are the device types with a device that can measure; None: all. A plan and device type are proposed once,
    with everything that led to them.
    """
    looked_at = files[:FILES_LIMIT]
    found: dict[tuple[str, str], _Candidate] = {}
    uncovered = []
    symbols_left = SYMBOLS_LIMIT
    for file in looked_at:
        symbols = file.symbols[:symbols_left]
        symbols_left -= len(symbols)
        covered = False
        for place, row in enumerate(known.touches):
            matching = row.matching(symbols)
            if not row.has_path(file.path) or (row.symbols and not matching):
                continue
            covered = True
            for proposed in row.plans:
                candidate = _candidate(proposed, known, usable)
                candidate = found.setdefault((candidate.plan, candidate.device_type or candidate.why), candidate)
                candidate.add(proposed, file.path, matching, place)
        if not covered:
            uncovered.append(file.path)
    ordered = sorted(found.values(), key=lambda each: (not each.by_symbol, each.place))
    return Touches(
        proposals=[each.proposal() for each in ordered if not each.why],
        left_out=[each.left_out() for each in ordered if each.why],
        uncovered=uncovered[:UNCOVERED_LIMIT],
        files=len(files),
        looked_at=len(looked_at),
    )


def _candidate(proposed: ProposedPlan, known: Known, usable: Collection[str] | None) -> _Candidate:
    """Return the plan on the device type that suits it best, or why it is left out."""
    candidate = _Candidate(proposed.plan, list(proposed.devices))
    if proposed.plan not in known.plans:
        candidate.why = f"this lab has no plan {proposed.plan}"
        return candidate
    suitable = [each for each in known.device_types.values() if _suits(each, proposed.devices)]
    ordered = sorted(suitable, key=lambda each: _preference(each, proposed.devices))
    ready = [each.name for each in ordered if usable is None or each.name in usable]
    wanted = " and ".join(KIND_NAMES[kind] for kind in proposed.devices) or "no instrumentation"
    if not suitable:
        candidate.why = f"this lab has no device type with {wanted}"
    elif not ready:
        names = ", ".join(sorted(each.name for each in suitable))
        candidate.why = f"no device with {wanted} can measure now (device types: {names})"
    else:
        candidate.device_type, *candidate.also_on = ready
    return candidate


def _suits(device_type: DeviceType, devices: Sequence[DeviceKind]) -> bool:
    kinds = device_kinds(device_type)
    return kinds.issuperset(devices) and (DeviceKind.INSTRUMENTED in kinds) == (DeviceKind.INSTRUMENTED in devices)


def _preference(device_type: DeviceType, devices: Sequence[DeviceKind]) -> tuple[bool, bool, int, int, str]:
    """Return the sort key of device types that suit: hardware, then the most domains of the wanted kind, then the
    fewest CPUs.

    Of instrumented types the fewest CPUs come first, because all CPUs of such a device share one of its host, and those
    without a model, whose emulator every lab has.
    """
    topology = device_type.topology
    domains = 0
    if not device_type.instrumented:
        domains = topology.numa_nodes if DeviceKind.MULTI_NODE in devices else topology.l3_domains
    return (device_type.emulated, device_type.modelled, -domains if devices else 0, topology.cpus, device_type.name)
