"""Tables, paragraphs and reasons as text: what fits a mail and says a thing once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_comparison import tables, words
from wqlab_comparison.reasons import reasons
from wqlab_contracts.api.report import ArmSummary, Comparison
from wqlab_contracts.enums import Arm, Direction, Evidence, Question, Role, Scale, Verdict

TEXT = st.lists(st.text("abc=,:.%<", min_size=1, max_size=200), max_size=20).map(" ".join)


def cell(scenario="HIGH", setting="scope=cache", metric="l3_share", reason="too few", **more) -> Comparison:
    values = {
        "plan": "plan",
        "device_type": "type",
        "scenario": scenario,
        "setting": setting,
        "question": Question.SETTING,
        "reference": "scope=system",
        "kernel": Arm.BASELINE,
        "metric": metric,
        "unit": "locks",
        "scale": Scale.DIFFERENCE,
        "direction": Direction.LOWER_IS_BETTER,
        "role": Role.PRIMARY,
        "evidence": Evidence.MECHANISM,
        "baseline": ArmSummary(mean=34, stddev=0, n=2),
        "candidate": ArmSummary(mean=4, stddev=0, n=2),
        "verdict": Verdict.INCONCLUSIVE,
        "reason": reason,
    }
    return Comparison.model_validate({**values, **more})


@given(TEXT, st.sampled_from(["", "* ", "    "]), st.integers(20, 78))
def test_a_paragraph_is_never_wider_and_loses_nothing(text: str, bullet: str, width: int) -> None:
    lines = tables.wrapped(text, bullet, width=width)
    assert all(len(line) <= width for line in lines)
    together = "".join(
        line.removeprefix(bullet if index == 0 else " " * len(bullet)) for index, line in enumerate(lines)
    )
    assert together.replace(" ", "") == text.replace(" ", "")


def test_a_url_stays_whole() -> None:
    url = "https://git.example.org/" + "a" * 90
    assert tables.wrapped(f"of {url} then", "* ") == ["* of", f"  {url}", "  then"]


def test_a_figure_keeps_its_unit() -> None:
    assert tables.wrapped("lower is better, threshold 1 %", width=28) == ["lower is better,", "threshold 1 %"]


@given(st.lists(st.tuples(*[st.text("abc=,[ ", max_size=60)] * 4), min_size=1, max_size=4))
def test_a_table_fits_however_wide_its_cells_are(rows: list[tuple[str, ...]]) -> None:
    for line in tables.fitted(["", "baseline", "95 % interval", "verdict"], rows):
        assert len(line) <= 78


def test_counts_change_by_whole_numbers() -> None:
    exact = cell(question=Question.KERNEL, kernel=None, reference="baseline", effect=-30.0, exact=True)
    assert words.effect(exact) == "-30 locks"
    [row] = [line for line in tables.kernel_tables([exact]) if line.startswith("HIGH")]
    assert row.split() == ["HIGH", "34", "4", "-30", "exact", "inconclusive"]


@pytest.mark.parametrize(
    ("deviations", "places"),
    [((50.9, 61.5), 0), ((1.34, 0.89), 2), ((None, None), 2), ((0.0, 12.0), 0)],
)
def test_a_mean_has_no_more_places_than_its_spread_bears(deviations: tuple[float | None, ...], places: int) -> None:
    arms = [ArmSummary(mean=2913.5, stddev=deviation, n=2) for deviation in deviations]
    assert words.decimals(arms) == places


def test_a_metric_that_was_not_measured_has_no_table() -> None:
    missing = cell(metric="other", baseline=None, candidate=None)
    assert not any("other" in line for line in tables.setting_tables([cell(), missing]))
    assert tables.setting_tables([missing]) == []


# --- reasons --------------------------------------------------------------------------------------------------------


def test_what_all_cells_share_is_not_said() -> None:
    cells = [cell(metric="locks_per_flush", reason="exactly 34"), cell(metric="mean"), cell(metric="locks_per_fsync")]
    assert reasons(cells) == [
        "locks_per_flush: inconclusive: exactly 34",
        "mean, locks_per_fsync: inconclusive: too few",
    ]


def test_a_reason_for_everything_names_nothing() -> None:
    assert reasons([cell(metric=f"m{number}") for number in range(9)]) == ["everything: inconclusive: too few"]


def test_cells_are_named_where_they_differ() -> None:
    cells = [cell(), cell(scenario="LOW"), cell(setting="scope=cpu", reason="p .001", verdict=Verdict.IMPROVEMENT)]
    assert reasons([*cells, cell(metric="core_share", scenario="LOW", reason="other")]) == [
        "l3_share (HIGH scope=cache; LOW scope=cache): inconclusive: too few",
        "HIGH scope=cpu: improvement: p .001",
        "core_share: inconclusive: other",
    ]


def test_a_setting_that_no_kernel_has_is_named_alone() -> None:
    cells = [cell(metric=metric, setting="scope=new", reason="no such scope") for metric in ("a", "b")]
    found = reasons([*cells, cell(metric="a"), cell(metric="b")])
    assert found[0] == "HIGH scope=new: inconclusive: no such scope"


def test_what_nobody_judges_is_not_explained() -> None:
    assert reasons([cell(role=Role.EXPLANATORY, verdict=None, reason="changed")]) == []


def test_both_questions_are_told_apart() -> None:
    kernel = cell(question=Question.KERNEL, kernel=None, reference="baseline")
    assert [each.partition(",")[0] for each in reasons([kernel, cell()])] == ["kernels", "settings"]


def contrary(effect: float, **more: object) -> list[str]:
    primary = cell(metric="locks", role=Role.PRIMARY, verdict=Verdict.IMPROVEMENT, effect=-30.0, reason="")
    wanted = {"metric": "mean", "direction": Direction.LOWER_IS_BETTER, "scale": Scale.RATIO, "reason": ""}
    other = cell(**{"role": Role.SECONDARY, "effect": effect, "delta": 5.0, **wanted, **more})
    return reasons([primary, other])


def test_a_secondary_that_moves_the_other_way_is_told_first() -> None:
    assert contrary(+12.0) == [
        "locks (HIGH scope=cache): improvement, but mean moved the other way: +12.0 %, more than its threshold of 5 %"
    ]
    assert contrary(+12.0, delta=None)[0].endswith("moved the other way: +12.0 %")


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
def test_nothing_is_told_of_what_moves_along_or_hardly_or_elsewhere(other: dict[str, object]) -> None:
    assert contrary(**other) == []  # type: ignore[arg-type]
