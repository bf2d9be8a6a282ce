"""Plain text of a report."""

from __future__ import annotations

import pytest
from all_examples import EXAMPLES
from failed_examples import FAILED
from hypothesis import given, settings
from hypothesis import strategies as st
from report_examples import improvement
from report_parts import XEON, XFS, target
from report_support import hostile, one_word

from wqlab_comparison import words
from wqlab_contracts.enums import PAIR, Arm, ErrorKind, SubmissionState, Verdict
from wqlab_contracts.messages import Failure
from wqlab_report.writers.text import LINES, render_text


def is_allowed(line):
    """Return True for at most 78 columns, a quoted console line, a URL, or a single word of a command."""
    return len(line) <= 78 or line.startswith("| ") or "://" in line or (line.startswith("    ") and one_word(line))


@pytest.mark.parametrize("name", EXAMPLES)
def test_text_has_at_most_78_columns(name):
    for line in render_text(EXAMPLES[name]()).splitlines():
        assert len(line) <= 78 or line.startswith("| ")
        assert line == line.rstrip()


WORDS = st.lists(st.text("abcXYZ09-_/=.,'\"()%<", min_size=1, max_size=120), min_size=1, max_size=30)
TEXTS = WORDS.map(" ".join)


@settings(max_examples=60)
@given(st.lists(TEXTS, min_size=12, max_size=12), st.sampled_from(sorted(EXAMPLES)))
def test_text_has_at_most_60_lines_of_78_columns_for_any_input(texts, name):
    lines = render_text(with_texts(EXAMPLES[name](), texts)).splitlines()
    assert len(lines) <= LINES
    for line in lines:
        assert is_allowed(line), line


def with_texts(report, texts):
    """Return the report with other texts wherever a person, a compiler or a device chose them."""
    title, summary, headline, fact, reason, command, cmdline, subject, compiler, finding, option, scenario = texts
    failure = Failure(kind=ErrorKind.KERNEL, summary=summary, excerpt="", advice=summary)
    targets = []
    for one in report.targets:
        environment = one.environment.model_copy(
            update={
                "device": fact,
                "facts": dict.fromkeys(one.environment.facts, fact),
                "commands": {scenario: command},
                "cmdline": dict.fromkeys(one.environment.cmdline, cmdline),
            }
        )
        cells = [
            cell.model_copy(update={"reason": reason, "scenario": scenario[:200], "unit": option[:60]})
            for cell in one.comparisons
        ]
        found = [each.model_copy(update={"title": finding}) for each in one.findings]
        update = {"headline": headline, "environment": environment, "comparisons": cells, "findings": found}
        targets.append(one.model_copy(update={**update, "device_summary": fact}))
    builds = [
        build.model_copy(update={"compiler": compiler, "release": subject, "reproducer": command, "failure": failure})
        for build in report.submission.builds
    ]
    patches = [patch.model_copy(update={"subject": subject}) for patch in report.submission.apply.patches]
    apply = report.submission.apply.model_copy(update={"patches": patches})
    update = {"title": title, "builds": builds, "apply": apply, "failure": failure}
    submission = report.submission.model_copy(update=update)
    attempts = [each.model_copy(update={"failure": failure, "device": fact}) for each in report.attempts]
    return report.model_copy(
        update={"submission": submission, "targets": targets, "attempts": attempts, "config_diff": [option]}
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_verdicts_come_first(name):
    report = EXAMPLES[name]()
    top = render_text(report).splitlines()[:10]
    assert any(report.targets[0].device_type in line for line in top)


def test_forged_verdict_stays_inside_its_line():
    lines = render_text(hostile()).splitlines()
    assert not [line for line in lines if line.startswith("xfs-fsync on xeon-2s: IMPROVEMENT")]


def test_different_command_lines_are_both_shown():
    report = improvement()
    one = report.targets[0]
    lines = {
        Arm.BASELINE: "quiet wqlab.ip=192.0.2.1/24 wqlab.token=a",
        Arm.CANDIDATE: "quiet workqueue.power_efficient=1 wqlab.token=b",
    }
    environment = one.environment.model_copy(update={"cmdline": lines})
    text = render_text(report.model_copy(update={"targets": [one.model_copy(update={"environment": environment})]}))
    words = " ".join(text.split())
    assert "DIFFERS: Kernel command line of the baseline, without the lab's own wqlab.* arguments: quiet " in words
    assert words.index("workqueue.power_efficient=1") < words.index("baseline candidate change"), "above the figures"


@pytest.mark.parametrize("name", EXAMPLES | FAILED)
def test_text_has_at_most_60_lines_and_begins_with_the_verdict(name):
    report = (EXAMPLES | FAILED)[name]()
    lines = render_text(report).splitlines()
    assert len(lines) <= LINES
    verdicts = {words.VERDICT[target.verdict].upper() for target in report.targets} | {"FAILED"}
    assert any(verdict in lines[0] for verdict in verdicts)


def test_most_severe_verdict_is_first_and_others_are_counted():
    report = improvement()
    (one,) = report.targets
    many = [
        one.model_copy(update={"device_type": f"type-{number}", "verdict": verdict, "run_id": 100 + number})
        for number, verdict in enumerate([Verdict.EQUIVALENT] * 15 + [Verdict.REGRESSION] + [Verdict.INCONCLUSIVE] * 4)
    ]
    lines = render_text(report.model_copy(update={"targets": many})).splitlines()
    assert lines[0] == "xfs-fsync on type-15 (emulated): REGRESSION"
    assert len(lines) <= LINES
    counted = next(line for line in lines if line.startswith("... "))
    assert counted.endswith("of all 20 targets: REGRESSION 1, equivalent 15, inconclusive 4")
    assert lines[-1] == "More, and what was left out here: http://127.0.0.1:8080/r/7"
    # The regression is the target that has its table.
    assert "device xeon-2s-1" in next(line for line in lines if line.startswith("xfs-fsync on type-15 (emulated), "))


def test_each_of_two_targets_has_its_table():
    """The details of one would take the lines of the other's table."""
    report = improvement()
    (one,) = report.targets
    both = [one, one.model_copy(update={"device_type": "other", "run_id": 12, "verdict": Verdict.REGRESSION})]
    text = render_text(report.model_copy(update={"targets": both}))
    assert text.count("locks_per_flush (acquisitions)") == 2
    assert "SMT siblings" not in text
    assert text.index("xfs-fsync on other (emulated), ") < text.index("xfs-fsync on xeon-2s (emulated), ")
    assert text.endswith("More, and what was left out here: http://127.0.0.1:8080/r/7\n")


def test_unfinished_report_says_so_first():
    report = improvement()
    running = report.submission.model_copy(update={"state": SubmissionState.RUNNING, "finished_at": None})
    text = render_text(report.model_copy(update={"submission": running}))
    assert text.startswith("NOT FINISHED (running): this report shows the results so far.\n")
    assert "wqlab bundle" not in text


def test_target_without_figures_has_no_tables():
    lost = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="the device lost power")
    one = target(11, XFS, "xeon-2s", None, [""], list(PAIR), None, XEON, (0, 2), {}, failure=lost)
    text = render_text(improvement().model_copy(update={"targets": [one]}))
    assert "No figures." in text
    assert "n/a" not in text
    reason = "* locks_per_flush, locks_per_fsync: FAILED: infrastructure: the device lost power"
    assert reason in " ".join(text.split())


def test_long_reasons_are_shortened_before_a_table_loses_its_rows() -> None:
    report = EXAMPLES["instrumented"]()
    (target,) = report.targets
    long = "because of a spread that differs from seed to seed " * 6
    comparisons = [each.model_copy(update={"reason": f"{each.metric} {long}"}) for each in target.comparisons]
    text = render_text(report.model_copy(update={"targets": [target.model_copy(update={"comparisons": comparisons})]}))
    assert len(text.splitlines()) <= LINES
    for metric in ("kernel_instructions_per_op", "instructions_per_op", "transfers_across_l3_per_op"):
        assert f"\n{metric} (" in text, "the row of the table"
    assert "more reasons" in text
