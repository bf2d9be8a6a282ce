"""Times of a report in a unit that people read."""

from __future__ import annotations

from datetime import UTC, datetime

from report_examples import improvement

from wqlab_contracts.api.instrument import NoiseFloor
from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import Scale
from wqlab_report.units import readable
from wqlab_report.writers.first_screen import first_screen
from wqlab_report.writers.text import render_text


def slow() -> Report:
    """Return a report whose primary metric is a time: 33 s and 3 s, in microseconds."""
    made = improvement()
    target = made.targets[0]
    name = next(of.metric for of in target.comparisons if of.metric == "locks_per_flush")

    def micro(of: object, *names: str) -> dict[str, object]:
        return {each: getattr(of, each) * 1e6 for each in names if getattr(of, each) is not None}

    cells = [
        of.model_copy(
            update={
                "unit": "us",
                "scale": Scale.DIFFERENCE,
                "effect": -30e6,
                "exact": False,
                "baseline": of.baseline.model_copy(update=micro(of.baseline, "mean", "stddev")),
                "candidate": of.candidate.model_copy(update=micro(of.candidate, "mean", "stddev")),
            }
        )
        if of.metric == name and of.baseline and of.candidate
        else of
        for of in target.comparisons
    ]
    values = [each.model_copy(update=micro(each, "value")) if each.metric == name else each for each in target.values]
    return made.model_copy(update={"targets": [target.model_copy(update={"comparisons": cells, "values": values})]})


def test_times_have_one_readable_unit_in_comparisons_and_values() -> None:
    (target,) = readable(slow()).targets
    of = next(each for each in target.comparisons if each.metric == "locks_per_flush")
    assert of.baseline is not None and of.candidate is not None
    assert (of.unit, of.effect_unit, of.effect) == ("s", "s", -30)
    assert (of.baseline.mean, of.candidate.mean) == (33, 3)
    assert {each.value for each in target.values if each.metric == "locks_per_flush"} == {33, 3}


def test_noise_floors_and_thresholds_have_the_unit_of_the_effect() -> None:
    report = slow()
    target = report.targets[0]
    floor = NoiseFloor(
        scenario="fsync", setting="", metric="locks_per_flush", floor=5e6, seeds=6, measured_at=datetime.now(UTC)
    )
    changes = {"scale": Scale.DIFFERENCE, "unit": "us", "delta": 1e6}
    metrics = [
        each.model_copy(update=changes) if each.name == "locks_per_flush" else each for each in target.plan.metrics
    ]
    plan = target.plan.model_copy(update={"metrics": metrics})
    target = target.model_copy(update={"plan": plan, "noise_floors": [floor]})
    (shown,) = readable(report.model_copy(update={"targets": [target]})).targets
    assert [each.floor for each in shown.noise_floors] == [5]
    metric = shown.plan.metric("locks_per_flush")
    assert (metric.unit, metric.delta) == ("s", 1)


def test_text_and_first_screen_have_no_microseconds() -> None:
    report = slow()
    assert "(us)" not in render_text(report) and "locks_per_flush (s)" in render_text(report)
    assert "-30.0 s".replace("-", "\u2212") in first_screen(report)


def test_report_without_times_stays_the_same() -> None:
    report = improvement()
    assert readable(report) is report
