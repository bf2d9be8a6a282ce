"""Measure the effect of one cell from its pairs of boot values, then decide its verdict.

`measure` uses one cell alone. `decide` follows separately because adjusted p values need all cells of the family.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wqlab_contracts.api.report import ArmSummary
from wqlab_contracts.enums import SEEDED, Direction, Evidence, NotMeasuredCause, Question, Scale, Verdict
from wqlab_contracts.units import effect_unit

from . import effect, looks, power, significance
from .boots import MetricFacts, Pairs
from .csvfile import SHARE_UNITS
from .looks import Part
from .modes import find_modes
from .words import amount, count, number, p_value

EXACT_BLOCKS = 2
"""Number of blocks from which equal counts in every boot are a result."""
_COUNTED = frozenset({Evidence.MECHANISM, Evidence.INSTRUMENTED})
"""Evidence that is counted and not taken with a clock."""
_CONFIDENCE = 0.95
TIME_UNITS = frozenset({"s", "ms", "us", "µs", "ns", "sec", "msec", "usec", "nsec", "seconds"})
DEFAULT_DELTA_SHARE = 0.5
DEFAULT_DELTA_LATENCY = 5.0
DEFAULT_DELTA_RATIO = 1.0


@dataclass(frozen=True)
class Measured:
    """Statistics of the pairs of one cell, before its p value is adjusted over the family."""

    n: int
    reference: ArmSummary | None = None
    candidate: ArmSummary | None = None
    differences: effect.Floats | None = None
    parts: Sequence[Part] = ()
    """The differences that each look sees; the last part has all."""
    middle: float = 0.0
    """The estimate, on the scale of the differences."""
    spread: float | None = None
    """Standard deviation of a block's difference as the lab measured it before, on the scale of the differences."""
    counts: tuple[float, float] | None = None
    """The integer of each arm, if every boot of the arm gave the same one: the two integers are the result."""
    effect: float | None = None
    """Percent for scale `ratio`, the metric's unit for `difference`."""
    ci95: tuple[float, float] | None = None
    p: float | None = None
    """Of the exact test, over all looks."""
    delta: float = 0.0
    turns: bool = False
    """True if `delta` is what the turn-taking of the emulator changes."""
    identical: bool = False
    """True if both arms had the same figure under each seed."""
    undecidable: str = ""
    """Reason why no number of blocks permits a test of these values; empty otherwise."""


@dataclass(frozen=True)
class Decision:
    """Verdict of one cell, with its reason."""

    verdict: Verdict | None
    reason: str
    blocks_needed: int | None = None
    """Blocks needed in addition to the measured ones; None if no number would decide, or none is needed."""
    not_measured: NotMeasuredCause | None = None
    """Cause, if a figure is missing."""


def summarise_arm(values: list[float]) -> ArmSummary | None:
    """Return mean and standard deviation over boots; None without a boot."""
    if not values:
        return None
    mean, deviation = significance.mean_and_deviation(np.array(values))
    return ArmSummary(mean=mean, stddev=None if math.isnan(deviation) else deviation, n=len(values))


def default_delta(metric: str, facts: MetricFacts, reference: float) -> float:
    """Return the smallest relevant effect of a metric that states none: percent (ratio) or the metric's unit
    (difference)."""
    if facts.scale is Scale.RATIO:
        is_time = facts.direction is Direction.LOWER_IS_BETTER and facts.unit.lower() in TIME_UNITS
        return DEFAULT_DELTA_LATENCY if is_time or "latency" in metric.lower() else DEFAULT_DELTA_RATIO
    if facts.unit.lower() in SHARE_UNITS:
        return DEFAULT_DELTA_SHARE
    return abs(reference) / 100


def measure(  # noqa: PLR0917 - what a cell is judged from
    metric: str,
    facts: MetricFacts,
    pairs: Pairs,
    cuts: Sequence[looks.Cut] = (),
    spread: float | None = None,
    question: Question = Question.KERNEL,
) -> Measured:
    """Return effect, interval and p values of one cell; only the two means for a metric that is no evidence.

    `cuts`: the looks at the run; without any, its size was fixed. `spread`: see `Measured`. `question`: whether the
    sides are two kernels or two settings.
    """
    n = len(pairs.reference)
    reference, candidate = summarise_arm(pairs.reference), summarise_arm(pairs.candidate)
    if reference is None or candidate is None:
        return Measured(0)
    if facts.evidence is Evidence.NONE:
        return Measured(n, without_deviation(reference), without_deviation(candidate))
    a, b = np.array(pairs.reference), np.array(pairs.candidate)
    delta = default_delta(metric, facts, reference.mean) if facts.delta is None else facts.delta
    if _is_constant_count(a, b, facts.evidence):
        counts = (float(a[0]), float(b[0]))
        size = _count_effect(*counts, facts.scale)
        any_difference = facts.delta is None and facts.evidence is Evidence.MECHANISM
        return Measured(n, reference, candidate, counts=counts, effect=size, delta=0.0 if any_difference else delta)
    if facts.evidence in SEEDED and (a == b).all():
        return Measured(n, reference, candidate, effect=0.0, delta=delta, identical=True)
    # A kernel whose share is the same in every boot (100 % under strict) guarantees it, and another kernel may break
    # that. What one setting guarantees says nothing about another.
    guaranteed = question is Question.KERNEL and bool((a == a[0]).all())
    turns = facts.emulator_delta is not None and facts.emulator_delta > delta and not guaranteed
    if turns:
        delta = facts.emulator_delta or delta
    reference, candidate = _with_modes(reference, candidate, pairs, _size(delta, facts.scale, reference.mean))
    d = effect.differences(a, b, facts.scale)
    if d is None:
        text = (
            f"{metric} has values of zero or below, which have no ratio: give it the scale `difference`"
            if facts.scale is Scale.RATIO
            else f"the differences of {metric} are too large for a number"
        )
        return Measured(n, reference, candidate, delta=delta, undecidable=text)
    middle = effect.estimate(d)
    estimate = effect.to_display(middle, facts.scale)
    if not math.isfinite(estimate):
        text = f"the ratio of {metric} is too large for a number"
        return Measured(n, reference, candidate, delta=delta, undecidable=text)
    has_spread = significance.has_spread(d)
    flat = n >= EXACT_BLOCKS and not has_spread and bool((d != 0).any())
    # There is no noise besides the seed, so an equal change under each seed is tested like any other.
    testable = has_spread or (flat and facts.evidence in SEEDED)
    parts = looks.cut(d, pairs.blocks, cuts)
    ends = None if flat else looks.interval(parts, middle)
    return Measured(
        n,
        reference,
        candidate,
        differences=d,
        parts=parts,
        middle=middle,
        spread=spread,
        effect=estimate,
        ci95=ends and (effect.to_display(ends[0], facts.scale), effect.to_display(ends[1], facts.scale)),
        p=looks.smallest_p(parts, significance.sign_flip) if testable else None,
        delta=delta,
        turns=turns,
        undecidable=f"{metric} differs by the same in every block, so there is no noise to test against; a count needs "
        "the same whole number in every boot of an arm"
        if flat and not testable and n >= power.LEAST_BLOCKS
        else "",
    )


def _size(delta: float, scale: Scale, reference: float) -> float:
    """Return delta in the unit of the values."""
    return abs(reference) * delta / 100 if scale is Scale.RATIO else delta


def _with_modes(
    reference: ArmSummary, candidate: ArmSummary, pairs: Pairs, least: float
) -> tuple[ArmSummary, ArmSummary]:
    """Add the modes of the boots on the device with the most boots (of several, the first by name)."""
    devices = pairs.devices
    most = max(sorted(set(devices)), key=devices.count)
    values = [
        [value for value, device in zip(arm, devices, strict=True) if device == most]
        for arm in (pairs.reference, pairs.candidate)
    ]
    found = find_modes(values[0], values[1], least)
    return reference.model_copy(update={"modes": found[0]}), candidate.model_copy(update={"modes": found[1]})


def without_deviation(arm: ArmSummary) -> ArmSummary:
    """Return the arm without its standard deviation, which could suggest significance for a figure that is no
    evidence."""
    return ArmSummary(mean=arm.mean, stddev=None, n=arm.n)


def decide(facts: MetricFacts, measured: Measured, p_adjusted: float | None, family: int) -> Decision:
    """Return the verdict of a measured cell. `family` is the number of tests that share the significance level."""
    if facts.evidence is Evidence.NONE:
        return Decision(Verdict.NO_EVIDENCE, "value only: the clock of an emulated device is not hardware")
    if measured.counts:
        return _decide_counts(facts, measured, *measured.counts)
    if measured.identical:
        return _decide_identical(measured, "count" if facts.evidence in _COUNTED else "figure")
    if measured.undecidable:
        return Decision(Verdict.INCONCLUSIVE, measured.undecidable)
    d = measured.differences
    if d is None or measured.effect is None:
        return Decision(Verdict.INCONCLUSIVE, f"no {facts.replicate} was measured in both arms", power.LEAST_BLOCKS)
    if measured.n < power.LEAST_BLOCKS:
        return _decide_too_few_blocks(facts, measured, d, family)
    if measured.p is None:  # no difference was ever seen
        return Decision(Verdict.EQUIVALENT, f"no difference in any of {measured.n} {facts.replicate}s")
    adjusted = measured.p if p_adjusted is None else p_adjusted
    over = looks.describe(measured.parts)
    tested = f"p {p_value(measured.p)}{over}"
    if adjusted > measured.p:
        tested += f", {p_value(adjusted)} adjusted"
    bounds = effect.bounds(measured.delta, facts.scale)
    limit = _format_delta(measured, facts)
    is_within = looks.is_within(measured.parts, measured.middle, *bounds)
    if adjusted <= significance.ALPHA:
        near = _near_end(measured)
        if facts.direction is Direction.NONE:
            changed = "it changed, but neither direction of this metric is better"
            if near >= measured.delta:
                return Decision(None, f"{tested}; {changed}")
        elif near >= measured.delta:
            return Decision(_verdict_of_change(facts.direction, measured.effect), f"{tested}; at least {limit}")
        if is_within:
            return Decision(Verdict.BELOW_THRESHOLD, f"{tested}; significant, but less than {limit}")
        tested += f"; it changed, but perhaps by less than {limit}"
    elif is_within:
        return Decision(Verdict.EQUIVALENT, f"90 % interval{over} within ±{limit}")
    return _decide_later(facts, measured, d, tested, family)


def _near_end(measured: Measured) -> float:
    """Return the size of the end of the interval that is closer to zero; that of the effect if all blocks agree."""
    assert measured.effect is not None  # noqa: S101 - the caller has it
    return min(map(abs, measured.ci95)) if measured.ci95 else abs(measured.effect)


def _decide_later(facts: MetricFacts, measured: Measured, d: effect.Floats, tested: str, family: int) -> Decision:
    """Return `inconclusive` with the number of further blocks that decide in four cases of five.

    It is promised only if the lab has measured the spread of this metric before: a few blocks may agree by chance.
    """
    noun = facts.replicate
    share = looks.next_share(measured.parts) * significance.ALPHA
    bounds = effect.bounds(measured.delta, facts.scale)
    total = power.blocks_that_decide(d, measured.middle, bounds, (share / family, share), spread=measured.spread)
    if total is None:
        limit = _format_delta(measured, facts)
        text = f"{tested}; at this spread {power.MOST_BLOCKS} {noun}s would not decide about {limit}"
        return Decision(Verdict.INCONCLUSIVE, text)
    more = total - measured.n
    return Decision(Verdict.INCONCLUSIVE, f"{tested}; {_describe_more(more, noun, measured.spread)}", more)


def _describe_more(more: int, noun: str, spread: float | None) -> str:
    if spread is not None:
        return f"{count(more, f'more {noun}')} would probably decide"
    return f"at least {count(more, f'more {noun}')} needed"


def _is_constant_count(a: effect.Floats, b: effect.Floats, evidence: Evidence) -> bool:
    """Return True if every boot of each arm gave the same integer.

    Figures taken with a clock can agree by rounding, so they need LEAST_BLOCKS blocks instead of EXACT_BLOCKS. An
    instrumented count is divided by its operations, so it need not be an integer.
    """
    needed = EXACT_BLOCKS if evidence in _COUNTED else power.LEAST_BLOCKS
    constant = bool((a == a[0]).all() and (b == b[0]).all())
    integers = evidence is Evidence.INSTRUMENTED or (float(a[0]).is_integer() and float(b[0]).is_integer())
    return len(a) >= needed and constant and integers


def _count_effect(before: float, after: float, scale: Scale) -> float | None:
    """Return the effect between two counts; None if a percentage is undefined (from zero, or across zero)."""
    if scale is Scale.DIFFERENCE:
        return after - before
    if before == after:
        return 0.0
    percent = (after / before - 1) * 100 if before > 0 and after >= 0 else math.inf
    return percent if math.isfinite(percent) else None


def _decide_counts(facts: MetricFacts, measured: Measured, before: float, after: float) -> Decision:
    """Return the verdict of a constant count per arm, which needs no test."""
    boots = f"in every boot ({measured.n} of each)"
    if before == after:
        return Decision(Verdict.EQUIVALENT, f"exactly {number(before)} {boots}; {_excluded(measured.n, 'boot')}")
    text = f"exactly {number(before)} and {number(after)} {boots}"
    if measured.effect is not None and abs(measured.effect) < measured.delta:
        return Decision(Verdict.BELOW_THRESHOLD, f"{text}; less than {_format_delta(measured, facts)}")
    return Decision(_verdict_of_change(facts.direction, after - before), text)


def _decide_identical(measured: Measured, noun: str) -> Decision:
    """Return the verdict of a count, or another figure, that is the same with both kernels under each seed."""
    if measured.n < EXACT_BLOCKS:
        return Decision(Verdict.INCONCLUSIVE, f"the same {noun} with both kernels, but one seed is not enough", 1)
    text = f"exactly the same {noun} with both kernels in each of {measured.n} seeds"
    return Decision(Verdict.EQUIVALENT, f"{text}; {_excluded(measured.n, 'seed')}")


def _excluded(n: int, noun: str) -> str:
    """Return which differences n boots or seeds without one exclude: the upper limit of a share of which none was seen
    (C. J. Clopper, E. S. Pearson 1934), at 95 %."""
    share = math.ceil(100 * (1 - (1 - _CONFIDENCE) ** (1 / n)))
    return f"excludes a difference in {share} % of {noun}s or more"


def _decide_too_few_blocks(facts: MetricFacts, measured: Measured, d: effect.Floats, family: int) -> Decision:
    """Return `inconclusive` with the number of blocks that are missing."""
    more = power.LEAST_BLOCKS - measured.n
    noun = facts.replicate
    if facts.evidence in _COUNTED and measured.n < EXACT_BLOCKS:
        text = f"one {noun} is not enough: one more {noun} decides a constant count, otherwise"
        return Decision(Verdict.INCONCLUSIVE, f"{text} {more} more", more)
    text = f"n too small: {count(measured.n, noun)}, no test can reach p <= .05 with fewer than {power.LEAST_BLOCKS}"
    if measured.spread is not None:
        return _decide_later(facts, measured, d, text, family)
    return Decision(Verdict.INCONCLUSIVE, f"{text}; {_describe_more(more, noun, None)}", more)


def _verdict_of_change(direction: Direction, change: float) -> Verdict | None:
    """Return improvement or regression; None if neither direction is better."""
    if direction is Direction.NONE:
        return None
    rises = change > 0
    return Verdict.IMPROVEMENT if rises == (direction is Direction.HIGHER_IS_BETTER) else Verdict.REGRESSION


def _format_delta(measured: Measured, facts: MetricFacts) -> str:
    limit = _format_amount(measured.delta, facts)
    return f"{limit} (what the emulator's turn-taking changes)" if measured.turns else limit


def _format_amount(size: float, facts: MetricFacts) -> str:
    return amount(size, effect_unit(facts.scale, facts.unit))
