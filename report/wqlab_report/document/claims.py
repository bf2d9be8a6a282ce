"""What a report claims: better, worse, open and not measured, and what a reader checks before believing it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wqlab_comparison import words
from wqlab_comparison.significance import ALPHA
from wqlab_contracts.api.report import BootValue, Comparison, Report, TargetReport
from wqlab_contracts.enums import VERDICT_ORDER, Arm, ErrorKind, Question, Role, SubmissionState, Verdict

from ..content import cells, failures, shared_text, system_text

_OPEN = frozenset({Verdict.INCONCLUSIVE, Verdict.WITHHELD, Verdict.NOT_EXERCISED})
_PAIRED = frozenset({"hardware", "emulated"})
"""Kinds of devices on which boots of both kernels alternate."""
MOST_BLOCKS = 8
"""Most blocks whose boots are drawn beside the claims."""
MOST_REPEATED = 100
"""Most blocks of a repeated submission."""


@dataclass(frozen=True)
class Cell:
    """A comparison and the target it belongs to."""

    target: TargetReport
    of: Comparison

    @property
    def key(self) -> str:
        """Its key in the address of the report's page: `2/HIGH/local_l3_share/scope=cache@baseline`."""
        kernel = f"@{self.of.kernel or ''}" if self.of.question is Question.SETTING else ""
        setting = f"/{self.of.setting}{kernel}" if self.of.setting or kernel else ""
        return f"{self.target.run_id}/{self.of.scenario}/{self.of.metric}{setting}"


@dataclass(frozen=True)
class Claims:
    """Judged comparisons by verdict, primary metrics and large effects first, and targets and metrics without one."""

    worse: list[Cell]
    better: list[Cell]
    open: list[Cell]
    judged: int
    """Number of comparisons that may have a verdict."""
    decided: int
    failed: list[TargetReport]
    """Targets whose kernel failed."""
    missing: list[TargetReport]
    """Targets without a verdict whose kernel did not fail."""
    values: list[str]
    """Metrics that are evidence on no device of the report."""


def cells_of(report: Report) -> list[Cell]:
    """Return the comparisons that the report shows, in its order."""
    return [Cell(target, of) for target in report.targets for of in failures.comparisons(report, target)]


def claims_of(report: Report) -> Claims:
    """Return the claims about the kernels; of a study those about its settings, where a worse setting is no claim."""
    found = cells_of(report)
    study = all(cell.of.question is not Question.KERNEL for cell in found)
    asked = [cell for cell in found if study or cell.of.question is Question.KERNEL]
    judged = [
        cell
        for cell in asked
        if cell.of.role is not Role.EXPLANATORY and words.is_evidence(cell.of) and cell.of.verdict is not None
    ]
    evident = {cell.of.metric for cell in asked if words.is_evidence(cell.of)}
    without = [cell.of for cell in asked if not words.is_evidence(cell.of) and cell.of.role is not Role.EXPLANATORY]
    return Claims(
        worse=[] if study else _with_verdict(judged, {Verdict.REGRESSION}),
        better=_with_verdict(judged, {Verdict.IMPROVEMENT}),
        open=_with_verdict(judged, _OPEN),
        judged=len(judged),
        decided=sum(cell.of.verdict in cells.DECIDED for cell in judged),
        failed=[each for each in report.targets if each.verdict is Verdict.FAILED and not _is_missing(each)],
        missing=[each for each in report.targets if _is_missing(each)],
        values=list(dict.fromkeys(words.metric_name(of.metric) for of in without if of.metric not in evident)),
    )


def _with_verdict(judged: Sequence[Cell], verdicts: set[Verdict] | frozenset[Verdict]) -> list[Cell]:
    chosen = (cell for cell in judged if cell.of.verdict in verdicts)
    return sorted(chosen, key=lambda cell: (cell.of.role is not Role.PRIMARY, -abs(cell.of.effect or 0)))


def _is_missing(target: TargetReport) -> bool:
    by_kernel = target.failure is None or target.failure.kind is ErrorKind.KERNEL
    return not by_kernel and target.verdict in {Verdict.FAILED, Verdict.INCONCLUSIVE}


def deciding(report: Report) -> Cell | None:
    """Return the comparison that decides the verdict of the worst target; None without a comparison that decides."""
    found = [
        cell
        for cell in cells_of(report)
        if cell.of.role is Role.PRIMARY
        or (cell.of.verdict is Verdict.REGRESSION and cell.of.question is Question.KERNEL)
    ]
    return min(found, key=lambda cell: (cell.of.verdict != cell.target.verdict, _weight(cell)), default=None)


def deciding_blocks(report: Report) -> tuple[int, float]:
    """Return how many blocks of each target would probably decide what is open, and the seconds that they take.

    0 blocks if the submission is not finished or no number up to MOST_REPEATED would; 0 seconds if it is not known.
    """
    open_ = [cell for cell in claims_of(report).open if cell.of.blocks_needed]
    blocks = max((cell.target.blocks_completed + (cell.of.blocks_needed or 0) for cell in open_), default=0)
    if report.submission.state is not SubmissionState.FINISHED or blocks > MOST_REPEATED:
        return 0, 0.0
    ran = {target.run_id: target.blocks_completed for target in report.targets if target.blocks_completed}
    seconds = [
        blocks * (run.finished_at - run.started_at).total_seconds() / ran[run.id]
        for run in report.submission.runs
        if run.id in ran and run.started_at and run.finished_at
    ]
    return blocks, max(seconds, default=0.0)


def _weight(cell: Cell) -> int:
    return VERDICT_ORDER.index(cell.of.verdict) if cell.of.verdict else len(VERDICT_ORDER)


# --- boots ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """The values of both boots of a block."""

    label: str
    baseline: float
    candidate: float


def pairs(report: Report, first: Cell) -> list[Pair]:
    """Return both boots of each block of a comparison, on every topology that has it."""

    def place(of: Comparison) -> tuple[object, ...]:
        return of.plan, of.scenario, of.setting, of.metric, of.question, of.kernel

    return [
        pair for cell in cells_of(report) if place(cell.of) == place(first.of) for pair in _pairs(cell.target, cell.of)
    ]


def _pairs(target: TargetReport, of: Comparison) -> list[Pair]:
    if of.question is Question.KERNEL:
        sides = ((Arm.BASELINE, of.setting), (Arm.CANDIDATE, of.setting))
    else:
        kernel = of.kernel or Arm.BASELINE
        sides = ((kernel, of.reference), (kernel, of.setting))
    before, after = ({each.block: each.value for each in _values(target, of, *side)} for side in sides)
    return [
        Pair(f"{target.device_type} {block + 1}", before[block], after[block])
        for block in sorted(before)
        if block in after
    ]


def _values(target: TargetReport, of: Comparison, arm: Arm, setting: str) -> list[BootValue]:
    place = (of.scenario, of.metric, arm, setting)
    return [each for each in target.values if (each.scenario, each.metric, each.arm, each.setting) == place]


# --- trust ------------------------------------------------------------------------------------------------------


def checks(report: Report) -> list[tuple[bool, str]]:
    """Return what a reader checks before believing a figure, each with True if it speaks for the figure."""
    measured = [target for target in report.targets if target.blocks_completed]
    if not measured:
        return []
    kept = words.count(sum(target.blocks_completed for target in measured), "block")
    discarded = sum(sum(target.discarded.values()) + target.discarded_by_lab for target in measured)
    found = [
        (not discarded, f"{kept} kept{f', {discarded} discarded and repeated' if discarded else ''}"),
        (True, "build-id checked in each boot"),
    ]
    if not shared_text.is_study(report) and all(system_text.kind(each) in _PAIRED for each in measured):
        found.insert(0, (True, "same device, boots alternate"))
    if report.config_compared:
        differing = len(report.config_diff)
        found.append((not differing, words.count(differing, "different option") if differing else "same configuration"))
    if differences := sum(len(each.environment.differences) for each in measured if each.environment):
        found.append((False, f"{words.count(differences, 'difference')} of environments"))
    if emulated := sum(each.emulated for each in measured):
        found.append((False, "emulated" if emulated == len(measured) else "some devices are emulated"))
    return found + _error_rate(measured)


def _error_rate(measured: Sequence[TargetReport]) -> list[tuple[bool, str]]:
    """Return how often verdicts of these devices called equal kernels different; nothing for exact counts."""
    compared = [
        each
        for each in measured
        if system_text.kind(each) in _PAIRED and any(cell.question is Question.KERNEL for cell in each.comparisons)
    ]
    if all(cell.exact for each in compared for cell in cells.judged(each.comparisons)):
        return []
    rates = [record.false_positives for each in compared for record in each.canaries]
    tried = sum(rate.comparisons for rate in rates)
    if not tried:
        return [(False, "how often equal kernels are called different here is not measured yet")]
    wrong = sum(rate.called_different for rate in rates)
    usual = all(rate.rate_low is None or rate.rate_low <= ALPHA for rate in rates)
    share = words.number(100 * wrong / tried, 1)
    return [(usual, f"{share} % of {tried} comparisons of equal kernels on this device called different")]
