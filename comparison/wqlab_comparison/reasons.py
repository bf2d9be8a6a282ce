"""Why each comparison ended as it did, told once per reason instead of once per cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wqlab_contracts.api.report import Comparison
from wqlab_contracts.enums import Arm, Direction, Question, Role, Verdict

from . import words

_MOST = 4
"""Names in a list before `and 3 more`."""
_QUESTION = {Question.KERNEL: "kernels", Question.SETTING: "settings"}


def reasons(comparisons: Sequence[Comparison]) -> list[str]:
    """`l3_share (LOW scope=cache,strict=0): improvement: p .0021 adjusted, ...`, a sentence per reason, in the order of
    the comparisons. Cells that nobody judges are not among them: the tables say so. First what speaks against a
    verdict: a secondary metric that moved the other way."""
    judged = [cell for cell in comparisons if _is_judged(cell)]
    told: dict[tuple[Question, str], list[Comparison]] = {}
    for cell in judged:
        if cell.reason:
            reason = f"{words.VERDICT[cell.verdict]}: {cell.reason}" if cell.verdict else cell.reason
            told.setdefault((cell.question, reason), []).append(cell)
    both = len({question for question, _ in told}) > 1
    sentences = _contrary(comparisons)
    for (question, reason), cells in told.items():
        asked = [cell for cell in judged if cell.question is question]
        where = f"{_QUESTION[question]}, " if both else ""
        sentences.append(f"{where}{_named(cells, asked)}: {reason}")
    return sentences


def _contrary(comparisons: Sequence[Comparison]) -> list[str]:
    """A primary that got better while a secondary of the same cell got worse by more than its threshold, or the other
    way round; certain or not, because a cost may only have moved to where the primary does not look."""
    sentences = []
    for primary in comparisons:
        if primary.role is not Role.PRIMARY or primary.verdict not in {Verdict.IMPROVEMENT, Verdict.REGRESSION}:
            continue
        for other in comparisons:
            if other.role is Role.SECONDARY and _cell(other) == _cell(primary):
                moved = _gain(other)
                if moved * (1 if primary.verdict is Verdict.IMPROVEMENT else -1) < -(other.delta or 0.0):
                    limit = f", more than its threshold of {words.threshold(other)}" if other.delta else ""
                    place = _text((primary.scenario, primary.setting))
                    where = f" ({place})" if place else ""
                    sentences.append(
                        f"{primary.metric}{where}: {words.VERDICT[primary.verdict]}, "
                        f"but {other.metric} moved the other way: {words.effect(other)}{limit}"
                    )
    return sentences


def _cell(cell: Comparison) -> tuple[Question, str, str, Arm | None]:
    return cell.question, cell.scenario, cell.setting, cell.kernel


def _gain(cell: Comparison) -> float:
    """The effect, positive when the metric got better; 0 without one, or where neither direction is better."""
    if cell.direction is Direction.NONE or cell.effect is None:
        return 0.0
    return cell.effect if cell.direction is Direction.HIGHER_IS_BETTER else -cell.effect


def _is_judged(cell: Comparison) -> bool:
    return cell.role is not Role.EXPLANATORY if cell.verdict is None else cell.verdict is not Verdict.NO_EVIDENCE


def _named(cells: Sequence[Comparison], asked: Sequence[Comparison]) -> str:
    """The cells in few words. Whatever all of `asked` have in common goes without saying."""
    chosen = dict.fromkeys(map(_key, cells))
    metrics = dict.fromkeys(metric for _, metric in chosen)
    places = dict.fromkeys(place for place, _ in chosen)
    every = dict.fromkeys(map(_key, asked))
    if len(chosen) == len(every):
        return "everything" if len(metrics) > _MOST else _listed(metrics)
    if all(key in chosen for key in every if key[0] in places) and len(places) < len({place for place, _ in every}):
        return _listed((_text(place) for place in places), "; ")
    if len(chosen) < len(metrics) * len(places):
        return _listed((f"{metric} ({_text(place)})" if _text(place) else metric for place, metric in chosen), "; ")
    everywhere = {place for place, metric in every if metric in metrics} == set(places)
    where = "" if everywhere else f" ({_listed((_text(place) for place in places), '; ')})"
    return f"{_listed(metrics)}{where}"


def _key(cell: Comparison) -> tuple[tuple[str, str], str]:
    return (cell.scenario, cell.setting), cell.metric


def _text(place: tuple[str, str]) -> str:
    return " ".join(filter(None, place))


def _listed(names: Iterable[str], separator: str = ", ") -> str:
    texts = list(names)
    more = f" and {len(texts) - _MOST} more" if len(texts) > _MOST else ""
    return separator.join(texts[:_MOST]) + more
