"""Title, header, rows and notes of a walk's ladder, shared by all formats. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from wqlab_comparison import deciding, words
from wqlab_contracts.api.ladder import Ladder, LadderRung
from wqlab_contracts.api.report import Comparison, TargetReport
from wqlab_contracts.enums import Question, Verdict
from wqlab_contracts.messages.walk import StepState

from .cells import metric

HEADING = "Patch by patch"
MISSING = {
    StepState.PLANNED: "not built yet",
    StepState.NOT_BUILT: "does not build",
    StepState.KERNEL_FAILED: "kernel fails",
    StepState.IDENTICAL: "same kernel",
}
"""What is shown instead of figures."""
FAMILY = (
    "Each patch is measured against the last kernel before it that was measured. The patches and the whole series are "
    "one family of tests: at most 5 % of such ladders claim any change that is none."
)
CLAIMS = frozenset({Verdict.FAILED, Verdict.REGRESSION, Verdict.IMPROVEMENT})
WHOLE = "whole series"


def title(ladder: Ladder) -> str:
    """Return how many kernels were measured, and how."""
    return f"{HEADING}, {words.count(ladder.boots_per_block, 'boot')} a block, one of each kernel"


def header() -> list[str]:
    return ["", "patch", "change", "95 % interval", "verdict"]


def rows(target: TargetReport) -> list[list[str]]:
    """Return a row for each patch, and one for the whole series."""
    ladder = target.ladder
    if ladder is None:
        return []
    return [*(rung_row(rung) for rung in ladder.rungs), _whole(target)]


def rung_row(rung: LadderRung) -> list[str]:
    """Return the row of one patch."""
    text = rung.subject
    if rung.reference != rung.patch - 1:
        text = f"(against {rung.reference or 'base'}) {text}"
    return [f"{rung.patch}", text, *_figures(rung.state, rung.verdict, deciding(rung.comparisons))]


def _whole(target: TargetReport) -> list[str]:
    cells = deciding([each for each in target.comparisons if each.question is Question.KERNEL])
    state = StepState.IDENTICAL if target.byte_identical else StepState.MEASURED
    return ["", WHOLE, *_figures(state, target.verdict, cells)]


def shown(verdict: Verdict | None, cells: Sequence[Comparison]) -> Comparison | None:
    """Return the comparison that a row shows: of those with its verdict the one with the largest effect."""
    carrying = [each for each in cells if each.verdict is verdict] or list(cells)
    return max(carrying, key=lambda each: abs(each.effect or 0.0), default=None)


def _figures(state: StepState, verdict: Verdict | None, cells: Sequence[Comparison]) -> list[str]:
    label = words.VERDICT[verdict] if verdict else "no verdict yet"
    if state in MISSING:
        return [MISSING[state], "", label]
    cell = shown(verdict, cells)
    if cell is None:
        return ["", "", label]
    many = _share(verdict, cells)
    return [words.effect(cell) or words.cause(cell), words.interval(cell), f"{label}{f' ({many})' if many else ''}"]


def _share(verdict: Verdict | None, cells: Sequence[Comparison]) -> str:
    """Return how many of several cells have the verdict: `2 of 3`."""
    same = sum(each.verdict is verdict for each in cells)
    return f"{same} of {len(cells)}" if len(cells) > 1 and same > 0 else ""


def verdicts(target: TargetReport) -> list[tuple[Verdict | None, str]]:
    """Return the verdict of each row, and how many of several cells have it."""
    rungs = target.ladder.rungs if target.ladder else []
    of_rows = [(rung.verdict, deciding(rung.comparisons)) for rung in rungs]
    kernels = [each for each in target.comparisons if each.question is Question.KERNEL]
    return [(verdict, _share(verdict, cells)) for verdict, cells in [*of_rows, (target.verdict, deciding(kernels))]]


def what(target: TargetReport) -> str:
    """Return what the changes are of: the metric if all rows show the same, and how many cells there are."""
    ladder = target.ladder
    cells = [each for rung in (ladder.rungs if ladder else []) for each in deciding(rung.comparisons)]
    metrics = list(dict.fromkeys(metric(each) for each in cells))
    places = {(each.scenario, each.setting, each.metric) for each in cells}
    text = " and ".join(metrics[:2])
    return f"{text}: the largest change of {len(places)} cells" if len(places) > 1 else text


def failures(ladder: Ladder) -> list[tuple[str, str]]:
    """Return a sentence on each patch without a kernel that runs, and the excerpt of its log."""
    return [
        (f"Patch {rung.patch} ({rung.subject}): {rung.headline}", rung.failure.excerpt)
        for rung in ladder.rungs
        if rung.failure is not None
    ]


def reasons(ladder: Ladder) -> list[str]:
    """Return the verdict of each patch that changes something or showed a kernel report, in a sentence."""
    return [
        f"patch {rung.patch}: {rung.headline}"
        for rung in ladder.rungs
        if rung.verdict in CLAIMS and rung.failure is None
    ]


def brief(target: TargetReport, most: int) -> tuple[list[str], list[list[str]], int]:
    """Return header and at most `most` rows, and the number of patches left out: first those that change nothing."""
    ladder, (*patches, whole) = target.ladder, rows(target)
    rungs = ladder.rungs if ladder else []
    if len(patches) >= most:
        patches = [row for row, rung in zip(patches, rungs, strict=True) if rung.verdict in CLAIMS][: most - 1]
    columns, found = header(), [*patches, whole]
    if all(row[3] in {"", "exact"} for row in found):
        columns, found = [*columns[:3], columns[4]], [[*row[:3], row[4]] for row in found]
    return columns, found, len(rungs) - len(patches)
