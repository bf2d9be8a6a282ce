"""What the validation of modelled devices covers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wqlab_contracts.specs import Validation, why_withheld
from wqlab_contracts.validation_file import FILE, read_validations

HASH = "ab" * 32
FACT = f"ryzen-3900x sha256:{HASH}"


def row(**changes: Any) -> Validation:
    base = {"profile": "ryzen-3900x", "sha256": HASH, "plan": "test-workqueue", "validated": True}
    cells = {"cells": {"right": 9, "of": 10}, "reason": "mail of 2026-03-19"}
    return Validation.model_validate(base | cells | changes)


WRONG = row(validated=False, metrics=["cpu_items_per_s"], cells={"right": 1, "of": 4}, reason="the cpu rows fall")


@pytest.mark.parametrize(
    ("rows", "facts", "plan", "metric", "expected"),
    [
        ([row()], [FACT], "test-workqueue", "cache_items_per_s", ""),
        ([row()], [FACT], "xfs-fsync", "bandwidth", "xfs-fsync bandwidth on the costs ryzen-3900x sha256:abababababab"),
        ([row(metrics=["cache_items_per_s"])], [FACT], "test-workqueue", "cpu_items_per_s", "no published figure"),
        ([row(sha256="cd" * 32)], [FACT], "test-workqueue", "cache_items_per_s", "no published figure"),
        ([row(), WRONG], [FACT], "test-workqueue", "cpu_items_per_s", "1 of 4 cells right; the cpu rows fall"),
        ([row(), WRONG], [FACT], "test-workqueue", "cache_items_per_s", ""),
        ([row()], [], "test-workqueue", "cache_items_per_s", "no boot reported its cost profile"),
        ([row()], ["ryzen-3900x"], "test-workqueue", "cache_items_per_s", "no boot reported its cost profile"),
        ([row()], [FACT, FACT[:-1] + "c"], "test-workqueue", "cache_items_per_s", "the boots had 2 cost profiles"),
        ([], [FACT], "test-workqueue", "cache_items_per_s", "no published figure"),
    ],
)
def test_only_what_is_listed_as_validated_is_not_withheld(
    rows: list[Validation], facts: list[str], plan: str, metric: str, expected: str
) -> None:
    found = why_withheld(rows, facts, plan, metric)
    assert found.startswith("not validated: ") if expected else found == ""
    assert expected in found


ROW = f"- {{profile: p, sha256: {HASH}, plan: a, validated: true, cells: {{right: 1, of: 2}}, reason: a mail of May"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"validations:\n{ROW}}}\n{ROW}}}\n", "a: the whole plan is listed twice with one hash"),
        (f"validations:\n{ROW}, metrics: [m]}}\n{ROW}, metrics: [m, n]}}\n", "a: m is listed twice"),
        (f"validations:\n{ROW}}}\n".replace("right: 1", "right: 3"), "3 of 2 cells cannot be right"),
        (f"validations:\n{ROW}}}\n", "no plan 'a'"),
    ],
)
def test_a_row_that_cannot_be_right_is_named_and_no_row_counts(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_text(text)
    rows, problems = read_validations(tmp_path, {})
    assert rows == ()
    assert any(message in problem.message for problem in problems)
