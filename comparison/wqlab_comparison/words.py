"""Format figures as text, the same in every report and on the terminal.

`contracts/tests/golden/numbers.json` holds the expected texts; the pages are tested against the same table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from wqlab_contracts.api.report import ArmSummary, Comparison, UnsupportedView
from wqlab_contracts.enums import SEEDED, Direction, Evidence, NotMeasuredCause, Question, Scale, Verdict

VERDICT = {
    Verdict.IMPROVEMENT: "improvement",
    Verdict.REGRESSION: "REGRESSION",
    Verdict.EQUIVALENT: "equivalent",
    Verdict.BELOW_THRESHOLD: "below threshold",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.WITHHELD: "withheld",
    Verdict.NOT_EXERCISED: "not exercised",
    Verdict.NO_EVIDENCE: "no evidence",
    Verdict.UNSUPPORTED: "unsupported",
    Verdict.FAILED: "FAILED",
}
"""Label of each verdict."""
SIGN = {
    Verdict.IMPROVEMENT: "+",
    Verdict.REGRESSION: "\u2212",
    Verdict.EQUIVALENT: "=",
    Verdict.BELOW_THRESHOLD: "\u2248",
    Verdict.INCONCLUSIVE: "?",
    Verdict.WITHHELD: "~",
    Verdict.NOT_EXERCISED: "\u2298",
    Verdict.NO_EVIDENCE: "",
    Verdict.UNSUPPORTED: "/",
    Verdict.FAILED: "!",
}
"""Sign shown beside the label, for readers who see no colour: the same wherever a verdict is shown, see
docs/glossary.md."""
DIRECTION = {
    Direction.HIGHER_IS_BETTER: "higher is better",
    Direction.LOWER_IS_BETTER: "lower is better",
    Direction.NONE: "no direction is better",
}
NOT_MEASURED = {
    NotMeasuredCause.LACKING: "not supported",
    NotMeasuredCause.SETTING_NOT_USED: "setting not used",
    NotMeasuredCause.NO_SAMPLES: "no samples",
    NotMeasuredCause.EVENTS_LOST: "events lost",
    NotMeasuredCause.UNRELIABLE: "unreliable data",
    NotMeasuredCause.RUN_FAILED: "run failed",
    NotMeasuredCause.UNPAIRED: "not paired",
    NotMeasuredCause.NOT_RUN: "not run",
}
"""Label of each cause of a missing figure."""
TIMES = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
"""Unit of time -> nanoseconds."""
INSTRUMENTED = "counts, not times"
"""What figures of an instrumented device are, beside each of its verdicts."""


def places(values: Iterable[float]) -> int:
    """Return the decimal places for a column: about four significant digits for the largest of `values`."""
    finite = [abs(value) for value in values if math.isfinite(value)]
    largest = max(finite, default=0.0)
    if largest == 0 or all(value == int(value) and value < 1e15 for value in finite):
        return 0
    return min(12, max(0, 3 - math.floor(math.log10(largest)))) if largest < 1 else (2 if largest < 10_000 else 0)


def decimals(arms: Iterable[ArmSummary | None]) -> int:
    """Return the decimal places for a column of means and standard deviations: 0 if all deviations are at least 10."""
    known = [arm for arm in arms if arm is not None]
    deviations = [arm.stddev for arm in known if arm.stddev]
    if deviations and min(deviations) >= 10:
        return 0
    return places([arm.mean for arm in known] + deviations)


def number(value: float, decimals: int | None = None) -> str:
    """Format a number; in exponent form from 1e12. A value that rounds to zero has no sign."""
    if abs(value) >= 1e12:
        return f"{value:.3e}"
    return f"{value:z.{places([value]) if decimals is None else decimals}f}"


def readable_time(values: Iterable[float], unit: str) -> tuple[float, str]:
    """Return a divisor and the unit of time in which `values` have few digits; other units stay.

    The largest value is at least 1 and below 100,000. If several units allow that, the smallest value is at least .1.
    Example: for 17112760 us 1e6 and `s`.
    """
    known = [abs(value) * TIMES.get(unit, 0.0) for value in values if value]
    fitting = [name for name, size in TIMES.items() if known and size <= max(known)]
    if not fitting:
        return 1.0, unit
    short = [name for name in fitting if max(known) < 1e5 * TIMES[name]] or fitting[-1:]
    best = [name for name in short if min(known) >= 0.1 * TIMES[name]] or short[:1]
    return TIMES[best[-1]] / TIMES[unit], best[-1]


def time(value: float, unit: str) -> str:
    """Format one time with three significant digits in a unit that fits: `17.1 s`."""
    divisor, name = readable_time([value], unit)
    return f"{float(f'{value / divisor:.3g}'):g} {name}"


def spread(summary: ArmSummary, decimals: int) -> str:
    """Format a mean with its standard deviation, if there is one: `1159.40 ±1.34`."""
    mean = number(summary.mean, decimals)
    return mean if summary.stddev is None else f"{mean} ±{number(summary.stddev, decimals)}"


def figure(summary: ArmSummary, exact: bool) -> str:
    """Format one arm's figure outside a column. An exact count has no spread."""
    return number(summary.mean) if exact else spread(summary, decimals([summary]))


def not_measured(entry: UnsupportedView) -> str:
    """Describe why something was not measured: `no samples: fio moved no data`; the reason alone if it is lacking."""
    if entry.cause is NotMeasuredCause.LACKING:
        return entry.reason
    return f"{NOT_MEASURED[entry.cause]}: {entry.reason}"


def cause(comparison: Comparison) -> str:
    """Return the label of the cause of a missing figure; empty if none is missing."""
    return NOT_MEASURED[comparison.not_measured] if comparison.not_measured else ""


def modes(comparison: Comparison) -> str:
    """Describe the arms whose boots fall into two modes; empty if none does.

    Example: `baseline boots fall into two modes, 3 near 850.00 MiB/s and 5 near 1000.00 MiB/s`.
    """
    kernels = comparison.question is Question.KERNEL
    names = ("baseline", "candidate") if kernels else (comparison.reference, comparison.setting)
    texts = []
    for name, arm in zip(names, (comparison.baseline, comparison.candidate), strict=True):
        if arm and arm.modes:
            decimals = places(mode.mean for mode in arm.modes)
            levels = [f"{mode.n} near {number(mode.mean, decimals)} {comparison.unit}".rstrip() for mode in arm.modes]
            texts.append(f"{name} boots fall into two modes, {' and '.join(levels)}")
    return "; ".join(texts)


def effect(comparison: Comparison) -> str:
    """Format an effect with its unit: `+1.24 %`, `-12.5 points`; empty without an effect."""
    if comparison.effect is None:
        return ""
    return f"{change(comparison)} {comparison.effect_unit}".rstrip()


def fewer_or_more(comparison: Comparison) -> str:
    """Format the effect on a count: `1.24 % fewer`, `0.31 % more`; empty without an effect or without a change."""
    if not comparison.effect:
        return ""
    unit = comparison.effect_unit
    return f"{signed(comparison.effect)[1:]} {unit} {'fewer' if comparison.effect < 0 else 'more'}"


def metric_name(metric: str) -> str:
    """Return a metric's name without its unit of time: `wait_p99` for `wait_p99_us`. Each figure has its own unit."""
    name, _, ending = metric.rpartition("_")
    return metric if ending not in TIMES or name.endswith("_per") else name


def metric(comparison: Comparison) -> str:
    """Return the name of a metric in a table; that of a model's figure begins with `modelled`."""
    name = metric_name(comparison.metric)
    return f"modelled {name}" if comparison.evidence is Evidence.MODELLED else name


def modelled(comparison: Comparison) -> str:
    """Format the effect on a modelled figure: `7.12 % more MiB/s (bandwidth)`, `3.10 % lower cache_p95`.

    A model is never faster or slower: the machine does not exist. Empty without an effect or without a change.
    """
    if not comparison.effect:
        return ""
    size = f"{signed(comparison.effect)[1:]} {comparison.effect_unit}".rstrip()
    name, rises = metric_name(comparison.metric), comparison.effect > 0
    for ending in ("_per_second", "_per_s"):
        if comparison.unit == "1/s" and name.endswith(ending):
            return f"{size} {'more' if rises else 'fewer'} {name.removesuffix(ending).replace('_', ' ')}/s"
    if comparison.unit.endswith("/s") and comparison.unit != "1/s":
        return f"{size} {'more' if rises else 'less'} {comparison.unit} ({name})"
    return f"{size} {'higher' if rises else 'lower'} {name}"


def claim(comparison: Comparison) -> str:
    """Format what became better or worse, briefly: `locks_per_fsync +12.9 %`, `locks_per_flush 34 -> 4`."""
    before, after = comparison.baseline, comparison.candidate
    if comparison.evidence is Evidence.MODELLED:
        return modelled(comparison)
    if comparison.exact and before and after:
        return f"{metric(comparison)} {number(before.mean)} -> {number(after.mean)}"
    if comparison.evidence is Evidence.INSTRUMENTED:
        return f"{fewer_or_more(comparison)} {metric(comparison)}"
    return f"{metric(comparison)} {effect(comparison)}"


def counted(comparison: Comparison) -> str:
    """Return what an exact count counts: `lock acquisitions per flush` for `locks_per_flush`, else the unit."""
    noun = {"locks": "lock acquisitions"}.get(comparison.unit, comparison.unit)
    _, _, per = comparison.metric.partition("_per_")
    return f"{noun} per {per.replace('_', ' ')}" if per else noun


def change(comparison: Comparison) -> str:
    """Format an effect without its unit: an integer between exact counts, otherwise three significant digits."""
    if comparison.effect is None:
        return ""
    counts = comparison.exact and comparison.scale is Scale.DIFFERENCE and comparison.effect_unit != "points"
    if counts and abs(comparison.effect) < 1e12:
        return f"{comparison.effect:+.0f}" if comparison.effect else "0"
    return signed(comparison.effect)


def signed(value: float) -> str:
    """Format a number with its sign and three significant digits."""
    size = abs(value)
    if size == 0:
        return "0.00"
    if size >= 1e6 or size < 0.001:
        return f"{value:+.2e}"
    decimals = 4 if size < 0.01 else 3 if size < 0.1 else 2 if size < 10 else 1 if size < 100 else 0
    return f"{value:+.{decimals}f}"


def amount(size: float, unit: str) -> str:
    """Format an unsigned size in the unit of an effect, with three significant digits: `0.5 points`."""
    return f"{size:.3g} {unit}".rstrip()


def ci(comparison: Comparison) -> str:
    """Format the 95 % interval: `[+0.81, +1.52]`; empty without an interval."""
    if comparison.ci95 is None:
        return ""
    return f"[{signed(comparison.ci95[0])}, {signed(comparison.ci95[1])}]"


def interval(comparison: Comparison) -> str:
    """Format the 95 % interval, or `exact` for a result without one: two counts, or no difference under any seed."""
    same = comparison.evidence in SEEDED and comparison.effect == 0
    return ci(comparison) or ("exact" if comparison.exact or same else "")


def p_value(p: float) -> str:
    """Format a p value: `.0031`; `<.0001` for smaller ones."""
    return "<.0001" if p < 0.0001 else f"{p:.4f}".lstrip("0") if p < 1 else "1"


def tests(comparison: Comparison) -> str:
    """Format the p values: `p .0031, adjusted .0062`; empty if no test was made."""
    figures = (("p", comparison.p), ("adjusted", comparison.p_adjusted))
    return ", ".join(f"{name} {p_value(p)}" for name, p in figures if p is not None)


def threshold(comparison: Comparison) -> str:
    """Format delta, the smallest relevant effect, with its unit; empty without a delta."""
    return "" if comparison.delta is None else amount(comparison.delta, comparison.effect_unit)


def count(number_of: int, noun: str) -> str:
    """Format a count with its noun: `1 block`, `3 blocks`."""
    return f"{number_of} {noun}" if number_of == 1 else f"{number_of} {noun}s"


def is_evidence(comparison: Comparison) -> bool:
    """Return True if the metric is evidence on this device."""
    return comparison.evidence is not Evidence.NONE
