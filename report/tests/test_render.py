"""All report formats: golden files, hostile input, figures without evidence."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from all_examples import EXAMPLES, GOLDEN_FILES
from failed_examples import FAILED
from hypothesis import given, settings
from hypothesis import strategies as st
from report_examples import improvement, panic, study
from report_parts import SSH_KEY
from report_support import hostile, junit, with_bandwidth

from wqlab_contracts.api.report import EnvironmentDifference, Report
from wqlab_contracts.enums import ErrorKind, Evidence
from wqlab_contracts.messages import Failure
from wqlab_report.content.system_text import MAX_OPTIONS
from wqlab_report.formats import render_json
from wqlab_report.writers.html import render_html
from wqlab_report.writers.junit import render_junit
from wqlab_report.writers.markdown import render_markdown
from wqlab_report.writers.mmtests import render_mmtests
from wqlab_report.writers.text import render_text

FAILURES = {**FAILED, "panic": panic}
GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", GOLDEN_FILES)
def test_document_equals_the_golden_file(name):
    """After an intended change run `make golden` and read the diff of the golden files."""
    assert GOLDEN_FILES[name]() == (GOLDEN / name).read_text()


def test_every_golden_file_is_compared():
    assert {path.name for path in GOLDEN.iterdir()} == GOLDEN_FILES.keys()


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.parametrize("render", [render_text, render_markdown, render_html, render_junit])
def test_failure_is_stated_once(name, render):
    report = FAILURES[name]()
    failure = report.submission.failure
    words = " ".join(html.unescape(render(report)).replace("\\", "").split())
    core = failure.summary.removeprefix("oops: ").removeprefix("panic: ").removeprefix("hang: ")
    excerpt = [" ".join(line.split()) for line in failure.excerpt.splitlines()]
    assert words.count(core) == 1 + sum(core in line for line in excerpt)
    assert [line for line in excerpt if line not in core and core not in line and words.count(line) != 1] == []
    assert words.count("What to do:") == 1
    assert "Method" not in words
    assert "recompute" not in words


def test_json_is_the_serialized_report():
    for make in EXAMPLES.values():
        report = make()
        assert Report.model_validate_json(render_json(report)) == report


LOW, HIGH = 4321.25, 8765.75


@settings(max_examples=25)
@given(st.lists(st.floats(-400, 400), min_size=1, max_size=8), st.lists(st.floats(-400, 400), min_size=1, max_size=8))
@pytest.mark.parametrize("render", [render_text, render_markdown, render_html, render_junit, render_mmtests])
def test_emulated_throughput_is_a_value_only(render, spread_a, spread_b):
    """Reports of a faster and a slower candidate, noisy or not, differ only in the two means: no p value, interval,
    sign, arrow or colour depends on them."""

    def centred(mean, spread):
        size = min(len(spread_a), len(spread_b))
        values = spread[:size]
        return [mean + value - sum(values) / size for value in values]

    faster = with_bandwidth(centred(LOW, spread_a), centred(HIGH, spread_b))
    slower = with_bandwidth(centred(HIGH, spread_b), centred(LOW, spread_a))
    quiet = with_bandwidth([LOW] * min(len(spread_a), len(spread_b)), [HIGH] * min(len(spread_a), len(spread_b)))
    swapped = (
        render(slower).translate({}).replace("4321.25", "\0").replace("8765.75", "4321.25").replace("\0", "8765.75")
    )
    assert render(faster) == swapped
    assert render(faster) == render(quiet)


def test_models_contain_no_verdict_without_evidence():
    for make in EXAMPLES.values():
        for one in json.loads(render_json(make()))["targets"]:
            for cell in one["comparisons"]:
                if cell["evidence"] == Evidence.NONE:
                    assert {cell["effect"], cell["p"], cell["p_adjusted"], cell["delta"]} == {None}
                    assert cell["ci95"] is None
                    for arm in ("baseline", "candidate"):
                        assert cell[arm] is None or cell[arm]["stddev"] is None


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html, render_junit, render_mmtests])
def test_control_characters_are_removed(render):
    text = render(hostile())
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def test_series_that_does_not_apply_is_an_error_in_all_formats():
    failure = Failure(kind=ErrorKind.USER, summary="hunk 2 of kernel/workqueue.c does not apply", advice="rebase it")
    bare = improvement()
    submission = bare.submission.model_copy(update={"failure": failure, "builds": []})
    report = bare.model_copy(update={"submission": submission, "targets": [], "attempts": []})
    assert junit(report).case("submission").find("error").get("type") == "user"
    for render in (render_text, render_markdown, render_html):
        assert "hunk 2" in render(report)


@pytest.mark.parametrize("render", [render_markdown, render_html])
def test_shared_command_line_is_shown_once(render):
    document = render(improvement())
    assert document.count("config kernel modules") == 1
    assert document.count("tsc=reliable no_timer_check") == 1
    assert document.count("GNU ld 2.40") == 1
    assert "apply the series" in html.unescape(document)
    assert "reused" not in document
    assert "built in 9 min" in document


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html])
def test_environment_differences_are_above_the_figures(render):
    differences = [
        EnvironmentDifference(name="default affinity scope", baseline="cache", candidate="numa"),
        *(EnvironmentDifference(name=f"CONFIG_X{n}", baseline="n", candidate="y") for n in range(MAX_OPTIONS + 3)),
    ]
    before = improvement()
    targets = [
        target.model_copy(update={"environment": target.environment.model_copy(update={"differences": differences})})
        for target in before.targets[:1]
    ]
    text = render(before.model_copy(update={"targets": targets})).replace("\\", "").replace("<wbr>", "")
    place = text.index("default affinity scope")
    line = text[place : text.index("CONFIG_X0")]
    assert line.index("cache") < line.index("numa")
    assert place < text.index("locks_per_flush", text.index("blocks completed")), "above the figures"
    if render is render_text:  # in three lines
        assert f"{MAX_OPTIONS + 3} configuration options: CONFIG_X0 n -> y" in text
    else:
        assert "CONFIG_X11" in text
        assert "CONFIG_X12" not in text
        assert "3 more configuration options" in " ".join(text.split())
    assert "wq scope" not in text, "the fact is not repeated with one value"


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html])
def test_checkpatch_that_did_not_run_is_not_called_clean(render):
    before = improvement()
    skipped = before.submission.apply.model_copy(update={"checkpatch": [], "checkpatch_skipped": "no patch applied"})
    submission = before.submission.model_copy(update={"apply": skipped})
    text = render(before.model_copy(update={"submission": submission}))
    assert "not run, because no patch applied" in text
    assert "clean" not in text


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html])
def test_lab_arguments_are_not_shown(render):
    document = render(improvement())
    assert "-token" not in document
    assert SSH_KEY not in document
    assert render is render_text or "without the lab" in document


def test_facts_of_the_plan_are_shown_only_in_html_details():
    assert "lock_entries" not in render_text(improvement())
    assert "lock_entries" not in render_markdown(improvement())
    before, details = render_html(improvement()).split("<details>")
    assert "lock_entries" not in before
    assert "lock_entries" in details.split("</details>")[0]


def test_text_names_its_submission_and_how_to_derive_the_verdicts():
    document = render_text(study())
    for part in ("dm-crypt under affinity scopes", "submission 8", "2026-03-14 15:09", "http://127.0.0.1:8080/r/8"):
        assert part in document
    assert "wqlab bundle 8 -o 8.zip\n" in document
    assert "wqlab replay 8.zip " in document


@pytest.mark.parametrize("render", [render_markdown, render_html])
def test_report_names_its_submission_and_recompute_commands(render):
    document = html.unescape(render(study()))
    head = document[: document.index("dm-crypt-affinity on ryzen")].split("</style>")[-1]
    for part in (
        "dm-crypt under affinity scopes",
        "submission 8",
        "2026-03-14 15:09",
        "http",
        "/r/8",
    ):
        assert part.replace("-", "") in head.replace("\\", "").replace("-", "")
    assert "wqlab samples 12 -o run12.csv\n" in document
    assert "wqlab compare run12.csv --reference scope=system,strict=0" in document
