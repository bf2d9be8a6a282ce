"""Progress lines of the command that prepares kernels."""

from __future__ import annotations

import pytest

from wqlab_worker.build.prepare import progress_text


@pytest.mark.parametrize(
    ("done", "total", "elapsed_s", "expected"),
    [
        (0, 0, 5, "compiling x"),
        (1, 100, 5, "compiling x  1%"),
        (25, 100, 60, "compiling x  25%, about 3 min left"),
        (90, 100, 90, "compiling x  90%, about 10 s left"),
    ],
)
def test_progress_text_estimates_remaining_time(done: int, total: int, elapsed_s: float, expected: str) -> None:
    assert progress_text("compiling x", done, total, elapsed_s) == expected
