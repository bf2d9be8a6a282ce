"""What a target's primary metric can show: from the spread between blocks that past runs of the plan had. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wqlab_comparison import ALPHA, LEAST_BLOCKS, smallest_effect
from wqlab_contracts.api.quotes import DetectableEffect
from wqlab_contracts.enums import Arm, Evidence, Role, Scale
from wqlab_contracts.specs import Metric, TestPlan

_EXACT_BLOCKS = 2


@dataclass(frozen=True)
class PastValue:
    """One boot's value of the primary metric in a past run of the plan on the device type."""

    run_id: int
    block: int
    arm: Arm
    scenario: str
    setting: str
    value: float


def primary(plan: TestPlan, emulated: bool) -> Metric | None:
    return next((metric for metric in plan.metrics if metric.role(emulated) is Role.PRIMARY), None)


def detectable(
    plan: TestPlan, metric: Metric, *, emulated: bool, series: bool, blocks: int, past: Sequence[PastValue]
) -> DetectableEffect:
    """`series`: kernels are compared, else settings. The widest spread over scenarios and settings counts."""
    differences = _differences(past, metric.scale, plan.reference_setting, series)
    measured = len({(value.run_id, value.block) for value in past})
    evidence = metric.evidence(emulated)
    exact = evidence is Evidence.MECHANISM and _exact(past)
    deviation = _widest(differences)
    effect = None if deviation is None or exact else smallest_effect(blocks, deviation, ALPHA)
    if effect is not None and metric.scale is Scale.RATIO:
        effect = math.expm1(effect) * 100
    return DetectableEffect(
        metric=metric.name,
        unit=metric.unit,
        scale=metric.scale,
        direction=metric.direction,
        evidence=evidence,
        delta=metric.delta,
        effect=effect,
        blocks_measured=measured,
        exact=exact,
        why=_why(blocks, measured, deviation, exact),
    )


def _why(blocks: int, measured: int, deviation: float | None, exact: bool) -> str:
    if exact:
        enough = "" if blocks >= _EXACT_BLOCKS else f"; {_EXACT_BLOCKS} blocks are needed"
        return f"in {measured} past blocks every boot of a kernel gave the same count: any difference shows{enough}"
    if blocks < LEAST_BLOCKS:
        return (
            f"under {LEAST_BLOCKS} blocks no test can tell a difference from noise, unless every boot gives one count"
        )
    if deviation is None:
        return "the spread between blocks was never measured here"
    return f"at the spread of {measured} past blocks, found in about four cases of five"


def _differences(
    past: Sequence[PastValue], scale: Scale, reference: str, series: bool
) -> Mapping[tuple[int, str, str, str], list[float]]:
    """(run, scenario, setting, kernel) -> candidate less baseline of each whole block, or a setting less the reference
    setting in the same boot; as logarithms for scale ratio."""
    boots: dict[tuple[int, int, str], dict[tuple[Arm, str], float]] = defaultdict(dict)
    for each in past:
        boots[each.run_id, each.block, each.scenario][each.arm, each.setting] = each.value
    found: dict[tuple[int, str, str, str], list[float]] = defaultdict(list)
    for (run_id, _, scenario), values in boots.items():
        for (arm, setting), value in values.items():
            other = (Arm.BASELINE, setting) if series else (arm, reference)
            if (arm is Arm.BASELINE if series else setting == reference) or other not in values:
                continue
            d = _difference(values[other], value, scale)
            if d is not None:
                found[run_id, scenario, setting, "" if series else arm.value].append(d)
    return found


def _difference(before: float, after: float, scale: Scale) -> float | None:
    if scale is Scale.DIFFERENCE:
        return after - before
    return math.log(after / before) if before > 0 and after > 0 else None


def _widest(differences: Mapping[tuple[int, str, str, str], list[float]]) -> float | None:
    """The largest standard deviation of any scenario and setting, pooled over its runs: each run's own effect is taken
    out, because another series has another. None when no run has two blocks."""
    squares: dict[tuple[str, str, str], float] = defaultdict(float)
    freedom: dict[tuple[str, str, str], int] = defaultdict(int)
    for (_, *cell), values in differences.items():
        mean = sum(values) / len(values)
        squares[cell[0], cell[1], cell[2]] += sum((value - mean) ** 2 for value in values)
        freedom[cell[0], cell[1], cell[2]] += len(values) - 1
    return max((math.sqrt(squares[cell] / freedom[cell]) for cell in squares if freedom[cell]), default=None)


def _exact(past: Sequence[PastValue]) -> bool:
    """Whether every boot of a kernel gave the same whole number, wherever at least two blocks were measured."""
    cells: dict[tuple[int, Arm, str, str], list[float]] = defaultdict(list)
    for value in past:
        cells[value.run_id, value.arm, value.scenario, value.setting].append(value.value)
    whole = [values for values in cells.values() if len(values) >= _EXACT_BLOCKS]
    return bool(whole) and all(values[0].is_integer() and len(set(values)) == 1 for values in whole)
