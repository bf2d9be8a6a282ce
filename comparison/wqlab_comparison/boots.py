"""Reduce samples to one value per boot, and pair boots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from wqlab_contracts.api.report import BootValue
from wqlab_contracts.enums import PAIR, SEEDED, Arm, Direction, Evidence, Role, Scale

from .samples import Samples, SamplesError, group


class Cell(NamedTuple):
    """Key of one figure."""

    plan: str
    device_type: str
    scenario: str
    setting: str
    metric: str


class Boot(NamedTuple):
    """One boot; `device` and `block` are the same for the two boots that make a pair."""

    device: str
    block: int
    arm: Arm
    name: str


@dataclass(frozen=True)
class MetricFacts:
    """Description of a metric on one device type, as given by the samples."""

    unit: str
    scale: Scale
    direction: Direction
    role: Role
    evidence: Evidence
    delta: float | None
    emulator_delta: float | None = None
    """What the turn-taking of an emulator changes, in the unit of `delta`; None if it changes nothing."""

    @property
    def replicate(self) -> str:
        """Return what n counts: `block`, or `seed` on devices where the same seed repeats the figure."""
        return "seed" if self.evidence in SEEDED else "block"


@dataclass(frozen=True)
class BootTable:
    """One value per boot and cell: the median of its non-warm-up repetitions."""

    cells: dict[Cell, dict[Boot, float]]
    metrics: dict[tuple[str, str, str], MetricFacts]
    """(plan, device type, metric) -> facts."""

    def facts(self, cell: Cell) -> MetricFacts:
        return self.metrics[cell.plan, cell.device_type, cell.metric]


class Lost(NamedTuple):
    """Number of pairs (blocks, or boots for settings) without a figure, by the side that failed or is missing."""

    reference: int = 0
    candidate: int = 0

    @property
    def pairs(self) -> int:
        return self.reference + self.candidate


@dataclass(frozen=True)
class Pairs:
    """Paired values in block order; `reference[i]` and `candidate[i]` are one pair."""

    reference: list[float] = field(default_factory=list)
    candidate: list[float] = field(default_factory=list)
    lost: Lost = field(default_factory=Lost)
    """Pairs left out because one side is missing."""
    devices: list[str] = field(default_factory=list)
    """Device of each pair."""
    blocks: list[int] = field(default_factory=list)
    """Block of each pair."""


def boot_table(samples: Samples) -> BootTable:
    """Reduce repetitions to boots. Raises SamplesError if a metric is described in two ways, if a repetition is
    given twice, or if one block holds two boots of one arm."""
    measured = samples.take(~samples.warmup) if samples.warmup.any() else samples
    key = group(
        measured.plan,
        measured.device_type,
        measured.scenario,
        measured.setting,
        measured.metric,
        measured.device,
        measured.block,
        measured.arm,
        measured.boot,
    )
    order = np.lexsort((measured.value, key))
    starts = np.flatnonzero(np.diff(key[order], prepend=key[order][:1] - 1)) if len(order) else np.zeros(0, np.intp)
    medians = _medians(measured.value[order], starts)
    first = measured.take(order[starts])
    _reject_repeats(measured, key)
    cells: dict[Cell, dict[Boot, float]] = defaultdict(dict)
    for cell, boot, value in zip(_cells(first), _boots(first), medians.tolist(), strict=True):
        cells[cell][boot] = value
    _reject_two_boots(cells)
    return BootTable(dict(cells), _metric_facts(samples))


def block_pairs(boots: Mapping[Boot, float], arms: tuple[Arm, Arm] = PAIR) -> Pairs:
    """Pair the boots of two arms in the same block on the same device; the first arm is the reference."""
    blocks: dict[tuple[str, int], dict[Arm, float]] = defaultdict(dict)
    for boot, value in boots.items():
        if boot.arm in arms:
            blocks[boot.device, boot.block][boot.arm] = value
    keys = [key for key in sorted(blocks) if len(blocks[key]) == 2]
    lost = Lost(
        sum(arms[0] not in block for block in blocks.values()),
        sum(arms[1] not in block for block in blocks.values()),
    )
    reference, candidate = ([blocks[key][arm] for key in keys] for arm in arms)
    return Pairs(reference, candidate, lost, [device for device, _ in keys], [block for _, block in keys])


def setting_pairs(reference: dict[Boot, float], candidate: dict[Boot, float], arm: Arm) -> Pairs:
    """Pair the reference setting with another one, measured in the same boot of `arm`."""
    boots = sorted(boot for boot in reference.keys() | candidate.keys() if boot.arm is arm)
    both = [boot for boot in boots if boot in reference and boot in candidate]
    lost = Lost(sum(boot not in reference for boot in boots), sum(boot not in candidate for boot in boots))
    # A setting that was never measured has no lost pairs.
    lost = lost if both else Lost()
    devices, blocks = [boot.device for boot in both], [boot.block for boot in both]
    return Pairs([reference[boot] for boot in both], [candidate[boot] for boot in both], lost, devices, blocks)


def boot_values(samples: Samples) -> list[BootValue]:
    """Return every boot's value, for figures; the samples must be of one plan on one device type."""
    table = boot_table(samples)
    return [
        BootValue(
            arm=boot.arm,
            block=boot.block,
            scenario=cell.scenario,
            setting=cell.setting,
            metric=cell.metric,
            value=value,
        )
        for cell in sorted(table.cells)
        for boot, value in sorted(table.cells[cell].items())
    ]


def _medians(ordered: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Median of each run of `ordered` (ascending within a run) that begins at `starts`."""
    counts = np.diff(starts, append=len(ordered))
    low, high = ordered[starts + (counts - 1) // 2], ordered[starts + counts // 2]
    medians: np.ndarray = np.where(low == high, low, low / 2 + high / 2)
    return medians


def _cells(rows: Samples) -> Iterator[Cell]:
    columns = (rows.plan, rows.device_type, rows.scenario, rows.setting, rows.metric)
    return (Cell(*words) for words in zip(*([c.words[i] for i in c.codes.tolist()] for c in columns), strict=True))


def _boots(rows: Samples) -> Iterator[Boot]:
    arms = [Arm(word) for word in rows.arm.words]
    for device, block, arm, name in zip(
        rows.device.codes.tolist(), rows.block.tolist(), rows.arm.codes.tolist(), rows.boot.codes.tolist(), strict=True
    ):
        yield Boot(rows.device.words[device], block, arms[arm], rows.boot.words[name])


def _reject_repeats(rows: Samples, key: np.ndarray) -> None:
    _, compact = np.unique(key, return_inverse=True)
    lowest = int(rows.repetition.min(initial=0))
    span = int(rows.repetition.max(initial=0)) - lowest + 1
    one = np.sort(compact * span + (rows.repetition - lowest))
    if (np.diff(one) == 0).any():
        index = int(one[np.flatnonzero(np.diff(one) == 0)[0]])
        row = int(np.flatnonzero((compact == index // span) & (rows.repetition - lowest == index % span))[0])
        raise SamplesError(
            f"repetition {int(rows.repetition[row])} of boot {rows.boot.words[rows.boot.codes[row]]} (block "
            f"{int(rows.block[row])}, {rows.arm.words[rows.arm.codes[row]]}) gives metric "
            f"{rows.metric.words[rows.metric.codes[row]]} twice in scenario "
            f"{rows.scenario.words[rows.scenario.codes[row]]}; number the repetitions of a boot differently"
        )


def _reject_two_boots(cells: dict[Cell, dict[Boot, float]]) -> None:
    for cell, boots in cells.items():
        seen: dict[tuple[str, int, Arm], str] = {}
        for boot in boots:
            other = seen.setdefault((boot.device, boot.block, boot.arm), boot.name)
            if other != boot.name:
                names = " and ".join(sorted((other, boot.name)))
                raise SamplesError(
                    f"block {boot.block} on {boot.device} has two {boot.arm} boots of {cell.scenario} {cell.metric}: "
                    f"{names}; a block is one boot of each arm, so give the second pair a block number of its own"
                )


def _metric_facts(samples: Samples) -> dict[tuple[str, str, str], MetricFacts]:
    described = (
        *(samples.unit, samples.scale, samples.direction, samples.role, samples.evidence),
        *(samples.delta, samples.emulator_delta),
    )
    key = group(samples.plan, samples.device_type, samples.metric, *described)
    _, first = np.unique(key, return_index=True)
    rows = samples.take(first)
    found: dict[tuple[str, str, str], MetricFacts] = {}
    for index in range(len(rows)):
        where = tuple(column.words[column.codes[index]] for column in (rows.plan, rows.device_type, rows.metric))
        unit, scale, direction, role, evidence, *deltas = (
            column.words[column.codes[index]]
            for column in (
                *(rows.unit, rows.scale, rows.direction, rows.role, rows.evidence),
                *(rows.delta, rows.emulator_delta),
            )
        )
        delta, of_emulator = (float(each) if each else None for each in deltas)
        facts = MetricFacts(
            unit, Scale(scale), Direction(direction), Role(role), Evidence(evidence), delta, of_emulator
        )
        plan, device_type, metric = where
        other = found.setdefault((plan, device_type, metric), facts)
        if other != facts:
            raise SamplesError(
                f"metric {metric} of plan {plan} on {device_type} is described in two ways: "
                f"{_difference(other, facts)}; use one description per metric"
            )
    return found


def _difference(one: MetricFacts, other: MetricFacts) -> str:
    return ", ".join(
        f"{name} " + " and ".join(sorted((repr(str(getattr(one, name))), repr(str(getattr(other, name))))))
        for name in MetricFacts.__dataclass_fields__
        if getattr(one, name) != getattr(other, name)
    )
