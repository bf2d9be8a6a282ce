"""The first sentence of a letter: what was found, on which machine, and what kind of evidence that is. Pure."""

from __future__ import annotations

from wqlab_comparison import words
from wqlab_contracts.api.report import Comparison, TargetReport
from wqlab_contracts.enums import VERDICT_ORDER, Evidence, Question, Role, Verdict

from ..content import cells, failures, system_text
from .audience import Audience, is_told

NATURE = {
    "emulated": "counted on an emulator, nothing about speed",
    "instrumented": "exact counts of an emulator, nothing about speed",
    "modelled": "from the stated costs of a model, not measured",
}
"""What figures are evidence of, by kind of device."""
EXACT = "a code path count, nothing about speed"


def sentence(target: TargetReport, audience: Audience) -> str:
    """Return what was found on a target: `34 to 4 lock acquisitions per flush, on an emulated 32-CPU guest (xeon-2s); a
    code path count, nothing about speed.`"""
    cell = leading(target, audience)
    if target.verdict is Verdict.FAILED or cell is None:
        return f"{failures.name(target)}: {words.VERDICT[target.verdict]}: {target.headline}".rstrip(".") + "."
    several = len({each.scenario for each in target.comparisons}) > 1
    place = " ".join(filter(None, [cell.scenario if several else "", cell.setting]))
    what = f"{place}: {_change(cell)}" if place else _change(cell)
    if not target.emulated and cell.verdict is not None:
        what = f"{words.VERDICT[cell.verdict]}: {what}"
    return f"{what}, {_where(target)}; {_nature(target, cell)}."


def leading(target: TargetReport, audience: Audience) -> Comparison | None:
    """Return the comparison of kernels for the first sentence: one with the target's verdict if there is one, of a
    primary metric if possible. None if kernels were not compared, as in a study of settings."""
    told = [
        cell
        for cell in cells.judged(target.comparisons)
        if cell.question is Question.KERNEL and is_told(cell, audience) and cell.verdict is not None
    ]
    told = [cell for cell in told if cell.effect is not None]
    return min(told, key=lambda cell: _importance(target, cell), default=None)


def _importance(target: TargetReport, cell: Comparison) -> tuple[bool, bool, int]:
    """Return the rank of a comparison: one that made the target's verdict first, whatever its role."""
    order = VERDICT_ORDER.index(cell.verdict) if cell.verdict is not None else len(VERDICT_ORDER)
    return cell.verdict is not target.verdict, cell.role is not Role.PRIMARY, order


def _change(cell: Comparison) -> str:
    before, after = cell.baseline, cell.candidate
    if cell.exact and before is not None and after is not None:
        if before.mean == after.mean:
            return f"{words.number(after.mean)} {words.counted(cell)} with and without the series"
        return f"{words.number(before.mean)} to {words.number(after.mean)} {words.counted(cell)}"
    interval = f", 95 % interval {words.ci(cell)}" if cell.ci95 is not None else ""
    if cell.evidence is Evidence.MODELLED and (text := words.modelled(cell)):
        return f"modelled {text}{interval}"
    if cell.verdict is Verdict.EQUIVALENT:
        return f"{words.metric(cell)} changes by less than {words.threshold(cell)}{interval}"
    return f"{words.metric(cell)} {words.effect(cell)}{interval}"


def _where(target: TargetReport) -> str:
    measured = target.environment.topology if target.environment else None
    cpus = measured.cpus if measured is not None else target.declared_topology.cpus
    kind = system_text.kind(target)
    if kind == "hardware":
        facts = target.environment.facts if target.environment else {}
        model = f"{facts['cpu model']}, " if facts.get("cpu model") else ""
        return f"on {target.environment.device if target.environment else target.device_type} ({model}{cpus} CPUs)"
    what = {"modelled": f"a modelled {cpus}-CPU machine"}.get(kind, f"an emulated {cpus}-CPU guest")
    return f"on {what} ({target.device_type})"


def _nature(target: TargetReport, cell: Comparison) -> str:
    kind = system_text.kind(target)
    boots = cell.candidate.n if cell.candidate else 0
    if kind == "hardware":
        return f"measured, {words.count(boots, 'boot')} of each kernel"
    return EXACT if kind == "emulated" and cell.exact else NATURE[kind]
