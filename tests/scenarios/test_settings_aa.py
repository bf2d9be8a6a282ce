"""An A/A comparison of settings: the kernel's default against the same scope, written. Nothing may differ.

The default was once measured first in every boot, before anything was warm, and so differed from itself.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wqlab_contracts.enums import Verdict

from .conftest import INSTRUMENTED, Lab, scenarios

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]

DEFAULT = "scope=default,strict=default"
WRITTEN = "scope=cache,strict=0"
"""The default of the kernel that the tests build."""
REFERENCE = "scope=system,strict=0"
"""The plan's own reference, which a study must have."""
BLOCKS = 12
DIFFERS = {Verdict.IMPROVEMENT, Verdict.REGRESSION, Verdict.BELOW_THRESHOLD}


@pytest.fixture(scope="module")
def study(lab: Lab) -> int:
    settings = [word for each in (DEFAULT, WRITTEN, REFERENCE) for word in ("--setting", each)]
    of_target = ("--param", "total_ios=120", *settings, *scenarios("HIGH"))
    targets = [("--target", f"dm-crypt-affinity@{device}", *of_target) for device in (INSTRUMENTED, "tiny")]
    return lab.submit("--settings-only", "--layouts", "1", "--blocks", str(BLOCKS), *targets[0], *targets[1])


@pytest.mark.parametrize("device_type", [INSTRUMENTED, "tiny"])
def test_default_does_not_differ_from_the_same_scope_written(
    lab: Lab, study: int, device_type: str, tmp_path: Path
) -> None:
    [target] = [each for each in lab.finish(study)["targets"] if each["device_type"] == device_type]
    assert target["blocks_completed"] == BLOCKS
    samples = tmp_path / "samples.csv"
    samples.write_text(lab.wqlab("samples", str(target["run_id"])))
    compared = json.loads(lab.wqlab("compare", str(samples), "--reference", WRITTEN, "--json"))
    judged = [each for each in compared if each["setting"] == DEFAULT and each["p"] is not None]
    assert judged
    assert not [each for each in judged if each["verdict"] in DIFFERS or each["p_adjusted"] <= 0.05]
