"""Compare all cells of one submission: measure, adjust p values over families, decide verdicts.

`compare` is the whole method: boots from samples, pairs from boots, an effect per cell, p values adjusted over their
family, a verdict per cell. docs/comparison.md describes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from wqlab_contracts.api.report import Comparison, UnsupportedView
from wqlab_contracts.enums import (
    UNEXPECTED_CAUSES,
    Arm,
    ErrorKind,
    Evidence,
    NotMeasuredCause,
    Question,
    Role,
    Verdict,
)
from wqlab_contracts.messages import Failure
from wqlab_contracts.specs import Metric, TestPlan

from . import significance
from .boots import Boot, BootTable, Cell, Lost, MetricFacts, Pairs, block_pairs, boot_table, setting_pairs
from .judge import Decision, Measured, decide, measure, summarise_arm, without_deviation
from .power import LEAST_BLOCKS
from .samples import Samples
from .significance import Adjusted
from .survivors import withhold_verdict
from .words import not_measured

BASELINE = "baseline"
"""`Comparison.reference` of the question about the kernel."""
CANDIDATE = "candidate"


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


@dataclass(frozen=True)
class _Question:
    """One comparison to make: the cell, its reference and the measured pairs."""

    cell: Cell
    question: Question
    reference: str
    kernel: Arm | None
    facts: MetricFacts
    pairs: Pairs
    unpaired: Pairs
    """All boots of each side, paired or not: shown if there is no pair."""


def compare(
    samples: Samples | None,
    targets: Sequence[TargetFacts] = (),
    references: Mapping[str, str] | str | None = None,
) -> list[Comparison]:
    """Compare everything in one submission; call it once with all runs, since families span runs.

    `samples` holds valid boots only (None: there are none). `targets` states what was planned: it gives unmeasured
    cells a verdict and the result its order; without it only the samples count. `references` is the
    reference setting, of all plans or by plan name; by default the plan's own, and without one settings are not
    compared with each other. The order of the samples makes no difference. Raises SamplesError for samples that
    contradict themselves.
    """
    table = BootTable({}, {}) if samples is None or len(samples) == 0 else boot_table(samples)
    known = {(target.plan.name, target.device_type): target for target in targets}
    chosen = {target.plan.name: target.plan.reference_setting for target in targets}
    if isinstance(references, str):
        chosen = {cell.plan: references for cell in table.cells} | dict.fromkeys(chosen, references)
    elif references is not None:
        chosen |= references
    questions = sorted(_questions(table, known, chosen), key=lambda question: _sort_key(question, known))
    measured = [measure(question.cell.metric, question.facts, question.pairs) for question in questions]
    adjusted = _adjust(questions, measured)
    return [
        _comparison(question, figures, family, known.get((question.cell.plan, question.cell.device_type)))
        for question, figures, family in zip(questions, measured, adjusted, strict=True)
    ]


# --- questions ----------------------------------------------------------------------------------------------------


def _questions(
    table: BootTable, known: Mapping[tuple[str, str], TargetFacts], references: Mapping[str, str]
) -> Iterator[_Question]:
    arms: dict[tuple[str, str], set[Arm]] = defaultdict(set)
    settings: dict[tuple[str, str], set[str]] = defaultdict(set)
    cells: dict[Cell, MetricFacts] = {cell: table.facts(cell) for cell in table.cells}
    for cell, boots in table.cells.items():
        arms[cell.plan, cell.device_type] |= {boot.arm for boot in boots}
        settings[cell.plan, cell.device_type].add(cell.setting)
    for where, target in known.items():
        arms[where] |= set(target.arms)
        settings[where] |= set(target.settings)
        for cell, facts in _planned(target):
            cells.setdefault(cell, facts)
    for cell, facts in cells.items():
        where = (cell.plan, cell.device_type)
        boots = table.cells.get(cell, {})
        if len(arms[where]) == 2:
            unpaired = Pairs(_of_arm(boots, Arm.BASELINE), _of_arm(boots, Arm.CANDIDATE))
            yield _Question(cell, Question.KERNEL, BASELINE, None, facts, block_pairs(boots), unpaired)
        reference = references.get(cell.plan)
        if reference is None or cell.setting == reference or reference not in settings[where]:
            continue
        others = table.cells.get(cell._replace(setting=reference), {})
        for arm in sorted(arms[where]):
            unpaired = Pairs(_of_arm(others, arm), _of_arm(boots, arm))
            pairs = setting_pairs(others, boots, arm)
            yield _Question(cell, Question.SETTING, reference, arm, facts, pairs, unpaired)


def _of_arm(boots: Mapping[Boot, float], arm: Arm) -> list[float]:
    return [value for boot, value in sorted(boots.items()) if boot.arm is arm]


def _planned(target: TargetFacts) -> Iterator[tuple[Cell, MetricFacts]]:
    for scenario in target.plan.scenarios:
        for setting in target.settings:
            for metric in target.plan.metrics:
                cell = Cell(target.plan.name, target.device_type, scenario.name, setting, metric.name)
                yield cell, facts_of(metric, target.emulated)


def facts_of(metric: Metric, emulated: bool) -> MetricFacts:
    """Return a plan metric's role, evidence and delta on real or emulated devices."""
    return MetricFacts(
        metric.unit, metric.scale, metric.direction, metric.role(emulated), metric.evidence(emulated), metric.delta
    )


def _sort_key(question: _Question, known: Mapping[tuple[str, str], TargetFacts]) -> tuple[object, ...]:
    """Return the sort key of a comparison: the plan's order if there is a plan, otherwise by name."""
    cell = question.cell
    target = known.get((cell.plan, cell.device_type))
    scenarios = [scenario.name for scenario in target.plan.scenarios] if target else []
    metrics = [metric.name for metric in target.plan.metrics] if target else []
    settings = list(target.settings) if target else []
    return (
        *(cell.plan, cell.device_type, question.question, question.kernel or ""),
        *_rank(cell.scenario, scenarios),
        *(question.facts.role is not Role.PRIMARY, question.facts.role is not Role.SECONDARY),
        *_rank(cell.metric, metrics),
        *_rank(cell.setting, settings),
    )


def _rank(name: str, order: list[str]) -> tuple[int, str]:
    return (order.index(name), name) if name in order else (len(order), name)


# --- families ---------------------------------------------------------------------------------------------------


def _adjust(questions: Sequence[_Question], measured: Sequence[Measured]) -> list[Adjusted]:
    """Return the adjusted p of every cell: Holm for primaries, Benjamini-Hochberg for secondaries.

    A family is every tested cell of one role that answers the same question (about the kernel, or about the settings
    on one kernel), over all plans, topologies, scenarios and settings of the submission. Counts of instrumented devices
    are families of their own, since they never share a statement with other figures. Exact counts have no p and belong
    to none.
    """
    families: dict[tuple[Question, Arm | None, Role, bool], list[int]] = defaultdict(list)
    for index, (question, figures) in enumerate(zip(questions, measured, strict=True)):
        if figures.p is not None and question.facts.role is not Role.EXPLANATORY:
            counted = question.facts.evidence is Evidence.INSTRUMENTED
            families[question.question, question.kernel, question.facts.role, counted].append(index)
    adjusted = [Adjusted()] * len(questions)
    for (_, _, role, _), members in families.items():
        method = significance.holm if role is Role.PRIMARY else significance.benjamini_hochberg
        differences = [d for index in members if (d := measured[index].differences) is not None]
        for index, found in zip(members, significance.adjust(differences, method), strict=True):
            adjusted[index] = found
    return adjusted


# --- comparisons --------------------------------------------------------------------------------------------------


def _comparison(question: _Question, figures: Measured, adjusted: Adjusted, target: TargetFacts | None) -> Comparison:
    cell, facts = question.cell, question.facts
    explanatory = facts.role is Role.EXPLANATORY
    reference, candidate = figures.reference, figures.candidate
    if figures.n == 0:
        reference, candidate = summarise_arm(question.unpaired.reference), summarise_arm(question.unpaired.candidate)
        if facts.evidence is Evidence.NONE:
            reference, candidate = (
                reference and without_deviation(reference),
                candidate and without_deviation(candidate),
            )
        decision = _unmeasured(question, target)
    else:
        decision = decide(facts, figures, adjusted.p_adjusted, adjusted.family if facts.role is Role.PRIMARY else 1)
        other = CANDIDATE if question.question is Question.KERNEL else cell.setting
        decision = withhold_verdict(decision, _lost(question, target), question.question, question.reference, other)
    if explanatory and decision.verdict not in {Verdict.NO_EVIDENCE, Verdict.UNSUPPORTED}:
        text = "" if figures.n else decision.reason
        decision = Decision(None, text, not_measured=decision.not_measured)
    return Comparison(
        plan=cell.plan,
        device_type=cell.device_type,
        scenario=cell.scenario,
        setting=cell.setting,
        question=question.question,
        reference=question.reference,
        kernel=question.kernel,
        metric=cell.metric,
        unit=facts.unit,
        scale=facts.scale,
        direction=facts.direction,
        role=facts.role,
        evidence=facts.evidence,
        baseline=reference,
        candidate=candidate,
        effect=figures.effect,
        ci95=figures.ci95,
        p=None if explanatory else figures.p,
        p_adjusted=None if explanatory else adjusted.p_adjusted,
        p_student=None if explanatory else adjusted.p_student,
        p_signflip=None if explanatory else figures.p,
        delta=None if facts.evidence is Evidence.NONE or explanatory or figures.n == 0 else figures.delta,
        exact=figures.counts is not None,
        verdict=decision.verdict,
        reason=decision.reason,
        not_measured=decision.not_measured,
        blocks_needed=decision.blocks_needed,
        blocks_discarded=question.pairs.lost.pairs + (target.blocks_discarded if target else 0),
    )


def _lost(question: _Question, target: TargetFacts | None) -> Lost:
    """Return the lost pairs of the cell plus the discarded blocks of the run.

    A failed boot loses every setting, so between settings only figures missing within a boot count.
    """
    lost = question.pairs.lost
    if target is None or question.question is Question.SETTING:
        return lost
    baseline, candidate = (target.discarded.get(arm, 0) for arm in (Arm.BASELINE, Arm.CANDIDATE))
    return Lost(lost.reference + baseline, lost.candidate + candidate)


def _unmeasured(question: _Question, target: TargetFacts | None) -> Decision:
    """Return the verdict of a cell without any pair."""
    if target:
        for entry in target.unsupported:
            if _is_affected(entry, question):
                other = "" if entry.arm is question.kernel else f"{entry.arm} kernel: "
                verdict = _verdict_of_unsupported(entry, question)
                return Decision(verdict, f"{other}{not_measured(entry)}", not_measured=entry.cause)
        if target.failure and target.failure.kind is not ErrorKind.CANCELED:
            text = f"{target.failure.kind}: {target.failure.summary}"
            return Decision(Verdict.FAILED, text, not_measured=NotMeasuredCause.RUN_FAILED)
    if question.facts.evidence is Evidence.NONE:
        text = "not measured; on an emulated device it would be a value only"
        return Decision(Verdict.NO_EVIDENCE, text, not_measured=NotMeasuredCause.NOT_RUN)
    if lone := question.pairs.lost.pairs:
        text = f"not measured together in any block ({lone} unpaired)"
        return Decision(Verdict.INCONCLUSIVE, text, LEAST_BLOCKS, NotMeasuredCause.UNPAIRED)
    return Decision(Verdict.INCONCLUSIVE, "not measured", LEAST_BLOCKS, NotMeasuredCause.NOT_RUN)


def _verdict_of_unsupported(entry: UnsupportedView, question: _Question) -> Verdict:
    """Return `inconclusive` if only one side was measured, else `unsupported`.

    A workload that fails to measure on one side only is an unexplained difference, not a missing feature.
    """
    one_sided = question.unpaired.reference or question.unpaired.candidate
    if one_sided and entry.cause in UNEXPECTED_CAUSES and question.facts.evidence is not Evidence.NONE:
        return Verdict.INCONCLUSIVE
    return Verdict.UNSUPPORTED


def _is_affected(entry: UnsupportedView, question: _Question) -> bool:
    cell = question.cell
    settings = {cell.setting} if question.question is Question.KERNEL else {cell.setting, question.reference}
    return (
        entry.scenario in {"", "*", cell.scenario}
        and entry.setting in settings
        and entry.metric in {None, "*", cell.metric}
        and (question.kernel is None or entry.arm is question.kernel)
    )
