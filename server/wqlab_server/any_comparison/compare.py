"""Compare any two measured sides, as far as their boots allow.

Boots of the same blocks are compared in pairs. Boots of two runs in the same environment are compared with a wider
interval. Where anything but the kernel and the setting differs, the figures stand beside each other without an
interval. There is never a verdict: that needs the families of tests of a submission.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_comparison import unpaired
from wqlab_comparison.significance import mean_and_deviation
from wqlab_comparison.words import number, places
from wqlab_contracts.api.any_comparison import AnyComparison, ComparedFigure, ComparedSide, PairedRun, Pairing
from wqlab_contracts.api.report import ArmSummary, EnvironmentDifference
from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.enums import Arm, Evidence, Role
from wqlab_contracts.messages import CommitPair, Series, Target
from wqlab_contracts.specs import Metric
from wqlab_contracts.units import effect_unit

from ..http.problems import ApiProblem
from ..models import Boot, Build, Run, Submission
from ..views.environment import facts_of
from ..views.load import target_summaries
from . import sides

SAYS = {
    Pairing.PAIRED: "Both sides were measured in the same blocks of one run, so their boots are compared in pairs. "
    "The p values are not adjusted for the number of figures, and there is no verdict.",
    Pairing.UNPAIRED: "The boots are not paired: they are of two runs, at two times. The interval is wider than that "
    "of pairs, because it allows for an offset between the runs as large as the deviation between boots. There is no "
    "verdict.",
    Pairing.ENVIRONMENTS: "The environments differ, so a difference cannot be attributed to the kernel or the setting: "
    "the figures stand beside each other, without an interval.",
}

MIXED = "modelled on one side and not on the other: never compared"

_Key = tuple[str, str, str, str, str]
"""Plan, device type, scenario, setting, metric; empty where the selectors choose different ones."""


class _Cell(NamedTuple):
    left: list[sides.Value]
    right: list[sides.Value]


def compare(session: Session, left_text: str, right_text: str) -> AnyComparison:
    """Compare two sides. Raises ApiProblem 404 for one that does not exist, and 422 for a malformed selector, for equal
    sides, and for two without a common figure."""
    left, right = sides.parse(left_text, "left"), sides.parse(right_text, "right")
    one, other = sides.choose(sides.sources(session, left), sides.sources(session, right))
    if (one, left.filters) == (other, right.filters):
        raise ApiProblem(422, "both sides are the same; choose another arm, setting, device or submission")
    values = sides.values(session, one, left), sides.values(session, other, right)
    cells = _matched(*values, free=_free(left, right))
    if not cells:
        raise ApiProblem(
            422,
            "the two sides have no figure in common: no plan, scenario and metric was measured on both "
            f"({len(values[0])} and {len(values[1])} values)",
        )
    run_ids = {value.run_id for side in values for value in side}
    runs = {run.id: run for run in session.scalars(select(Run).where(Run.id.in_(run_ids)))}
    paired = all({v.run_id for v in cell.left} == {v.run_id for v in cell.right} for cell in cells.values())
    facts = [] if paired else _differences(session, runs, cells, one.arm, other.arm)
    pairing = Pairing.PAIRED if paired else Pairing.ENVIRONMENTS if facts else Pairing.UNPAIRED
    figures = [_figure(cell, runs, pairing) for cell in cells.values()]
    shown = [figure for figure in figures if figure is not None]
    compared = [
        _side(session, source, selector, found)
        for source, selector, found in ((one, left, values[0]), (other, right, values[1]))
    ]
    return AnyComparison(
        left=compared[0],
        right=compared[1],
        pairing=pairing,
        says=SAYS[pairing],
        differences=facts,
        figures=sorted(shown, key=lambda each: each.role is not Role.PRIMARY),
        paired_run=None if paired else _paired_run(session, compared, (one, other), cells, (left, right)),
    )


def _free(left: sides.Selector, right: sides.Selector) -> frozenset[str]:
    """Return the filters in which the sides are meant to differ, so that cells are matched without them."""
    return frozenset(
        name for name in ("device_type", "setting") if left.filter(name) is not None and right.filter(name) is not None
    )


def _matched(left: Sequence[sides.Value], right: Sequence[sides.Value], *, free: frozenset[str]) -> dict[_Key, _Cell]:
    def key(value: sides.Value) -> _Key:
        return (
            value.plan,
            "" if "device_type" in free else value.device_type,
            value.scenario,
            "" if "setting" in free else value.setting,
            value.metric,
        )

    found: dict[_Key, _Cell] = defaultdict(lambda: _Cell([], []))
    for value in left:
        found[key(value)].left.append(value)
    for value in right:
        found[key(value)].right.append(value)
    return {key: cell for key, cell in found.items() if cell.left and cell.right}


# --- figures ------------------------------------------------------------------------------------------------------


def _figure(cell: _Cell, runs: dict[int, Run], pairing: Pairing) -> ComparedFigure | None:
    run = runs[cell.left[0].run_id]
    try:
        metric = run.plan.metric(cell.left[0].metric)
    except KeyError:
        return None
    emulated = run.device_spec.emulated
    left, right = [v.value for v in cell.left], [v.value for v in cell.right]
    pairs = 0
    evidence = metric.evidence(emulated)
    kinds = {runs[v.run_id].plan.is_modelled for v in (*cell.left, *cell.right)}
    mixed = len(kinds) > 1 and evidence is not Evidence.INSTRUMENTED
    if mixed:
        evidence = Evidence.NONE
    difference = unpaired.Difference(None)
    if pairing is Pairing.PAIRED:
        by_block = {v.block: v.value for v in cell.right}
        both = [(v.value, by_block[v.block]) for v in cell.left if v.block in by_block]
        pairs = len(both)
        if both:
            difference = unpaired.paired([a for a, _ in both], [b for _, b in both], metric.scale)
    else:
        compare_ = unpaired.unpaired if pairing is Pairing.UNPAIRED else unpaired.without_interval
        difference = compare_(left, right, metric.scale)
    if evidence is Evidence.NONE:
        difference = unpaired.Difference(None)
    first = cell.left[0], cell.right[0]
    return ComparedFigure(
        plan=first[0].plan,
        device_types=(first[0].device_type, first[1].device_type),
        scenario=first[0].scenario,
        settings=(first[0].setting, first[1].setting),
        metric=metric.name,
        unit=metric.unit,
        scale=metric.scale,
        direction=metric.direction,
        role=metric.role(emulated),
        evidence=evidence,
        left=_summary(left, evidence),
        right=_summary(right, evidence),
        pairs=pairs,
        effect=difference.effect,
        ci95=difference.ci95,
        p=difference.p,
        text=MIXED if mixed else _text(metric, left, right, difference, pairing=pairing, evidence=evidence),
    )


def _summary(values: Sequence[float], evidence: Evidence) -> ArmSummary:
    mean, deviation = mean_and_deviation(np.array(values, dtype=np.float64))
    shown = len(values) > 1 and evidence is not Evidence.NONE
    return ArmSummary(mean=mean, stddev=deviation if shown else None, n=len(values))


def _text(
    metric: Metric,
    left: Sequence[float],
    right: Sequence[float],
    difference: unpaired.Difference,
    *,
    pairing: Pairing,
    evidence: Evidence,
) -> str:
    if evidence is Evidence.NONE:
        return "no evidence on an emulated device: its clock is not hardware"
    if len({*left}) == len({*right}) == 1 and all(value == int(value) for value in (left[0], right[0])):
        decimals = places([left[0], right[0]])
        counts = f"{number(left[0], decimals)} -> {number(right[0], decimals)}"
        return "the same in every boot" if left[0] == right[0] else f"{counts} in every boot"
    if difference.effect is None:
        return "no ratio: a value is not above zero"
    unit = effect_unit(metric.scale, metric.unit)
    change = f"{difference.effect:+.3g} {unit}".rstrip()
    if pairing is Pairing.ENVIRONMENTS:
        return f"{change}; the environments differ, so this is not attributable to the kernel"
    if difference.ci95 is None:
        return f"{change}; too few boots for an interval"
    low, high = difference.ci95
    contains = low <= 0 <= high
    return f"{change} [{low:+.3g}, {high:+.3g}]; " + (
        "no difference shown" if contains else "a difference beyond noise"
    )


# --- environments -------------------------------------------------------------------------------------------------


def _differences(
    session: Session, runs: dict[int, Run], cells: dict[_Key, _Cell], left: Arm, right: Arm
) -> list[EnvironmentDifference]:
    """Return the facts that differ between the compared runs, each once."""
    pairs = {(cell.left[0].run_id, cell.right[0].run_id) for cell in cells.values()}
    found: dict[str, EnvironmentDifference] = {}
    for one, other in sorted(pairs):
        before, after = _facts(session, runs[one], left), _facts(session, runs[other], right)
        for name in before:
            if name in after and before[name] != after[name]:
                found.setdefault(
                    name, EnvironmentDifference(name=name, baseline=before[name][:300], candidate=after[name][:300])
                )
    return list(found.values())


def _facts(session: Session, run: Run, arm: Arm) -> dict[str, str]:
    boots = session.scalars(select(Boot).where(Boot.run_id == run.id, Boot.valid).order_by(Boot.id)).all()
    build_id = run.baseline_build_id if arm is Arm.BASELINE else run.candidate_build_id
    build = session.get(Build, build_id) if build_id is not None else None
    compiler = build.result.compiler if build is not None and build.result is not None else ""
    return {"device type": run.device_type, **facts_of(run, arm, boots, compiler)}


def _side(
    session: Session, source: sides.Source, selector: sides.Selector, values: Sequence[sides.Value]
) -> ComparedSide:
    submission = session.get_one(Submission, source.submission_id)
    return ComparedSide(
        selector=selector.text,
        submission_id=submission.id,
        title=submission.title or f"submission {submission.id}",
        arm=source.arm,
        tree=submission.tree,
        commit=sides.commit_of(session, source),
        devices=sorted({value.device for value in values}),
        targets=target_summaries(session, [submission.id]).get(submission.id, []),
        finished_at=submission.finished_at,
    )


# --- the paired run -----------------------------------------------------------------------------------------------


def _paired_run(
    session: Session,
    compared: Sequence[ComparedSide],
    of: tuple[sides.Source, sides.Source],
    cells: dict[_Key, _Cell],
    selectors: tuple[sides.Selector, sides.Selector],
) -> PairedRun:
    """Return the submission that would measure both sides in the same blocks, or why there is none."""
    left, right = compared
    types = {(value.plan, value.device_type) for cell in cells.values() for value in (cell.left[0], cell.right[0])}
    by_plan = {plan: {t for p, t in types if p == plan} for plan, _ in types}
    if any(len(found) > 1 for found in by_plan.values()):
        return PairedRun(request=None, why="boots on two device types cannot be paired: no run has both")
    if left.tree != right.tree:
        return PairedRun(request=None, why=f"no run has kernels of two trees, {left.tree} and {right.tree}")
    settings = tuple(each.filter("setting") for each in selectors)
    if settings[0] != settings[1] and (left.commit != right.commit or not left.commit):
        return PairedRun(request=None, why="no run varies the kernel and the setting at once; vary one of them")
    targets = [Target(plan=plan, device_type=next(iter(found))) for plan, found in sorted(by_plan.items())]
    device = _common_device(compared)
    targets = [target.model_copy(update={"device": device}) for target in targets]
    if not left.commit or not right.commit:
        missing = next(each for each in compared if not each.commit)
        return PairedRun(
            request=None,
            why=f"the kernel of {missing.selector} is made from patches: no commit of {missing.tree} has it. To "
            "measure both, submit a branch of two commits with `--walk`: the older series, and its difference to the "
            "newer one",
        )
    if left.commit == right.commit:
        return PairedRun(request=None, why="both sides have the same kernel")
    ref = _ref(session, of[1]) or _ref(session, of[0])
    if not ref:
        return PairedRun(request=None, why="the branch of the commits is not known; submit them as a pair of commits")
    pair = CommitPair(baseline=left.commit, candidate=right.commit, ref=ref)
    request = SubmissionRequest(series=Series(commits=pair), tree=left.tree, targets=targets)
    return PairedRun(
        request=request,
        why=f"measures {left.commit[:12]} and {right.commit[:12]} in the same blocks on one device",
    )


def _common_device(compared: Sequence[ComparedSide]) -> str | None:
    left, right = ({*each.devices} for each in compared)
    return next(iter(left)) if len(left) == 1 and left == right else None


def _ref(session: Session, source: sides.Source) -> str:
    series = session.get_one(Submission, source.submission_id).request.series
    return series.commits.ref if series is not None and series.commits is not None else ""
