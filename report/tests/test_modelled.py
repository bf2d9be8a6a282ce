"""Reports of modelled devices: the class stands with every figure, and no list gets a model's verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from xml.etree import ElementTree as xml

import pytest
from modelled_examples import modelled, modelled_target, withheld

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import Evidence, Role, Verdict
from wqlab_report import mail
from wqlab_report.content import model_text
from wqlab_report.formats import render_json
from wqlab_report.letters.audience import Audience
from wqlab_report.writers.html import render_html
from wqlab_report.writers.junit import render_junit
from wqlab_report.writers.kcidb import Sender, render_kcidb
from wqlab_report.writers.markdown import render_markdown
from wqlab_report.writers.mmtests import render_mmtests
from wqlab_report.writers.text import render_text

COSTS = "modelled on ryzen-3900x costs (sha256:1a2b3c4d5e6f)"


def flat(text: str) -> str:
    """Return a text without line breaks and the escapes of Markdown."""
    return " ".join(text.replace("\\", "").split())


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html])
def test_costs_caveat_and_class_are_beside_the_figures(render: Callable[[Report], str]) -> None:
    text = flat(render(modelled()))
    assert COSTS in text
    assert "what its stated costs leave out, it cannot tell" in text
    assert "/docs/model/" in text
    assert "modelled bandwidth" in text
    assert "modelled on a ryzen-3900x-like machine: 7.05 % more MiB/s (bandwidth)" in text
    for word in ("faster", "slower"):
        assert word not in text


def test_tables_of_mmtests_name_modelled_figures() -> None:
    assert "modelled-bandwidth-fsync" in render_mmtests(modelled())


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html])
def test_a_withheld_verdict_shows_the_figure_and_the_reason(render: Callable[[Report], str]) -> None:
    text = flat(render(withheld()))
    assert "verdict withheld: not validated: 3 of 10 cells right; HIGH falls" in text
    assert "+7.05 %" in text and "[+6.60, +7.50]" in text


def test_json_has_class_and_reason() -> None:
    target = json.loads(render_json(withheld()))["targets"][0]
    (cell,) = (each for each in target["comparisons"] if each["role"] == Role.PRIMARY)
    assert (cell["evidence"], cell["verdict"]) == ("modelled", "withheld")
    assert cell["not_validated"].startswith("not validated: ")
    assert target["environment"]["facts"]["cost profile"].startswith("ryzen-3900x sha256:1a2b3c4d5e6f")


def test_junit_fails_no_build_for_a_models_regression() -> None:
    report = modelled()
    (target,) = report.targets
    worse = [
        cell.model_copy(update={"verdict": Verdict.REGRESSION}) if cell.evidence is Evidence.MODELLED else cell
        for cell in target.comparisons
    ]
    found = xml.fromstring(
        render_junit(report.model_copy(update={"targets": [target.model_copy(update={"comparisons": worse})]}))
    )
    assert found.findall(".//failure") == []
    assert {each.get("type") for each in found.findall(".//skipped")} == {"modelled"}


def test_kcidb_gets_the_counts_and_no_modelled_figure() -> None:
    tests = json.loads(render_kcidb(modelled(), Sender("wqlab_test")))["tests"]
    figures = [test for test in tests if test["path"] != "boot"]
    assert {test["misc"]["evidence"] for test in figures} == {"instrumented"}
    assert {test["environment"]["misc"]["kind"] for test in tests} == {"modelled"}


# --- mails ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("audience", [Audience.AUTHOR, Audience.OWNER])
def test_author_and_owner_get_what_is_modelled(audience: Audience) -> None:
    text = flat(mail.body(modelled(), audience))
    assert COSTS.lower() in text.lower()
    assert "do not quote a modelled figure as measured" in text


def test_a_withheld_figure_is_not_mailed_to_the_author() -> None:
    assert mail.says(withheld()) == {}


def test_a_kernel_that_fails_in_a_model_fails() -> None:
    failed = modelled_target().model_copy(update={"verdict": Verdict.FAILED, "headline": "the candidate showed panic"})
    report = modelled().model_copy(update={"targets": [failed]})
    assert mail.says(report) == {"xfs-fsync on ryzen-3900x-model (modelled)": "failed"}
    (kept,) = model_text.without_models(report).targets
    assert {cell.evidence for cell in kept.comparisons} == {Evidence.INSTRUMENTED}
    assert model_text.left_out(report) == ""
