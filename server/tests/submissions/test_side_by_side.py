"""Side-by-side comparison of two submissions: changes and notes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from wqlab_contracts.api.report import ArmSummary, Comparison
from wqlab_contracts.api.steps import FigureChange, SubmissionVersion
from wqlab_contracts.api.submissions import SubmissionRequest, TargetSummary
from wqlab_contracts.enums import Evidence, Verdict
from wqlab_server.submissions.side_by_side import NOT_PAIRED, Side, compare

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def figure(verdict: Verdict | None = Verdict.IMPROVEMENT, **changes: Any) -> Comparison:
    fields = {
        "plan": "fsync", "device_type": "xeon", "scenario": "a", "setting": "", "question": "kernel",
        "reference": "baseline", "metric": "bw", "unit": "MiB/s", "scale": "ratio", "direction": "higher_is_better",
        "role": "primary", "evidence": "performance", "baseline": ArmSummary(mean=1, stddev=None, n=6),
        "candidate": ArmSummary(mean=2, stddev=None, n=6), "effect": 5.0, "ci95": (4.0, 6.0), "verdict": verdict,
    }  # fmt: skip
    return Comparison.model_validate(fields | changes)


def side(number: int, *figures: Comparison, request: dict[str, Any] | None = None, **changes: Any) -> Side:
    target = {
        "run_id": number, "plan": "fsync", "device_type": "xeon", "emulated": False, "device": "x1",
        "state": "finished", "outcome": "passed", "verdict": None, "headline": "", "done_boots": 12, "total_boots": 12,
    }  # fmt: skip
    summary = TargetSummary.model_validate(target | changes.pop("target", {}))
    fields = {
        "id": number, "title": "wq", "series_key": "wq", "tree": "t", "owner": "o", "priority": 50,
        "state": "finished", "outcome": "passed", "failure": None, "verdicts": {}, "created_at": NOW,
        "finished_at": NOW, "base_commit": "a" * 40, "tree_oid": str(number) * 40, "targets": [summary],
    }  # fmt: skip
    submission_request = {
        "series": None,
        "tree": "t",
        "targets": [{"plan": "fsync", "device_type": "xeon"} | (request or {})],
    }
    return Side(
        SubmissionVersion.model_validate(fields | changes),
        SubmissionRequest.model_validate(submission_request),
        figures,
    )


@pytest.mark.parametrize(
    ("first", "second", "change"),
    [
        ("improvement", "improvement", "same"),
        ("equivalent", "improvement", "better"),
        ("regression", "below_threshold", "better"),
        ("improvement", "equivalent", "worse"),
        ("equivalent", "regression", "worse"),
        ("equivalent", "below_threshold", "other"),
        ("inconclusive", "improvement", "other"),
        ("improvement", "failed", "other"),
        ("improvement", None, "other"),
        (None, None, "none"),
    ],
)
def test_verdict_change_is_classified(first: str | None, second: str | None, change: str) -> None:
    verdicts = [Verdict(each) if each else None for each in (first, second)]
    (pair,) = compare(side(1, figure(verdicts[0])), side(2, figure(verdicts[1]))).figures
    assert pair.change == change


def test_difference_of_effects_has_no_interval() -> None:
    (pair,) = compare(side(1, figure()), side(2, figure(effect=2.0, ci95=(1.0, 3.0)))).figures
    assert pair.effect_change == -3.0
    assert pair.intervals_overlap is False
    (pair,) = compare(side(1, figure()), side(2, figure(effect=5.5, ci95=(5.0, 7.0)))).figures
    assert pair.intervals_overlap is True
    (pair,) = compare(side(1, figure()), side(2, figure(ci95=None))).figures
    assert pair.intervals_overlap is None


def test_figures_without_evidence_have_no_change() -> None:
    value = figure(Verdict.NO_EVIDENCE, evidence=Evidence.NONE, effect=None, ci95=None)
    (pair,) = compare(side(1, value), side(2, value)).figures
    assert (pair.change, pair.effect_change, pair.intervals_overlap) == (FigureChange.NONE, None, None)
    (pair,) = compare(side(1, value), side(2, figure())).figures
    assert pair.change is FigureChange.NONE


def test_figure_of_only_one_submission_is_marked() -> None:
    found = compare(side(1, figure(), figure(scenario="b")), side(2, figure(scenario="c"), figure()))
    assert [(pair.scenario, pair.change) for pair in found.figures] == [
        ("a", FigureChange.SAME),
        ("b", FigureChange.ONLY_FIRST),
        ("c", FigureChange.ONLY_SECOND),
    ]
    other = side(2, target={"device_type": "ryzen"})
    assert [(pair.device_type, pair.first is None) for pair in compare(side(1), other).targets] == [
        ("xeon", False),
        ("ryzen", True),
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"state": "running"}, "Submission 2 is not finished"),
        ({"series_key": "mm"}, "not versions of one series"),
        ({"tree": "u"}, "different trees, t and u"),
        ({"base_commit": "b" * 40}, "different base commits (aaaaaaaaaaaa and bbbbbbbbbbbb)"),
        ({"tree_oid": "1" * 40}, "the same source code"),
        ({"target": {"device": "x2"}}, "different devices, x1 and x2"),
        ({"target": {"total_boots": 24}}, "12 planned boots in the first submission and 24"),
        ({"request": {"parameters": {"jobs": 8}}}, "different scenarios, settings or parameters"),
    ],
)
def test_notes_name_the_differences_of_the_submissions(changes: dict[str, Any], words: str) -> None:
    notes = compare(side(1), side(2, **changes)).notes
    assert notes[0] == NOT_PAIRED
    assert len(notes) == 2
    assert words in notes[1]


def test_submissions_that_differ_only_in_code_have_no_further_note() -> None:
    assert compare(side(1), side(2)).notes == [NOT_PAIRED]
