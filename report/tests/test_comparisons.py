"""Comparisons as text tables."""

from __future__ import annotations

from instrument_examples import instrumented
from literal_samples import cell

from wqlab_comparison import words
from wqlab_contracts.enums import Question
from wqlab_report import comparisons


def test_exact_counts_have_integer_changes() -> None:
    exact = cell(question=Question.KERNEL, kernel=None, reference="baseline", effect=-30.0, exact=True)
    assert words.effect(exact) == "-30 locks"
    [row] = [line for line in comparisons.kernel_tables([exact]) if line.startswith("HIGH")]
    assert row.split() == ["HIGH", "34", "4", "-30", "exact", "inconclusive"]


def test_unmeasured_metric_has_no_table() -> None:
    missing = cell(metric="other", baseline=None, candidate=None)
    assert not any("other" in line for line in comparisons.setting_tables([cell(), missing]))
    assert comparisons.setting_tables([missing]) == []


def test_table_counts_seeds() -> None:
    (title, *_) = comparisons.kernel_tables(instrumented().targets[0].comparisons)
    assert "n=6 seeds" in title
