"""The first screen of a report: claims, boots, what a reader checks, and links."""

from __future__ import annotations

import re

import pytest
from failed_examples import FAILED
from report_examples import improvement, panic, study
from report_support import hostile, with_bandwidth

from wqlab_contracts.enums import Evidence, Question, Role, SubmissionState, Verdict
from wqlab_report.document import claims
from wqlab_report.writers.first_screen import first_screen


def with_verdicts(*verdicts):
    """Return the improvement report with comparisons of these verdicts, by growing effect, and one without evidence."""
    report = improvement()
    (target, *_) = report.targets
    (like, *_) = target.comparisons
    judged = [
        like.model_copy(update={"metric": f"m{n}", "verdict": verdict, "effect": float(n), "exact": False,
                                "role": Role.SECONDARY, "evidence": Evidence.MECHANISM})
        for n, verdict in enumerate(verdicts)
    ]  # fmt: skip
    value = like.model_copy(update={"metric": "bandwidth", "evidence": Evidence.NONE, "verdict": Verdict.NO_EVIDENCE,
                                    "effect": None})  # fmt: skip
    return report.model_copy(update={"targets": [target.model_copy(update={"comparisons": [*judged, value]})]})


def test_claims_are_ordered_by_size_and_counted():
    report = with_verdicts(
        Verdict.REGRESSION, Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.INCONCLUSIVE, Verdict.EQUIVALENT
    )
    found = claims.claims_of(report)
    assert [cell.of.metric for cell in found.worse] == ["m1", "m0"]
    assert [cell.of.metric for cell in found.better] == ["m2"]
    assert (found.judged, found.decided, len(found.open), found.values) == (5, 4, 1, ["bandwidth"])
    text = first_screen(report)
    assert "<strong>bandwidth:</strong> the devices are emulated" in text
    assert re.findall(r'data-tone="(\w+)">(?:<span aria-hidden="true">. </span>)?([\w: ]+)', text) == [
        ("bad", "worse"), ("good", "better"), ("unsure", "open"), ("none", "not measured"),
    ]  # fmt: skip


def test_first_screen_states_that_nothing_is_worse_and_how_many_comparisons_are_open():
    text = first_screen(with_verdicts(Verdict.IMPROVEMENT, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE))
    assert "1 of 3 judged comparisons is decided, 2 are open." in text


def test_worse_setting_of_a_study_is_no_claim():
    report = study()
    cells = [cell for cell in claims.cells_of(report) if cell.of.verdict is Verdict.REGRESSION]
    assert claims.claims_of(report).worse == []
    assert all(cell.of.question is Question.SETTING for cell in cells)


def test_link_of_a_claim_selects_the_comparison_on_the_page_and_a_section_in_the_file():
    report = improvement()
    key = claims.claims_of(report).better[0].key
    assert key == "11/fsync/locks_per_flush"
    page, file = first_screen(report, page=True), first_screen(report)
    assert 'href="?cell=11%2Ffsync%2Flocks_per_flush#cell"' in page
    assert 'href="#run-11"' in file and "?cell=" not in file
    assert report.lab_url not in page and f'href="{report.lab_url}/r/{report.submission.id}.txt"' in file


def test_each_boot_of_the_deciding_comparison_is_drawn():
    report = improvement()
    cell = claims.deciding(report)
    pairs = claims.pairs(report, cell)
    assert [pair.label for pair in pairs] == [f"{cell.target.device_type} {n + 1}" for n in range(len(pairs))]
    text = first_screen(report)
    assert text.count('class="pair"') == len(pairs) > 0
    assert "lower is better" in text


def test_values_without_evidence_are_not_drawn_and_have_no_effect():
    text = first_screen(with_bandwidth([4321.25] * 3, [8765.75] * 3))
    assert "<svg" not in text and "4321" not in text


@pytest.mark.parametrize("make", [panic, *FAILED.values()])
def test_failure_of_the_submission_is_stated_once(make):
    report = make()
    text = first_screen(report)
    assert text.count('id="failure"') == 1
    assert text.count("What to do:") == 1
    assert "the failure below" in text or not report.targets


def test_checks_name_what_speaks_against_a_figure():
    found = {text: ok for ok, text in claims.checks(improvement())}
    assert found["same device, boots alternate"] and not found["emulated"]
    assert not found["3 blocks kept, 1 discarded and repeated"]


def test_unfinished_report_says_so_and_offers_no_final_format():
    report = improvement()
    submission = report.submission.model_copy(update={"state": SubmissionState.RUNNING})
    text = first_screen(report.model_copy(update={"submission": submission}))
    assert "Not finished (running)" in text
    assert "KCIDB" not in text and "Bundle" not in text


def test_hostile_texts_are_escaped():
    text = first_screen(hostile(), page=True)
    assert "<script" not in text and "<img" not in text and "\x1b" not in text
