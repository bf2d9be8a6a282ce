"""List the comparisons to make: each cell with its reference, its pairs and the looks at its run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from wqlab_contracts.api.report import UnsupportedView
from wqlab_contracts.enums import PAIR, Arm, Question, Role
from wqlab_contracts.messages import Failure
from wqlab_contracts.messages.walk import Rung
from wqlab_contracts.specs import Metric, TestPlan

from . import looks
from .boots import Boot, BootTable, Cell, MetricFacts, Pairs, block_pairs, setting_pairs

BASELINE = "baseline"
"""Value of `Comparison.reference` where the candidate kernel is compared with the baseline kernel."""
CANDIDATE = "candidate"


def patch_name(patch: int) -> str:
    """Return the name of the kernel after a patch of a walk; `baseline` for 0."""
    return f"patch {patch}" if patch else BASELINE


@dataclass(frozen=True)
class TargetFacts:
    """Planned measurements of one plan on one device type, so that missing cells are reported."""

    plan: TestPlan
    device_type: str
    emulated: bool
    arms: Sequence[Arm]
    """Both for a series; the baseline alone for a settings study."""
    settings: Sequence[str]
    unsupported: Sequence[UnsupportedView] = ()
    failure: Failure | None = None
    """Failure that ended the run early, if any."""
    discarded: Mapping[Arm, int] = field(default_factory=dict)
    """Blocks discarded because a boot of this arm failed; not in the samples, even when they were repeated."""
    blocks_discarded: int = 0
    """All discarded blocks, including those discarded without a failed boot."""
    looks: Sequence[int] = ()
    """Planned numbers of blocks after which the run is looked at; empty if its size is fixed."""
    rungs: Sequence[Rung] = ()
    """Comparisons of single patches, if the series is walked."""
    spreads: Mapping[str, float] = field(default_factory=dict)
    """Metric -> standard deviation of a block's difference that the lab measured on equal kernels, on the scale of the
    differences (logarithms for `ratio`). A metric that was not measured is missing."""
    not_validated: Mapping[str, str] = field(default_factory=dict)
    """Modelled metric -> reason for which its verdicts are withheld; an empty text if the validation covers it.
    Verdicts on metrics that are not listed are withheld too."""
    floors: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    """(scenario, setting, metric) -> largest effect, in the unit of effects, of a control that differs by nops only; of
    modelled metrics whose control was measured."""
    not_exercised: str = ""
    """Reason for the verdict `not_exercised`: no line of the series ran. Empty if one ran, or if that is not known."""
    ended: bool = True
    """False at a look at a run of the same submission: further blocks of this one may follow."""


@dataclass(frozen=True)
class Asked:
    """One comparison to make: the cell, its reference and the measured pairs."""

    cell: Cell
    question: Question
    reference: str
    kernel: Arm | None
    facts: MetricFacts
    pairs: Pairs
    unpaired: Pairs
    """All boots of each side, paired or not: shown if there is no pair."""
    cuts: Sequence[looks.Cut] = ()
    """The looks at the run; none if its size was fixed."""
    arms: tuple[Arm, Arm] = PAIR
    """Question kernel: the arms of the reference and of the kernel that is compared with it."""
    patch: int | None = None
    """Number of the patch, if the comparison is of one patch of a walk."""

    @property
    def other(self) -> str:
        """Name of what is compared with the reference."""
        if self.question is Question.SETTING:
            return self.cell.setting
        return CANDIDATE if self.patch is None else patch_name(self.patch)


def questions(
    table: BootTable,
    known: Mapping[tuple[str, str], TargetFacts],
    references: Mapping[str, str],
    default_looks: Sequence[int] = (),
) -> Iterator[Asked]:
    """Yield every comparison to make. `default_looks`: those at runs that are not in `known`."""
    arms: dict[tuple[str, str], set[Arm]] = defaultdict(set)
    settings: dict[tuple[str, str], set[str]] = defaultdict(set)
    blocks: dict[tuple[str, str], set[int]] = defaultdict(set)
    cells: dict[Cell, MetricFacts] = {cell: table.facts(cell) for cell in table.cells}
    for cell, boots in table.cells.items():
        arms[cell.plan, cell.device_type] |= {boot.arm for boot in boots if boot.arm in PAIR}
        settings[cell.plan, cell.device_type].add(cell.setting)
        blocks[cell.plan, cell.device_type] |= {boot.block for boot in boots}
    for where, target in known.items():
        arms[where] |= set(target.arms) & set(PAIR)
        settings[where] |= set(target.settings)
        for cell, facts in _planned(target):
            cells.setdefault(cell, facts)
    cuts = {where: _cuts(sorted(seen), known.get(where), default_looks) for where, seen in blocks.items()}
    for cell, facts in cells.items():
        where = (cell.plan, cell.device_type)
        boots = table.cells.get(cell, {})
        if len(arms[where]) == 2:
            unpaired = Pairs(_of_arm(boots, Arm.BASELINE), _of_arm(boots, Arm.CANDIDATE))
            yield Asked(cell, Question.KERNEL, BASELINE, None, facts, block_pairs(boots), unpaired, cuts.get(where, ()))
        for rung in known[where].rungs if where in known else ():
            pair = (rung.reference_arm, rung.arm)
            unpaired = Pairs(_of_arm(boots, rung.reference_arm), _of_arm(boots, rung.arm))
            pairs, before = block_pairs(boots, pair), patch_name(rung.reference)
            yield Asked(
                cell, Question.KERNEL, before, None, facts, pairs, unpaired, cuts.get(where, ()), pair, rung.patch
            )
        reference = references.get(cell.plan)
        if reference is None or cell.setting == reference or reference not in settings[where]:
            continue
        others = table.cells.get(cell._replace(setting=reference), {})
        for arm in sorted(arms[where]):
            unpaired = Pairs(_of_arm(others, arm), _of_arm(boots, arm))
            pairs = setting_pairs(others, boots, arm)
            yield Asked(cell, Question.SETTING, reference, arm, facts, pairs, unpaired, cuts.get(where, ()))


def _cuts(blocks: Sequence[int], target: TargetFacts | None, default_looks: Sequence[int]) -> list[looks.Cut]:
    """Return the looks at a run that has the blocks of these numbers, ascending; none if its size was fixed."""
    planned = target.looks if target else default_looks
    if not planned:
        return []
    return [looks.Cut(blocks[look.blocks - 1], look.share) for look in looks.taken(planned, len(blocks))]


def _of_arm(boots: Mapping[Boot, float], arm: Arm) -> list[float]:
    return [value for boot, value in sorted(boots.items()) if boot.arm is arm]


def _planned(target: TargetFacts) -> Iterator[tuple[Cell, MetricFacts]]:
    for scenario in target.plan.scenarios:
        for setting in target.settings:
            for metric in target.plan.metrics:
                cell = Cell(target.plan.name, target.device_type, scenario.name, setting, metric.name)
                yield cell, facts_of(metric, target.emulated)


def facts_of(metric: Metric, emulated: bool) -> MetricFacts:
    """Return a plan metric's role, evidence and deltas on real or emulated devices."""
    return MetricFacts(
        *(metric.unit, metric.scale, metric.direction, metric.role(emulated), metric.evidence(emulated)),
        *(metric.delta, metric.emulator_delta if emulated else None),
    )


def sort_key(question: Asked, known: Mapping[tuple[str, str], TargetFacts]) -> tuple[object, ...]:
    """Return the sort key of a comparison: the plan's order if there is a plan, otherwise by name."""
    cell = question.cell
    target = known.get((cell.plan, cell.device_type))
    scenarios = [scenario.name for scenario in target.plan.scenarios] if target else []
    metrics = [metric.name for metric in target.plan.metrics] if target else []
    settings = list(target.settings) if target else []
    return (
        *(cell.plan, cell.device_type, question.question, question.kernel or "", question.patch or 0),
        *_rank(cell.scenario, scenarios),
        *(question.facts.role is not Role.PRIMARY, question.facts.role is not Role.SECONDARY),
        *_rank(cell.metric, metrics),
        *_rank(cell.setting, settings),
    )


def _rank(name: str, order: list[str]) -> tuple[int, str]:
    return (order.index(name), name) if name in order else (len(order), name)
