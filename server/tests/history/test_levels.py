"""Levels of a line with points that were not measured of themselves."""

from __future__ import annotations

from wqlab_contracts.enums import Scale
from wqlab_server.history.shifts import levels_of
from wqlab_server.models import HistoryPoint

NOISE = [0.0, 0.5, -0.4, 0.3, -0.6, 0.2, 0.6, -0.3]


def point(value: float, n: int = 4, cut: str = "") -> HistoryPoint:
    return HistoryPoint(value=value, n=n, cut=cut)


def test_repeated_values_do_not_make_a_level_or_narrow_it() -> None:
    measured = [point(100 + noise) for noise in NOISE]
    high = [point(103.0), *(point(103.0, n=0) for _ in range(8))]
    points = [*measured, *high, *(point(100 + noise) for noise in NOISE)]
    (level,) = levels_of(points, Scale.DIFFERENCE)
    assert (level.start, level.end) == (0, len(points))
    assert level.spread > 0.3


def test_repeated_values_belong_to_the_level_before() -> None:
    points = [
        *(point(34) for _ in range(3)), *(point(34, n=0) for _ in range(2)),
        *(point(40) for _ in range(2)), point(40, n=0),
        point(41, cut="disk a -> b"), point(41, n=0),
    ]  # fmt: skip
    levels = levels_of(points, Scale.DIFFERENCE)
    assert [(level.start, level.end, level.middle) for level in levels] == [(0, 5, 34), (5, 8, 40), (8, 10, 41)]
