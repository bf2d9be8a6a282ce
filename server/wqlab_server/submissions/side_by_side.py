"""Side-by-side comparison of two submissions' figures. Pure.

Each figure is an effect against its submission's own baseline; the two submissions are not tested against each other,
and the notes say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from wqlab_contracts.api.report import Comparison
from wqlab_contracts.api.steps import FigureChange, FigurePair, SubmissionComparison, SubmissionVersion, TargetPair
from wqlab_contracts.api.submissions import SubmissionRequest, TargetSummary
from wqlab_contracts.enums import Evidence, SubmissionState, Verdict

K = TypeVar("K")
V = TypeVar("V")

NOT_PAIRED = (
    "The two submissions are not paired. Each figure is an effect against the submission's own baseline, from its own "
    "boots at its own time. The figures are not tested against each other, so a difference between them has no "
    "interval and no p value."
)
_DIRECTION = {
    Verdict.IMPROVEMENT: 1,
    Verdict.EQUIVALENT: 0,
    Verdict.BELOW_THRESHOLD: 0,
    Verdict.REGRESSION: -1,
}
"""Direction of each verdict that has one; the other verdicts say that the effect is unknown."""


@dataclass(frozen=True)
class Side:
    """One of the two compared submissions."""

    version: SubmissionVersion
    request: SubmissionRequest
    figures: Sequence[Comparison]
    """The submission's figures in the order of its report."""


def compare(first: Side, second: Side) -> SubmissionComparison:
    """Match the targets and figures of two submissions."""
    left = {_key(figure): figure for figure in first.figures}
    right = {_key(figure): figure for figure in second.figures}
    return SubmissionComparison(
        first=first.version,
        second=second.version,
        notes=_notes(first, second),
        targets=[
            TargetPair(plan=plan, device_type=device_type, first=one, second=other)
            for (plan, device_type), one, other in _outer_join(_targets(first), _targets(second))
        ],
        figures=[_pair(one, other) for _, one, other in _outer_join(left, right)],
    )


_Key = tuple[object, ...]


def _key(figure: Comparison) -> _Key:
    return (
        figure.plan, figure.device_type, figure.scenario, figure.setting, figure.question, figure.kernel, figure.metric
    )  # fmt: skip


def _targets(side: Side) -> dict[tuple[str, str], TargetSummary]:
    return {(target.plan, target.device_type): target for target in side.version.targets}


def _pair(first: Comparison | None, second: Comparison | None) -> FigurePair:
    either = first or second
    assert either is not None  # noqa: S101 - a key comes from one of them
    effect_change = None
    comparable = first and second and (first.evidence is Evidence.MODELLED) is (second.evidence is Evidence.MODELLED)
    if (
        comparable
        and first
        and second
        and first.effect is not None
        and second.effect is not None
        and first.scale is second.scale
    ):
        effect_change = second.effect - first.effect
    overlap = None
    if first and second and first.ci95 is not None and second.ci95 is not None:
        overlap = first.ci95[0] <= second.ci95[1] and second.ci95[0] <= first.ci95[1]
    return FigurePair(
        plan=either.plan,
        device_type=either.device_type,
        scenario=either.scenario,
        setting=either.setting,
        question=either.question,
        kernel=either.kernel,
        metric=either.metric,
        first=first,
        second=second,
        change=_change(first, second),
        effect_change=effect_change,
        intervals_overlap=overlap,
    )


def _change(first: Comparison | None, second: Comparison | None) -> FigureChange:
    if second is None:
        return FigureChange.ONLY_FIRST
    if first is None:
        return FigureChange.ONLY_SECOND
    without_effect = {None, Verdict.NO_EVIDENCE}
    different = (first.evidence is Evidence.MODELLED) is not (second.evidence is Evidence.MODELLED)
    no_evidence = Evidence.NONE in {first.evidence, second.evidence}
    if different or no_evidence or {first.verdict, second.verdict} <= without_effect:
        return FigureChange.NONE
    if first.verdict is second.verdict:
        return FigureChange.SAME
    before = _DIRECTION.get(first.verdict) if first.verdict else None
    after = _DIRECTION.get(second.verdict) if second.verdict else None
    if before is None or after is None or before == after:
        return FigureChange.OTHER
    return FigureChange.BETTER if after > before else FigureChange.WORSE


def _notes(first: Side, second: Side) -> list[str]:
    notes = [NOT_PAIRED]
    one, other = first.version, second.version
    for version in (one, other):
        if version.state is not SubmissionState.FINISHED:
            notes.append(f"Submission {version.id} is not finished: figures that are not measured yet are missing.")
    if one.series_key != other.series_key:
        notes.append("They are not versions of one series: their titles and change-ids differ.")
    if one.tree != other.tree:
        notes.append(f"They are based on different trees, {one.tree} and {other.tree}.")
    elif one.base_commit and other.base_commit and one.base_commit != other.base_commit:
        commits = f"{one.base_commit[:12]} and {other.base_commit[:12]}"
        notes.append(
            f"They have different base commits ({commits}): changes in the tree may cause part of a difference."
        )
    if one.tree_oid and one.tree_oid == other.tree_oid:
        notes.append("Both have the same source code: any difference between them is noise or caused by the lab.")
    requested = [
        {
            (target.plan, target.device_type): (
                target.settings,
                target.parameters,
                target.scenarios,
                side.request.repetitions,
            )
            for target in side.request.targets
        }
        for side in (first, second)
    ]
    for (plan, device_type), left, right in _outer_join(_targets(first), _targets(second)):
        if left is None or right is None:
            continue
        name = f"{plan} on {device_type}"
        if left.device and right.device and left.device != right.device:
            notes.append(f"{name} ran on different devices, {left.device} and {right.device}.")
        if requested[0].get((plan, device_type)) != requested[1].get((plan, device_type)):
            notes.append(f"{name} was requested with different scenarios, settings or parameters.")
        if left.total_boots != right.total_boots:
            notes.append(
                f"{name} had {left.total_boots} planned boots in the first submission and {right.total_boots} in the "
                "second."
            )
    return notes


def _outer_join(first: Mapping[K, V], second: Mapping[K, V]) -> list[tuple[K, V | None, V | None]]:
    """Return every key once with both values: keys of the first in its order, then those only the second has."""
    return [(key, first.get(key), second.get(key)) for key in {**first, **second}]
