"""Two labs in two network namespaces, one disconnected for a minute during a run: both finish correctly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from wqlab_contracts.api.report import Report
from wqlab_contracts.api.runs import RunView
from wqlab_contracts.enums import ErrorKind, Outcome, TraceMode

from .namespaces import enter

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]

Seen = dict[str, Any]
LABS = ("berlin", "boston")
BLOCKS = 3
SETTINGS = ("scope=system,strict=0", "scope=cache,strict=1")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    output = tmp_path_factory.mktemp("two-labs") / "seen.json"
    script = str(Path(__file__).with_name("two_labs.py"))
    subprocess.run(enter(sys.executable, script, str(output)), env={**os.environ}, check=True)
    found: Seen = json.loads(output.read_text())
    return found


def run_of(seen: Seen, lab: str) -> RunView:
    return RunView.model_validate(seen[lab]["run"])


def report_of(seen: Seen, lab: str) -> Report:
    return Report.model_validate(seen[lab]["report"])


def test_network_cut_outlasts_the_lease(seen: Seen) -> None:
    """The lease expired while the lab was disconnected; otherwise the scenario tests nothing."""
    assert seen["states"][0] == "running"
    assert "queued" in seen["states"]
    assert run_of(seen, "berlin").attempt == 2
    assert run_of(seen, "boston").attempt == 1


@pytest.mark.parametrize("lab", LABS)
def test_both_submissions_pass(seen: Seen, lab: str) -> None:
    report, run = report_of(seen, lab), run_of(seen, lab)
    view = report.submission
    assert (view.outcome, view.exit_code, view.failure) == (Outcome.PASSED, 0, None)
    assert (run.outcome, run.device, run.blocks_completed) == (Outcome.PASSED, f"{lab}-1", BLOCKS)
    whole = [boot for boot in run.boots if boot.valid]
    assert sorted(boot.block for boot in whole) == list(range(BLOCKS)), "every block once"
    assert len({boot.kernel_boot_id for boot in run.boots if boot.kernel_boot_id}) == len(
        [boot for boot in run.boots if boot.kernel_boot_id]
    )
    for each in report.targets[0].comparisons:
        assert each.baseline and each.candidate
        assert each.baseline.n == each.candidate.n == BLOCKS


@pytest.mark.parametrize("lab", LABS)
def test_no_sample_is_lost_or_duplicated(seen: Seen, lab: str) -> None:
    """Each boot has every metric of the plan once for each repetition of the metric's kind."""
    target = report_of(seen, lab).targets[0]
    plan, counts = target.plan, target.plan.emulated.repetitions
    assert (target.unsupported, counts.warmup) == ([], 0)
    numbers = {
        TraceMode.UNTRACED: range(counts.untraced),
        TraceMode.TRACED: range(counts.untraced, counts.untraced + counts.traced),
    }
    expected = {
        (boot.id, "HIGH", setting, repetition, metric.name)
        for boot in run_of(seen, lab).boots
        if boot.valid
        for setting in SETTINGS
        for metric in plan.metrics
        for repetition in numbers[metric.taken_from]
    }
    found = Counter(
        (row["boot_id"], row["scenario"], row["setting"], row["repetition"], row["metric"])
        for row in seen[lab]["samples"]
    )
    assert set(found.values()) == {1}
    assert set(found) == expected


def test_interrupted_boot_is_an_infrastructure_failure(seen: Seen) -> None:
    lost = [boot for boot in run_of(seen, "berlin").boots if not boot.valid]
    assert [boot.id for boot in lost] == [seen["boot"]]
    assert lost[0].failure is not None
    assert lost[0].failure.kind is ErrorKind.INFRASTRUCTURE
    attempts = report_of(seen, "berlin").attempts
    assert {attempt.failure.kind for attempt in attempts} == {ErrorKind.INFRASTRUCTURE}, (
        "the report lists the failure with its kind"
    )
    assert report_of(seen, "boston").attempts == []
    assert [boot for boot in run_of(seen, "boston").boots if not boot.valid] == []
    for lab in LABS:
        assert report_of(seen, lab).targets[0].findings == []


def test_labs_have_their_devices_and_permissions(seen: Seen) -> None:
    labs = {lab["name"]: lab for lab in seen["labs"]}
    assert {labs[name]["devices"] for name in LABS} == {1}
    assert all(labs[name]["joined_at"] and labs[name]["capacity"] == 1 for name in LABS)
    assert "NoPermission" not in "".join(seen[lab]["log"] for lab in LABS)
