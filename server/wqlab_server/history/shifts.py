"""Open shifts where a line seems to have another level, and judge them by the paired runs of both sides."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from wqlab_comparison.change_points import LEAST_POINTS, find_levels
from wqlab_contracts.api.history import HistoryLevel
from wqlab_contracts.api.report import Comparison as ComparisonData
from wqlab_contracts.enums import Direction, Scale, ShiftSource, ShiftState, Verdict

from ..models import HistoryLine, HistoryPoint, HistoryShift, WatchedHead
from ..storage.db import clock

_DIFFERENT = frozenset({Verdict.REGRESSION, Verdict.IMPROVEMENT})
_UNMEASURED = frozenset({Verdict.FAILED, Verdict.UNSUPPORTED, Verdict.NO_EVIDENCE})


SOURCE = "shift"
"""Name of the source of the orders that confirm shifts."""


def order_key(shift: HistoryShift, line: HistoryLine) -> str:
    """Return the key of the order that confirms a shift: shifts between the same heads and target share it."""
    return f"{shift.before_id}:{shift.after_id}:{line.plan_name}@{line.device_type}"


def open_shifts(session: Session, line: HistoryLine) -> list[HistoryShift]:
    """Compute the line's levels, and open a shift for each change that no shift of the line covers yet.

    Suspect are the verdict of the newest point, and each change point since the last change of the environment.
    """
    points = session.scalars(
        select(HistoryPoint).where(HistoryPoint.line_id == line.id).order_by(HistoryPoint.head_id)
    ).all()
    line.levels = levels_of(points, line.scale)
    if not points:
        return []
    known = _known_places(session, line, points)
    opened = []
    newest = points[-1]
    parent = session.get_one(WatchedHead, newest.head_id).parent_id
    index = len(points) - 1
    if newest.verdict in _DIFFERENT and newest.effect is not None and parent is not None and index not in known:
        opened.append(
            _open(
                session,
                line,
                before=parent,
                after=newest.head_id,
                source=ShiftSource.VERDICT,
                effect=newest.effect,
            )
        )
        known.add(index)
    for before, after in _last_environment(line.levels, points):
        effect = effect_between(before.middle, after.middle, line.scale)
        near = any(abs(place - after.start) < LEAST_POINTS for place in known)
        if not near and effect is not None and abs(effect) >= (line.delta or 0.0):
            ends = {"before": points[after.start - 1].head_id, "after": points[after.start].head_id}
            opened.append(_open(session, line, **ends, source=ShiftSource.LEVEL, effect=effect))
            known.add(after.start)
    return opened


def levels_of(points: Sequence[HistoryPoint], scale: Scale) -> list[HistoryLevel]:
    """Return the levels of a line, oldest first; none extends over a change of the environment.

    Points of byte-identical kernels repeat a value that was measured once, so that a level counts only the others. They
    belong to the level of the point before.
    """
    bounds = [0, *(index for index, point in enumerate(points) if point.cut and index), len(points)]
    found = []
    for start, end in itertools.pairwise(bounds):
        measured = [index for index in range(start, end) if points[index].n > 0]
        levels = find_levels([points[index].value for index in measured], scale)
        starts = [start, *(measured[level.start] for level in levels[1:]), end]
        found += [
            HistoryLevel(start=starts[order], end=starts[order + 1], middle=level.middle, spread=level.spread)
            for order, level in enumerate(levels)
        ]
    return found


def effect_between(before: float, after: float, scale: Scale) -> float | None:
    """Return the change from one level to another: percent for scale ratio, units for difference.

    None if a ratio is not defined, because a level is not positive.
    """
    if scale is Scale.DIFFERENCE:
        return after - before
    return 100 * math.expm1(math.log(after / before)) if before > 0 and after > 0 else None


def is_worse(direction: Direction, effect: float) -> bool | None:
    """Return True if a change is to the worse, False if to the better; None without a better direction or change."""
    if direction is Direction.NONE or effect == 0:
        return None
    return (effect < 0) is (direction is Direction.HIGHER_IS_BETTER)


def judge(shift: HistoryShift, measured: ComparisonData | None) -> str | None:
    """Take the figures of the paired run, and set the state.

    Returns None, or if the metric was not measured, why; the shift is unchanged then.
    """
    if measured is None or measured.verdict in _UNMEASURED or measured.effect is None:
        return (measured.reason if measured is not None else "") or "the metric was not measured"
    shift.effect, shift.verdict = measured.effect, measured.verdict
    shift.ci_low, shift.ci_high = measured.ci95 or (None, None)
    differs = measured.verdict in _DIFFERENT or (measured.direction is Direction.NONE and _is_significant(measured))
    same_direction = (measured.effect > 0) is (shift.suspected_effect > 0)
    if differs and same_direction:
        shift.state, shift.reason = ShiftState.CONFIRMED, ""
    elif differs:
        shift.state, shift.reason = ShiftState.NOT_REPRODUCED, "the paired run differs in the other direction"
    elif measured.verdict is Verdict.EQUIVALENT:
        shift.state, shift.reason = ShiftState.NOT_REPRODUCED, "both sides are the same in the paired run"
    elif measured.verdict is Verdict.BELOW_THRESHOLD:
        shift.state = ShiftState.NOT_REPRODUCED
        shift.reason = "the sides differ by less than the least relevant effect"
    else:
        shift.state = ShiftState.NOT_REPRODUCED
        shift.reason = f"the paired run does not decide: {measured.reason}" if measured.reason else "not decided"
    return None


def _is_significant(measured: ComparisonData) -> bool:
    if measured.exact:
        return bool(measured.effect)
    return measured.ci95 is not None and not measured.ci95[0] <= 0 <= measured.ci95[1]


def _open(
    session: Session, line: HistoryLine, *, before: int, after: int, source: ShiftSource, effect: float
) -> HistoryShift:
    now = clock(session)
    shift = HistoryShift(
        line_id=line.id, before_id=before, after_id=after, source=source, state=ShiftState.NEW,
        suspected_effect=effect, reason="", owner="", notes="", created_at=now, changed_at=now,
        changed_by="",
    )  # fmt: skip
    session.add(shift)
    session.flush()
    return shift


def _known_places(session: Session, line: HistoryLine, points: Sequence[HistoryPoint]) -> set[int]:
    """Return the indexes of the points at which the line has a shift, whatever its state."""
    after = set(session.scalars(select(HistoryShift.after_id).where(HistoryShift.line_id == line.id)))
    return {index for index, point in enumerate(points) if point.head_id in after}


def _last_environment(
    levels: Sequence[HistoryLevel], points: Sequence[HistoryPoint]
) -> list[tuple[HistoryLevel, HistoryLevel]]:
    """Return the pairs of neighbouring levels since the environment last changed."""
    last_cut = max((index for index, point in enumerate(points) if point.cut), default=0)
    since = [level for level in levels if level.start >= last_cut]
    return list(itertools.pairwise(since))
