from __future__ import annotations

import pytest

from wqlab_client.formatting import duration, rough_duration


@pytest.mark.parametrize(
    ("seconds", "exact", "about"),
    [
        (0, "0:00", "0 s"),
        (59.6, "1:00", "60 s"),
        (600, "10:00", "10 min"),
        (7322, "2:02:02", "2 h"),
        (-5, "0:00", "0 s"),
    ],
)
def test_durations_are_formatted(seconds: float, exact: str, about: str) -> None:
    assert duration(seconds) == exact
    assert rough_duration(seconds) == about
