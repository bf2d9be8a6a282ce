"""Figures as text, the same in every report and on the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable

from wqlab_contracts.api.report import ArmSummary, Comparison
from wqlab_contracts.enums import Direction, Evidence, Scale, Verdict

VERDICT = {
    Verdict.IMPROVEMENT: "improvement",
    Verdict.REGRESSION: "REGRESSION",
    Verdict.EQUIVALENT: "equivalent",
    Verdict.BELOW_THRESHOLD: "below threshold",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.NO_EVIDENCE: "no evidence",
    Verdict.UNSUPPORTED: "unsupported",
    Verdict.FAILED: "FAILED",
}
SIGN = {
    Verdict.IMPROVEMENT: "+",
    Verdict.REGRESSION: "\u2212",
    Verdict.EQUIVALENT: "=",
    Verdict.BELOW_THRESHOLD: "\u2248",
    Verdict.INCONCLUSIVE: "?",
    Verdict.NO_EVIDENCE: "",
    Verdict.UNSUPPORTED: "/",
    Verdict.FAILED: "!",
}
"""Beside the word, for those who see no colour: the same wherever a verdict is shown, see docs/glossary.md."""
DIRECTION = {
    Direction.HIGHER_IS_BETTER: "higher is better",
    Direction.LOWER_IS_BETTER: "lower is better",
    Direction.NONE: "no direction is better",
}
VALUE_ONLY = "Throughput and latency on an emulated device are no evidence: its clock is not hardware."


def places(values: Iterable[float]) -> int:
    """Decimal places that give the largest of `values` about four digits, the same for a whole column."""
    finite = [abs(value) for value in values if math.isfinite(value)]
    largest = max(finite, default=0.0)
    if largest == 0 or all(value == int(value) and value < 1e15 for value in finite):
        return 0
    return min(12, max(0, 3 - math.floor(math.log10(largest)))) if largest < 1 else (2 if largest < 10_000 else 0)


def decimals(arms: Iterable[ArmSummary | None]) -> int:
    """Decimal places of a column of figures: none behind a mean that varies by tens."""
    known = [arm for arm in arms if arm is not None]
    deviations = [arm.stddev for arm in known if arm.stddev]
    if deviations and min(deviations) >= 10:
        return 0
    return places([arm.mean for arm in known] + deviations)


def number(value: float, decimals: int | None = None) -> str:
    """A plain number; huge ones in exponent form."""
    if abs(value) >= 1e12:
        return f"{value:.4g}"
    return f"{value:.{places([value]) if decimals is None else decimals}f}"


def spread(summary: ArmSummary, decimals: int) -> str:
    """`1159.40 ±1.34`; without a deviation just the mean."""
    mean = number(summary.mean, decimals)
    return mean if summary.stddev is None else f"{mean} ±{number(summary.stddev, decimals)}"


def figure(summary: ArmSummary, exact: bool) -> str:
    """One arm's figure where it stands alone, not in a column; a count has no spread."""
    return number(summary.mean) if exact else spread(summary, decimals([summary]))


def unit_of_effect(comparison: Comparison) -> str:
    if comparison.scale is Scale.RATIO:
        return "%"
    return "points" if comparison.unit in {"%", "percent"} else comparison.unit


def effect(comparison: Comparison) -> str:
    """`+1.24 %`, `-12.5 points`; empty where there is none to show."""
    if comparison.effect is None:
        return ""
    return f"{change(comparison)} {unit_of_effect(comparison)}".rstrip()


def change(comparison: Comparison) -> str:
    """The effect without its unit: between two counts a whole number, otherwise three digits that matter."""
    if comparison.effect is None:
        return ""
    counts = comparison.exact and comparison.scale is Scale.DIFFERENCE and unit_of_effect(comparison) != "points"
    if counts and abs(comparison.effect) < 1e12:
        return f"{comparison.effect:+.0f}" if comparison.effect else "0"
    return signed(comparison.effect)


def signed(value: float) -> str:
    """With a sign; three digits that matter."""
    size = abs(value)
    if size == 0:
        return "0.00"
    if size >= 1e6 or size < 0.001:
        return f"{value:+.2e}"
    decimals = 4 if size < 0.01 else 3 if size < 0.1 else 2 if size < 10 else 1 if size < 100 else 0
    return f"{value:+.{decimals}f}"


def ci(comparison: Comparison) -> str:
    """`[+0.81, +1.52]`; empty where there is none to show."""
    if comparison.ci95 is None:
        return ""
    return f"[{signed(comparison.ci95[0])}, {signed(comparison.ci95[1])}]"


def p_value(p: float) -> str:
    return "<.0001" if p < 0.0001 else f"{p:.4f}".lstrip("0") if p < 1 else "1"


def tests(comparison: Comparison) -> str:
    """`p .0031, adjusted .0062, sign-flip .0313`; empty where no test was made."""
    parts = []
    for name, p in (
        ("p", comparison.p),
        ("adjusted", comparison.p_adjusted),
        ("sign-flip", comparison.p_signflip),
    ):
        if p is not None:
            parts.append(f"{name} {p_value(p)}")
    return ", ".join(parts)


def threshold(comparison: Comparison) -> str:
    if comparison.delta is None:
        return ""
    return f"{comparison.delta:.3g} {unit_of_effect(comparison)}".rstrip()


def count(number_of: int, noun: str) -> str:
    return f"{number_of} {noun}" if number_of == 1 else f"{number_of} {noun}s"


def is_evidence(comparison: Comparison) -> bool:
    return comparison.evidence is not Evidence.NONE
