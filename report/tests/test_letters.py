"""Letters equal the examples in docs/, have at most 72 columns and 60 lines, and omit what readers of a list reject."""

from __future__ import annotations

from pathlib import Path

import pytest
from all_examples import EXAMPLES
from failed_examples import FAILED
from hypothesis import given, settings
from hypothesis import strategies as st
from letter_examples import LETTERS, demo_count, measured, model
from report_support import hostile, one_word
from test_text import TEXTS, with_texts

from wqlab_contracts.api.report import EnvironmentDifference, Report
from wqlab_contracts.enums import Role, Verdict
from wqlab_contracts.mail import unreachable
from wqlab_contracts.messages.apply import EarlierCommit, NewerTree, PriorArt
from wqlab_report.letters.audience import Audience
from wqlab_report.letters.facts import base
from wqlab_report.mail import SIGNATURE, body

DOCS = Path(__file__).parents[2] / "docs"
AUDIENCES = [Audience.AUTHOR, Audience.EVERYONE, Audience.OWNER]


def is_allowed(line: str) -> bool:
    """Return True for at most 72 columns, a quoted console line, a URL, or one word of a command."""
    return len(line) <= 72 or line.startswith("| ") or "://" in line or (line.startswith("    ") and one_word(line))


@pytest.mark.parametrize("name", LETTERS)
def test_letter_in_the_documentation(name: str) -> None:
    """After an intended change run `make golden` and read the diff of the letters."""
    assert LETTERS[name]() == (DOCS / name).read_text()


@pytest.mark.parametrize("audience", AUDIENCES)
@pytest.mark.parametrize("name", EXAMPLES | FAILED)
def test_letter_has_72_columns_and_60_lines(name: str, audience: Audience) -> None:
    text = body((EXAMPLES | FAILED)[name](), audience)
    lines = text.splitlines()
    assert len(lines) <= 60
    assert [line for line in lines if not is_allowed(line)] == []
    assert tuple(lines[-len(SIGNATURE) :]) == SIGNATURE
    for left_out in ("checkpatch", "sign-flip", "waited", "n is the number of boots"):
        assert left_out not in text


@settings(max_examples=60)
@given(st.lists(TEXTS, min_size=12, max_size=12), st.sampled_from(sorted(EXAMPLES)), st.sampled_from(AUDIENCES))
def test_letter_is_within_its_limits_for_any_input(texts: list[str], name: str, audience: Audience) -> None:
    lines = body(with_texts(EXAMPLES[name](), texts), audience).splitlines()
    assert len(lines) <= 60
    assert [line for line in lines if not is_allowed(line)] == []


@pytest.mark.parametrize("report", [demo_count(), model(), measured()])
def test_letter_names_no_machine_of_the_lab(report: Report) -> None:
    assert unreachable(body(report, Audience.AUTHOR)) == ""


@pytest.mark.parametrize(
    ("report", "first"),
    [
        (demo_count(), "6 to 4 lock acquisitions per flush, on an emulated 32-CPU guest (xeon-2s); a code path count,"),
        (model(), "modelled 7.05 % more MiB/s (bandwidth), 95 % interval [+6.60, +7.50], on a modelled 24-CPU machine"),
        (measured(), "REGRESSION: LOW scope=cache,strict=1: bandwidth -12.0 %, 95 % interval [-12.1, -11.9], on ryzen"),
    ],
)
def test_first_sentence_names_finding_device_and_evidence(report: Report, first: str) -> None:
    assert " ".join(body(report, Audience.AUTHOR).split()).startswith(first)


def test_a_regression_of_a_secondary_metric_leads_if_it_made_the_verdict() -> None:
    report = EXAMPLES["instrumented"]()
    (one,) = report.targets
    worse = [
        each.model_copy(update={"verdict": Verdict.REGRESSION}) if each.role is Role.SECONDARY else each
        for each in one.comparisons
    ]
    target = one.model_copy(update={"comparisons": worse, "verdict": Verdict.REGRESSION})
    text = body(report.model_copy(update={"targets": [target]}), Audience.AUTHOR)
    first = next(each for each in worse if each.verdict is Verdict.REGRESSION)
    assert text.startswith(f"{first.metric} ")


def test_forged_text_begins_no_line_of_its_own() -> None:
    lines = body(hostile(), Audience.OWNER).splitlines()
    assert not [line for line in lines if line.startswith("xfs-fsync on xeon-2s: IMPROVEMENT")]
    assert all(line.isprintable() for line in lines)


def test_what_differs_besides_the_series_is_told() -> None:
    report = EXAMPLES["improvement"]()
    one = report.targets[0]
    assert one.environment is not None
    differs = [EnvironmentDifference(name="governor", baseline="powersave", candidate="performance")]
    environment = one.environment.model_copy(update={"differences": differs})
    changed = one.model_copy(update={"environment": environment})
    text = body(report.model_copy(update={"targets": [changed]}), Audience.AUTHOR)
    assert "DIFFERS:   governor: baseline powersave, candidate performance\n" in text


def test_what_the_tree_has_already_is_told_before_the_figures() -> None:
    report = demo_count()
    earlier = {"commit": "c" * 40, "date": "2024-11-18", "subject": "workqueue: Reduce expensive locks"}
    found = [
        EarlierCommit(patch=1, same="patch-id", in_base=False, **earlier),
        EarlierCommit(patch=1, same="subject", in_base=True, **earlier),
    ]
    apply = report.submission.apply.model_copy(update={"prior_art": PriorArt(found=found)})
    submission = report.submission.model_copy(update={"apply": apply, "tree": "torvalds"})
    text = " ".join(body(report.model_copy(update={"submission": submission}), Audience.AUTHOR).split())
    change = (
        'Prior art: * patch 1: torvalds has this change after the base: cccccccccccc of 2024-11-18 ("workqueue: Reduce'
    )
    assert change in text
    assert "patch 1: torvalds has a commit of this subject in the base: cccccccccccc of 2024-11-18 xfs-fsync" in text


@pytest.mark.parametrize(
    ("newer", "said"),
    [
        ({"has_series": True}, "Prior art: * linux-7.3 (7.3.4) has every change of the series xfs-fsync"),
        (
            {"has_series": False, "differs": ["f", "g"]},
            "Prior art: * linux-7.3 (7.3.4) has changed what the series changes: f, g xfs-fsync",
        ),
        ({"has_series": False}, ""),
    ],
)
def test_what_a_newer_tree_has_is_told(newer: dict[str, object], said: str) -> None:
    report = demo_count()
    tree = NewerTree.model_validate({"tree": "linux-7.3", "release": "7.3.4", **newer})
    apply = report.submission.apply.model_copy(update={"prior_art": PriorArt(skipped="no history", newer=[tree])})
    submission = report.submission.model_copy(update={"apply": apply})
    text = " ".join(body(report.model_copy(update={"submission": submission}), Audience.AUTHOR).split())
    assert said in text
    assert ("Prior art" in text) is bool(said)


def test_prior_art_is_absent_if_it_was_not_searched() -> None:
    report = demo_count()
    apply = report.submission.apply.model_copy(update={"prior_art": PriorArt(skipped="no history")})
    submission = report.submission.model_copy(update={"apply": apply})
    assert "Prior art" not in body(report.model_copy(update={"submission": submission}), Audience.AUTHOR)


@pytest.mark.parametrize(
    ("origin", "release", "expected"),
    [
        ("linux-source-7.3", "7.3.4", "v7.3.4 of linux-stable with the patches of Debian's linux-source-7.3"),
        ("https://git.example.org/linux.git", "7.3.0", "be8da40e6f18 of https://git.example.org/linux.git (7.3.0)"),
        ("linux-source-7.3", "7.3.0-rc1+x", "be8da40e6f18 of linux-source-7.3 (7.3.0-rc1+x)"),
    ],
)
def test_base_is_a_tag_or_commit_that_anyone_can_fetch(origin: str, release: str, expected: str) -> None:
    report = demo_count()
    builds = [each.model_copy(update={"origin": origin}) for each in report.submission.builds]
    apply = report.submission.apply.model_copy(update={"release": release})
    submission = report.submission.model_copy(update={"builds": builds, "apply": apply})
    assert base(report.model_copy(update={"submission": submission})) == expected
