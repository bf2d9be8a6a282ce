"""List the reasons of verdicts, one sentence per reason instead of one per cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wqlab_contracts.api.report import Comparison
from wqlab_contracts.enums import Arm, Direction, Question, Role, Verdict

from . import words

_MAX_NAMES = 4
"""Names in a list before `and 3 more`."""
_QUESTION = {Question.KERNEL: "kernels", Question.SETTING: "settings"}


def reasons(comparisons: Sequence[Comparison]) -> list[str]:
    """Return one sentence per reason.

    Example: `l3_share (LOW scope=cache,strict=0): improvement: p .0021 adjusted, ...`.

    Secondary metrics that moved against a verdict come first, then boots that fall into two modes, then the reasons in
    the order of the comparisons.
    Explanatory metrics and cells without evidence are left out.
    """
    judged = [cell for cell in comparisons if _is_judged(cell)]
    cells_by_reason: dict[tuple[Question, str], list[Comparison]] = {}
    for cell in judged:
        if cell.reason:
            reason = f"{words.VERDICT[cell.verdict]}: {cell.reason}" if cell.verdict else cell.reason
            cells_by_reason.setdefault((cell.question, reason), []).append(cell)
    both = len({question for question, _ in cells_by_reason}) > 1
    sentences = [*_opposite_secondaries(comparisons), *_modes(comparisons)]
    for (question, reason), cells in cells_by_reason.items():
        candidates = [cell for cell in judged if cell.question is question]
        where = f"{_QUESTION[question]}, " if both else ""
        sentences.append(f"{where}{_name_cells(cells, candidates)}: {reason}")
    return sentences


def _opposite_secondaries(comparisons: Sequence[Comparison]) -> list[str]:
    """Return a sentence per secondary that moved against its primary's verdict by more than its threshold.

    Significant or not, because a cost may have moved to where the primary does not measure it.
    """
    sentences = []
    for primary in comparisons:
        if primary.role is not Role.PRIMARY or primary.verdict not in {Verdict.IMPROVEMENT, Verdict.REGRESSION}:
            continue
        for other in comparisons:
            if other.role is Role.SECONDARY and _cell(other) == _cell(primary):
                gain = _improvement(other)
                if gain * (1 if primary.verdict is Verdict.IMPROVEMENT else -1) < -(other.delta or 0.0):
                    limit = f", more than its threshold of {words.threshold(other)}" if other.delta else ""
                    place = _format_place((primary.scenario, primary.setting))
                    where = f" ({place})" if place else ""
                    sentences.append(
                        f"{words.metric(primary)}{where}: {words.VERDICT[primary.verdict]}, "
                        f"but {words.metric(other)} moved the other way: {words.effect(other)}{limit}"
                    )
    return sentences


def _modes(comparisons: Sequence[Comparison]) -> list[str]:
    """Return a sentence per cell whose boots fall into two modes; a reference setting is named once."""
    sentences = []
    named: set[tuple[str, str, str, Arm | None]] = set()
    for cell in comparisons:
        if cell.role is Role.EXPLANATORY:
            continue
        text = words.modes(cell)
        if cell.question is Question.SETTING and cell.baseline and cell.baseline.modes:
            key = (cell.scenario, cell.reference, cell.metric, cell.kernel)
            if key in named:
                hidden = {"baseline": cell.baseline.model_copy(update={"modes": None})}
                text = words.modes(cell.model_copy(update=hidden))
            named.add(key)
        if text:
            place = _format_place((cell.scenario, cell.setting if cell.question is Question.KERNEL else ""))
            kernel = f" on the {cell.kernel} kernel" if cell.kernel is Arm.CANDIDATE else ""
            sentences.append(f"{words.metric(cell)}{f' ({place})' if place else ''}{kernel}: {text}")
    return sentences


def _cell(cell: Comparison) -> tuple[Question, str, str, Arm | None]:
    return cell.question, cell.scenario, cell.setting, cell.kernel


def _improvement(cell: Comparison) -> float:
    """Return the effect, positive if the metric improved; 0 without an effect or if neither direction is better."""
    if cell.direction is Direction.NONE or cell.effect is None:
        return 0.0
    return cell.effect if cell.direction is Direction.HIGHER_IS_BETTER else -cell.effect


def _is_judged(cell: Comparison) -> bool:
    return cell.role is not Role.EXPLANATORY if cell.verdict is None else cell.verdict is not Verdict.NO_EVIDENCE


def _name_cells(cells: Sequence[Comparison], candidates: Sequence[Comparison]) -> str:
    """Return a short name for the cells, without what all of `candidates` have in common."""
    chosen = dict.fromkeys(map(_key, cells))
    metrics = dict.fromkeys(metric for _, metric in chosen)
    places = dict.fromkeys(place for place, _ in chosen)
    every = dict.fromkeys(map(_key, candidates))
    if len(chosen) == len(every):
        return "everything" if len(metrics) > _MAX_NAMES else _join_names(metrics)
    if all(key in chosen for key in every if key[0] in places) and len(places) < len({place for place, _ in every}):
        return _join_names((_format_place(place) for place in places), "; ")
    if len(chosen) < len(metrics) * len(places):
        return _join_names(
            (f"{metric} ({_format_place(place)})" if _format_place(place) else metric for place, metric in chosen), "; "
        )
    everywhere = {place for place, metric in every if metric in metrics} == set(places)
    where = "" if everywhere else f" ({_join_names((_format_place(place) for place in places), '; ')})"
    return f"{_join_names(metrics)}{where}"


def _key(cell: Comparison) -> tuple[tuple[str, str], str]:
    return (cell.scenario, cell.setting), words.metric(cell)


def _format_place(place: tuple[str, str]) -> str:
    return " ".join(filter(None, place))


def _join_names(names: Iterable[str], separator: str = ", ") -> str:
    texts = list(names)
    more = f" and {len(texts) - _MAX_NAMES} more" if len(texts) > _MAX_NAMES else ""
    return separator.join(texts[:_MAX_NAMES]) + more
