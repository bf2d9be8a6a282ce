"""Two modes of a device and the cause of a missing figure, in every format."""

from __future__ import annotations

import json

import pytest
from report_examples import study
from report_parts import CRYPT, RYZEN, ryzen, samples, target
from report_support import RENDERERS, junit

from wqlab_contracts.api.report import Report, UnsupportedView
from wqlab_contracts.enums import Arm, NotMeasuredCause

FAST, SLOW = [83.1, 84.2, 83.7, 84.0, 83.4], [61.0, 60.4, 61.3]
READERS = ("text", "markdown", "html", "json")


def bimodal() -> Report:
    """Return a study with a setting whose boots fall into two modes and one whose workload gave no samples."""
    settings = ["scope=system,strict=0", "scope=cache,strict=0", "scope=cache,strict=1"]
    cells = {
        ("HIGH", settings[0], "l3_share", Arm.BASELINE): [24.1, 25.0, 24.4, 24.8, 24.3, 24.9, 24.6, 24.2],
        ("HIGH", settings[1], "l3_share", Arm.BASELINE): [*FAST, *SLOW],
    }
    lacks = UnsupportedView(
        scenario="HIGH",
        setting=settings[2],
        metric="l3_share",
        arm=Arm.BASELINE,
        cause=NotMeasuredCause.NO_SAMPLES,
        reason="fio moved no data",
    )
    one = target(
        12,
        CRYPT,
        "ryzen-3900x",
        samples(CRYPT, "ryzen-3900x", cells),
        settings,
        [Arm.BASELINE],
        ryzen(),
        RYZEN,
        (8, 8),
        {"HIGH": "fio"},
        unsupported=[lacks],
    )
    return study().model_copy(update={"targets": [one]})


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_modes_are_described_with_levels_and_boots(form: str) -> None:
    text = " ".join(RENDERERS[form](bimodal()).split())
    sentence = "scope=cache,strict=0 boots fall into two modes, 3 near 60.90 % and 5 near 83.68 %"
    assert sentence in text.replace("\\", "")
    assert "two modes" not in RENDERERS[form](study())


def test_json_has_levels_and_cause() -> None:
    (found,) = json.loads(RENDERERS["json"](bimodal()))["targets"]
    cells = {(cell["scenario"], cell["setting"], cell["metric"]): cell for cell in found["comparisons"]}
    measured = cells["HIGH", "scope=cache,strict=0", "l3_share"]
    assert [mode["n"] for mode in measured["candidate"]["modes"]] == [3, 5]
    assert measured["baseline"]["modes"] is None
    assert measured["not_measured"] is None
    assert cells["HIGH", "scope=cache,strict=1", "l3_share"]["not_measured"] == "no_samples"
    assert cells["LOW", "scope=cache,strict=0", "l3_share"]["not_measured"] == "not_run"
    assert [entry["cause"] for entry in found["unsupported"]] == ["no_samples"]


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_cause_is_shown_in_place_of_the_change(form: str) -> None:
    text = " ".join(RENDERERS[form](bimodal()).split())
    assert "no samples: fio moved no data" in text
    assert text.count("no samples") > 1, "in the table and in the reasons"


def test_junit_case_has_the_cause_as_its_type() -> None:
    found = junit(bimodal())
    assert found.case("cache,strict=1 l3_share").find("skipped").get("type") == "no_samples"
