"""Titles, sentences and tables of a sweep, shared by all formats. Pure."""

from __future__ import annotations

from wqlab_comparison import words
from wqlab_contracts.api.sweeps import SweepCurve, SweepPoint, SweepReport
from wqlab_contracts.enums import Question, Verdict

HEADING = "Sweep"
TABLES = 4
"""Curves with a table in a report for a mailing list; of the others the sentence is enough."""
NOTE = (
    'Ranges follow from the verdicts alone: "the same" is equivalent or below the threshold, and a point that was not '
    "decided belongs to no range."
)
NO_FIGURES = "No point has a figure yet."


def title(sweep: SweepReport) -> str:
    return f"{HEADING}: {sweep.title}"


def name(curve: SweepCurve, sweep: SweepReport) -> str:
    """Return what the curve is of: `fsync kernel_instructions_per_op`, with the plan if there are several."""
    plans = {each.plan for each in sweep.curves}
    setting = curve.setting
    if curve.question is Question.SETTING:
        kernels = {each.kernel for each in sweep.curves}
        setting += f" against {curve.reference}" + (f" on the {curve.kernel} kernel" if len(kernels) > 1 else "")
    parts = (curve.plan if len(plans) > 1 else "", curve.scenario, setting, words.metric_name(curve.metric))
    return " ".join(part for part in parts if part)


def sentence(curve: SweepCurve, sweep: SweepReport) -> str:
    return f"{name(curve, sweep)}: {curve.sentence}"


def header(sweep: SweepReport) -> list[str]:
    return [sweep.axis, "change", "95 % interval", "seeds", "verdict", "noise floor"]


def rows(curve: SweepCurve) -> list[list[str]]:
    """Return one row per point, by ascending value."""
    return [
        [
            f"{point.value}",
            change(point, curve),
            interval(point),
            f"{point.seeds or ''}",
            verdict(point),
            _floor(point, curve) if curve.question is Question.KERNEL else "not known",
        ]
        for point in curve.points
    ]


def change(point: SweepPoint, curve: SweepCurve) -> str:
    """Format an effect with its unit; empty without one."""
    return "" if point.effect is None else f"{words.signed(point.effect)} {curve.effect_unit}".rstrip()


def interval(point: SweepPoint) -> str:
    if point.ci95 is not None:
        return f"[{words.signed(point.ci95[0])}, {words.signed(point.ci95[1])}]"
    return "exact" if point.exact else ""


def verdict(point: SweepPoint) -> str:
    return words.VERDICT[point.verdict] if point.verdict else "not measured"


def reasons(curve: SweepCurve, sweep: SweepReport) -> list[str]:
    """Return why points have no effect, each reason once with its points: `8 L3 domains: kernel panic`."""
    found: dict[str, list[int]] = {}
    for point in curve.points:
        if point.reason:
            found.setdefault(point.reason, []).append(point.value)
    return [f"{sweep.axis} {', '.join(map(str, values))}: {reason}" for reason, values in found.items()]


def has_figures(curve: SweepCurve) -> bool:
    """Return True if the curve has a point to draw."""
    return any(point.effect is not None and point.verdict is not Verdict.FAILED for point in curve.points)


def _floor(point: SweepPoint, curve: SweepCurve) -> str:
    if point.noise_floor is not None:
        return words.amount(point.noise_floor, curve.effect_unit)
    return "" if point.effect is None else "not measured"
