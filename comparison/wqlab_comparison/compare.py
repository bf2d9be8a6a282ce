"""Compare all cells of one submission: measure, adjust p values over families, decide verdicts.

`compare` is the whole method: boots from samples, pairs from boots, an effect per cell, p values adjusted over their
family, a verdict per cell. docs/comparison.md describes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from wqlab_contracts.api.report import Comparison, UnsupportedView
from wqlab_contracts.enums import (
    SEEDED,
    UNEXPECTED_CAUSES,
    Arm,
    ErrorKind,
    Evidence,
    NotMeasuredCause,
    Question,
    Role,
    Verdict,
)

from . import looks, significance
from .boots import BootTable, Lost, boot_table
from .judge import Decision, Measured, decide, measure, summarise_arm, without_deviation
from .looks import Adjusted
from .modelled import not_validated, withhold_modelled
from .power import LEAST_BLOCKS
from .questions import Asked, TargetFacts, questions, sort_key
from .samples import Samples
from .survivors import withhold_verdict
from .words import not_measured

_NO_FIGURE = frozenset({None, Verdict.UNSUPPORTED, Verdict.FAILED, Verdict.NO_EVIDENCE})


@dataclass(frozen=True)
class Answer:
    """A comparison with its statistics and its verdict."""

    asked: Asked
    figures: Measured
    adjusted: Adjusted
    decision: Decision
    target: TargetFacts | None


def compare(
    samples: Samples | None,
    targets: Sequence[TargetFacts] = (),
    references: Mapping[str, str] | str | None = None,
    default_looks: Sequence[int] = (),
) -> list[Comparison]:
    """Compare everything in one submission; call it once with all runs, since families span runs.

    `samples` holds valid boots only (None: there are none). `targets` states what was planned: it gives unmeasured
    cells a verdict and the result its order; without it only the samples count. `references` is the
    reference setting, of all plans or by plan name; by default the plan's own, and without one settings are not
    compared with each other. `default_looks`: looks at the runs without a target. The order of the samples makes no
    difference. Raises SamplesError for samples that contradict themselves.
    """
    return [_comparison(each) for each in answers(samples, targets, references, default_looks)]


def answers(
    samples: Samples | None,
    targets: Sequence[TargetFacts] = (),
    references: Mapping[str, str] | str | None = None,
    default_looks: Sequence[int] = (),
) -> list[Answer]:
    """Return what `compare` returns, with the statistics behind it."""
    table = BootTable({}, {}) if samples is None or len(samples) == 0 else boot_table(samples)
    known = {(target.plan.name, target.device_type): target for target in targets}
    chosen = {target.plan.name: target.plan.reference_setting for target in targets}
    if isinstance(references, str):
        chosen = {cell.plan: references for cell in table.cells} | dict.fromkeys(chosen, references)
    elif references is not None:
        chosen |= references
    found = sorted(questions(table, known, chosen, default_looks), key=lambda asked: sort_key(asked, known))
    of_targets = [known.get((asked.cell.plan, asked.cell.device_type)) for asked in found]
    measured = [
        measure(asked.cell.metric, asked.facts, asked.pairs, asked.cuts, _spread(asked, target), asked.question)
        for asked, target in zip(found, of_targets, strict=True)
    ]
    adjusted = _adjust(found, measured, of_targets)
    return [
        Answer(asked, figures, family, _decision(asked, figures, family, target), target)
        for asked, figures, family, target in zip(found, measured, adjusted, of_targets, strict=True)
    ]


def _spread(asked: Asked, target: TargetFacts | None) -> float | None:
    """Return the spread that the lab measured; that of settings, which share their boots, is not measured."""
    if target is None or asked.question is Question.SETTING:
        return None
    return target.spreads.get(asked.cell.metric)


# --- families ---------------------------------------------------------------------------------------------------


class _Family(NamedTuple):
    question: Question
    kernel: Arm | None
    role: Role
    seeded: Evidence | None
    """Evidence of counts of instrumented devices and of modelled figures; None for all other figures."""


def _adjust(
    found: Sequence[Asked], measured: Sequence[Measured], targets: Sequence[TargetFacts | None]
) -> list[Adjusted]:
    """Return the adjusted p of every cell: Holm for primaries, Benjamini-Hochberg for secondaries.

    A family is every tested cell of one role that answers the same question (about the kernel, or about the settings
    on one kernel), over all plans, topologies, scenarios and settings of the submission. The patches of a walk answer
    the question about the kernel, so they share the family of the whole series. Counts of instrumented devices, and
    modelled figures, are families of their own, since they share no statement with other figures. Exact counts have no
    p and belong to none. A cell of a run that goes on and has no p yet may get one, so it counts as a test.
    """
    families: dict[_Family, list[int]] = defaultdict(list)
    pending: dict[_Family, int] = defaultdict(int)
    for index, (asked, figures, target) in enumerate(zip(found, measured, targets, strict=True)):
        if asked.facts.role is Role.EXPLANATORY:
            continue
        evidence = asked.facts.evidence
        family = _Family(asked.question, asked.kernel, asked.facts.role, evidence if evidence in SEEDED else None)
        if figures.p is not None:
            families[family].append(index)
        elif target and not target.ended and asked.facts.evidence is not Evidence.NONE:
            pending[family] += not (figures.counts or figures.identical)
    adjusted = [Adjusted()] * len(found)
    for family, members in families.items():
        method = significance.holm if family.role is Role.PRIMARY else significance.benjamini_hochberg
        parts = [measured[index].parts for index in members]
        for index, result in zip(members, looks.adjust(parts, method, pending[family]), strict=True):
            adjusted[index] = result
    return adjusted


# --- comparisons --------------------------------------------------------------------------------------------------


def _decision(asked: Asked, figures: Measured, adjusted: Adjusted, target: TargetFacts | None) -> Decision:
    """Return the verdict of one cell, also of an explanatory one, which a comparison leaves out."""
    if figures.n == 0:
        return _unmeasured(asked, target)
    facts = asked.facts
    decision = decide(facts, figures, adjusted.p_adjusted, adjusted.family if facts.role is Role.PRIMARY else 1)
    if figures.counts and figures.counts[0] != figures.counts[1] and target:
        depends = next((metric.depends_on for metric in target.plan.metrics if metric.name == asked.cell.metric), "")
        if depends:
            decision = replace(decision, reason=f"{decision.reason}; depends on {depends}")
    decision = withhold_verdict(decision, _lost(asked, target), asked.question, asked.reference, asked.other)
    decision = withhold_modelled(decision, asked, figures, target)
    if target and target.not_exercised and asked.question is Question.KERNEL and decision.verdict not in _NO_FIGURE:
        return Decision(Verdict.NOT_EXERCISED, f"{target.not_exercised}; {decision.reason}")
    return decision


def _comparison(answer: Answer) -> Comparison:
    question, figures, adjusted, decision = answer.asked, answer.figures, answer.adjusted, answer.decision
    cell, facts, target = question.cell, question.facts, answer.target
    explanatory = facts.role is Role.EXPLANATORY
    reference, candidate = figures.reference, figures.candidate
    if figures.n == 0:
        reference, candidate = summarise_arm(question.unpaired.reference), summarise_arm(question.unpaired.candidate)
        if facts.evidence is Evidence.NONE:
            reference, candidate = (
                reference and without_deviation(reference),
                candidate and without_deviation(candidate),
            )
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
        patch=question.patch,
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
        delta=None if facts.evidence is Evidence.NONE or explanatory or figures.n == 0 else figures.delta,
        exact=figures.counts is not None,
        verdict=decision.verdict,
        reason=decision.reason,
        not_measured=decision.not_measured,
        not_validated=not_validated(question, target) if figures.n and not explanatory else "",
        blocks_needed=decision.blocks_needed,
        blocks_discarded=question.pairs.lost.pairs + (target.blocks_discarded if target else 0),
    )


def _lost(question: Asked, target: TargetFacts | None) -> Lost:
    """Return the lost pairs of the cell plus the discarded blocks of the run.

    A failed boot loses every setting, so between settings only figures missing within a boot count.
    """
    lost = question.pairs.lost
    if target is None or question.question is Question.SETTING:
        return lost
    baseline, candidate = (target.discarded.get(arm, 0) for arm in question.arms)
    return Lost(lost.reference + baseline, lost.candidate + candidate)


def _unmeasured(question: Asked, target: TargetFacts | None) -> Decision:
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


def _verdict_of_unsupported(entry: UnsupportedView, question: Asked) -> Verdict:
    """Return `inconclusive` if only one side was measured, else `unsupported`.

    A workload that fails to measure on one side only is an unexplained difference, not a missing feature.
    """
    one_sided = question.unpaired.reference or question.unpaired.candidate
    if one_sided and entry.cause in UNEXPECTED_CAUSES and question.facts.evidence is not Evidence.NONE:
        return Verdict.INCONCLUSIVE
    return Verdict.UNSUPPORTED


def _is_affected(entry: UnsupportedView, question: Asked) -> bool:
    cell = question.cell
    settings = {cell.setting} if question.question is Question.KERNEL else {cell.setting, question.reference}
    return (
        entry.scenario in {"", "*", cell.scenario}
        and entry.setting in settings
        and entry.metric in {None, "*", cell.metric}
        and (entry.arm in question.arms if question.kernel is None else entry.arm is question.kernel)
    )
