"""Reason sentences of verdicts."""

from __future__ import annotations

import pytest
from literal_samples import cell

from wqlab_comparison.reasons import reasons
from wqlab_contracts.enums import Direction, Question, Role, Scale, Verdict


def test_names_omit_what_all_cells_share() -> None:
    cells = [cell(metric="locks_per_flush", reason="exactly 34"), cell(metric="mean"), cell(metric="locks_per_fsync")]
    assert reasons(cells) == [
        "locks_per_flush: inconclusive: exactly 34",
        "mean, locks_per_fsync: inconclusive: too few",
    ]


def test_reason_common_to_many_metrics_begins_with_everything() -> None:
    assert reasons([cell(metric=f"m{number}") for number in range(9)]) == ["everything: inconclusive: too few"]


def test_cells_are_named_by_their_differences() -> None:
    cells = [cell(), cell(scenario="LOW"), cell(setting="scope=cpu", reason="p .001", verdict=Verdict.IMPROVEMENT)]
    assert reasons([*cells, cell(metric="core_share", scenario="LOW", reason="other")]) == [
        "l3_share (HIGH scope=cache; LOW scope=cache): inconclusive: too few",
        "HIGH scope=cpu: improvement: p .001",
        "core_share: inconclusive: other",
    ]


def test_unsupported_setting_is_named_without_metrics() -> None:
    cells = [cell(metric=metric, setting="scope=new", reason="no such scope") for metric in ("a", "b")]
    found = reasons([*cells, cell(metric="a"), cell(metric="b")])
    assert found[0] == "HIGH scope=new: inconclusive: no such scope"


def test_explanatory_metrics_have_no_reason() -> None:
    assert reasons([cell(role=Role.EXPLANATORY, verdict=None, reason="changed")]) == []


def test_kernel_and_setting_reasons_are_separate() -> None:
    kernel = cell(question=Question.KERNEL, kernel=None, reference="baseline")
    assert [each.partition(",")[0] for each in reasons([kernel, cell()])] == ["kernels", "settings"]


def reasons_with_secondary(effect: float, **more: object) -> list[str]:
    primary = cell(metric="locks", role=Role.PRIMARY, verdict=Verdict.IMPROVEMENT, effect=-30.0, reason="")
    common = {"metric": "mean", "direction": Direction.LOWER_IS_BETTER, "scale": Scale.RATIO, "reason": ""}
    other = cell(**{"role": Role.SECONDARY, "effect": effect, "delta": 5.0, **common, **more})
    return reasons([primary, other])


def test_secondary_that_moves_the_other_way_is_listed_first() -> None:
    assert reasons_with_secondary(+12.0) == [
        "locks (HIGH scope=cache): improvement, but mean moved the other way: +12.0 %, more than its threshold of 5 %"
    ]
    assert reasons_with_secondary(+12.0, delta=None)[0].endswith("moved the other way: +12.0 %")


@pytest.mark.parametrize(
    "other",
    [
        {"effect": 4.0},
        {"effect": -12.0},
        {"effect": 12.0, "scenario": "LOW"},
        {"effect": 12.0, "direction": Direction.NONE},
        {"effect": 12.0, "role": Role.EXPLANATORY},
    ],
)
def test_other_movements_of_metrics_are_not_listed(other: dict[str, object]) -> None:
    assert reasons_with_secondary(**other) == []  # type: ignore[arg-type]
