"""Number formatting, against the golden table that the web is tested against too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wqlab_comparison import words
from wqlab_contracts.api.report import ArmSummary, Comparison, UnsupportedView
from wqlab_contracts.enums import (
    VERDICT_ORDER,
    Arm,
    Direction,
    Evidence,
    NotMeasuredCause,
    Question,
    Role,
    Scale,
    Verdict,
)

TABLE: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "contracts/tests/golden/numbers.json").read_text(encoding="utf-8")
)


def comparison(**given: Any) -> Comparison:
    return Comparison(
        plan="p",
        device_type="t",
        scenario="s",
        setting="",
        question=Question.KERNEL,
        reference="baseline",
        metric="m",
        direction=Direction.NONE,
        role=Role.PRIMARY,
        evidence=Evidence.MECHANISM,
        baseline=None,
        candidate=None,
        **({"scale": Scale.RATIO, "unit": "MiB/s"} | given),
    )


@pytest.mark.parametrize("row", TABLE["number"], ids=str)
def test_number(row: dict[str, Any]) -> None:
    assert words.number(row["value"], row["decimals"]) == row["text"]


@pytest.mark.parametrize("row", TABLE["decimal_places"], ids=str)
def test_places(row: dict[str, Any]) -> None:
    assert words.places(row["values"]) == row["places"]


@pytest.mark.parametrize("row", TABLE["mean_and_deviation"], ids=str)
def test_spread(row: dict[str, Any]) -> None:
    arm = ArmSummary(mean=row["mean"], stddev=row["stddev"], n=6)
    assert words.spread(arm, words.decimals([arm])) == row["text"]


@pytest.mark.parametrize("row", TABLE["signed"], ids=str)
def test_signed(row: dict[str, Any]) -> None:
    assert words.signed(row["value"]) == row["text"]


@pytest.mark.parametrize("row", TABLE["effect"], ids=str)
def test_effect(row: dict[str, Any]) -> None:
    given = {name: row[name] for name in ("effect", "exact", "scale", "unit")}
    assert words.effect(comparison(**given)) == row["text"]


@pytest.mark.parametrize("row", TABLE["interval"], ids=str)
def test_ci(row: dict[str, Any]) -> None:
    assert words.ci(comparison(ci95=row["ci95"])) == row["text"]


@pytest.mark.parametrize("row", TABLE["p_value"], ids=str)
def test_p_value(row: dict[str, Any]) -> None:
    assert words.p_value(row["p"]) == row["text"]


def test_verdict_signs_and_order() -> None:
    rows = [(verdict.value, words.SIGN[verdict]) for verdict in VERDICT_ORDER]
    assert rows == [(row["verdict"], row["sign"]) for row in TABLE["verdicts"]]
    assert set(VERDICT_ORDER) == set(Verdict) == set(words.VERDICT)


def test_every_cause_of_a_missing_figure_has_a_label() -> None:
    labels = {row["cause"]: row["text"] for row in TABLE["not_measured"]}
    assert list(words.NOT_MEASURED) == list(NotMeasuredCause)
    assert dict(words.NOT_MEASURED) == labels
    for cause, text in (
        (NotMeasuredCause.LACKING, "fio moved no data"),
        (NotMeasuredCause.NO_SAMPLES, "no samples: fio moved no data"),
    ):
        entry = UnsupportedView(
            scenario="s", setting="", metric=None, arm=Arm.CANDIDATE, cause=cause, reason="fio moved no data"
        )
        assert words.not_measured(entry) == text
    assert words.cause(comparison(not_measured=NotMeasuredCause.UNPAIRED)) == "not paired"
    assert words.cause(comparison()) == ""


@pytest.mark.parametrize(
    ("deviations", "places"),
    [((50.9, 61.5), 0), ((1.34, 0.89), 2), ((None, None), 2), ((0.0, 12.0), 0)],
)
def test_decimal_places_of_a_mean_depend_on_its_deviation(deviations: tuple[float | None, ...], places: int) -> None:
    arms = [ArmSummary(mean=2913.5, stddev=deviation, n=2) for deviation in deviations]
    assert words.decimals(arms) == places


@pytest.mark.parametrize(
    ("values", "unit", "expected"),
    [
        ([17_112_760.0, 3_000_000.0], "us", (1e6, "s")),
        ([17_112_760.0, 3.0], "us", (1e3, "ms")),
        ([20_000.0, 5.0, 0.0], "us", (1.0, "us")),
        ([1500.0], "ns", (1e3, "us")),
        ([0.25], "s", (1e-3, "ms")),
        ([0.0], "us", (1.0, "us")),
        ([5e9], "locks", (1.0, "locks")),
        ([], "ms", (1.0, "ms")),
    ],
)
def test_times_are_shown_in_a_readable_unit(values: list[float], unit: str, expected: tuple[float, str]) -> None:
    assert words.readable_time(values, unit) == expected


@pytest.mark.parametrize(("us", "text"), [(999.7, "1000 us"), (4096, "4.1 ms"), (0, "0 us"), (5e9, "5000 s")])
def test_single_time_has_three_digits_and_no_exponent(us: float, text: str) -> None:
    assert words.time(us, "us") == text
