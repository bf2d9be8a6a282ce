"""Units of effects: the one place that decides them. `tests/golden/numbers.json` pins them for Python and the web."""

from __future__ import annotations

from .enums import Scale

PERCENT_UNITS = frozenset({"%", "percent"})
"""Ways in which a plan or a CSV file may write percent."""


def effect_unit(scale: Scale, unit: str) -> str:
    """Return the unit of an effect on a metric with this scale and unit.

    Percent for scale `ratio`; for `difference` the metric's unit, but `points` (percentage points) for a metric in
    percent.
    """
    if scale is Scale.RATIO:
        return "%"
    return "points" if unit in PERCENT_UNITS else unit
