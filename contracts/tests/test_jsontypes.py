"""Types that accept exactly what their JSON schema describes."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from wqlab_contracts.jsontypes import JsonAwareTime, JsonBool, JsonFloat, JsonInt, JsonTime


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (JsonBool, [True, False], [0, 1, "true", "no", None]),
        (JsonInt, [0, -3, 7.0], [True, False, "5", 7.5, None]),
        (JsonFloat, [0, 0.5], [True, "0.5", None]),
        (
            JsonTime,
            ["2026-01-31T12:00:00Z", "2026-01-31 12:00", "2026-01-31T12:00:00.123456+02:00"],
            [0, 0.5, "0.5", "1700000000", "2026-01-31", "2026-02-31T12:00:00Z", "now", True],
        ),
        (JsonAwareTime, ["2026-01-31T12:00:00Z"], ["2026-01-31T12:00:00", 1_900_000_000, "1900000000"]),
    ],
)
def test_values_of_another_type_are_refused(kind: Any, good: list[Any], bad: list[Any]) -> None:
    adapter = TypeAdapter(kind)
    for value in good:
        adapter.validate_python(value)
    for value in bad:
        with pytest.raises(ValidationError):
            adapter.validate_python(value)
