"""The noise floor and false positive rate of canaries, as REST, quotes and reports show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from wqlab_comparison import LEAST_BLOCKS
from wqlab_contracts.enums import PAIR, CanaryKind, DeviceHealth, JobState, Outcome, RunPurpose
from wqlab_server.models import Boot, BootValue, CanaryRun, Device, Run
from wqlab_server.storage.db import clock
from wqlab_server.submissions import plan_runs

from ..support.lab import LabUnderTest

pytestmark = pytest.mark.integration


def add_canary(lab: LabUnderTest, baseline: Sequence[float], candidate: Sequence[float], **more: Any) -> int:
    """Add a finished canary of the plan `affinity` on single-1 with these values of its primary metric."""
    data = lab.data
    device_type, plan = data.device_type("single"), data.plans["affinity"]
    profile = plan.profile(emulated=True).model_copy(
        update={"settings": [plan.reference_setting], "blocks": len(baseline)}
    )
    with lab.transaction() as session:
        now = clock(session)
        run = Run(
            **{
                "submission_id": None, "purpose": RunPurpose.CANARY, "owner": "lab",
                "canary": CanaryRun(kind=CanaryKind.SAME_KERNEL),
                "priority": 0, "seed": 1, "blocks": [list(PAIR)] * len(baseline), "profile": profile,
                "wanted_device": "single-1", "state": JobState.FINISHED, "outcome": Outcome.PASSED,
                "compared_at": now, **plan_runs.snapshot(data, device_type, plan), **more,
            }
        )  # fmt: skip
        session.add(run)
        session.flush()
        for arm, values in zip(PAIR, (baseline, candidate), strict=True):
            for block, value in enumerate(values):
                boot = Boot(
                    run_id=run.id, block=block, position=0, arm=arm, attempt=0, device_name="single-1", fence=1,
                    valid=True, started_at=now,
                )  # fmt: skip
                session.add(boot)
                session.flush()
                session.add(
                    BootValue(
                        run_id=run.id,
                        boot_id=boot.id,
                        scenario="high",
                        setting=plan.reference_setting,
                        metric="share_l3",
                        value=value,
                    )
                )
        return run.id


def add_noisy(lab: LabUnderTest, number: int) -> None:
    rng = np.random.default_rng(5)
    for _ in range(number):
        values = rng.normal(50, 1, (2, LEAST_BLOCKS))
        add_canary(lab, values[0].tolist(), values[1].tolist())


def records(lab: LabUnderTest, query: str = "") -> list[dict[str, Any]]:
    answer = lab.client.get(f"/api/v1/canaries{query}", headers={"Authorization": f"Bearer {lab.token}"})
    found: list[dict[str, Any]] = answer.raise_for_status().json()
    return found


def test_record_has_rate_floor_and_effects(lab: LabUnderTest) -> None:
    add_noisy(lab, 10)
    add_canary(lab, [50.0] * 6, [53.0, 54, 55, 53, 54, 56])  # all of one sign: p = .031
    [record] = records(lab)
    assert (record["device"], record["device_type"], record["plan"], record["kind"]) == (
        "single-1", "single", "affinity", "same_kernel"
    )  # fmt: skip
    assert record["canaries"] == 11
    rate = record["false_positives"]
    assert rate["comparisons"] == 11
    assert rate["called_different"] >= 1
    assert rate["rate_low"] < rate["rate"] == rate["called_different"] / 11 < rate["rate_high"]
    assert record["line"].startswith(f"On single-1, 11 A/A comparisons of affinity: {rate['called_different']} called")
    [metric] = record["metrics"]
    assert (metric["metric"], metric["scenario"], metric["effect_unit"]) == ("share_l3", "high", "points")
    assert 0.7 < metric["floor"] < 1.5, "the boots vary by 1 point"
    assert [each["blocks"] for each in metric["effects"]] == [6, 8, 10, 16]
    assert metric["blocks"] == 66


def test_filters(lab: LabUnderTest) -> None:
    add_noisy(lab, 1)
    assert len(records(lab, "?device=single-1&plan=affinity")) == 1
    assert records(lab, "?device=device-1") == records(lab, "?plan=locks") == []


def test_record_starts_again_if_the_plan_changes(lab: LabUnderTest) -> None:
    add_noisy(lab, 3)
    path = lab.settings.data_dir / "testplans/affinity/plan.yaml"
    path.write_text(path.read_text().replace("many jobs", "more jobs"))
    lab.app.state.data._checked_at = float("-inf")
    add_noisy(lab, 1)
    assert [record["canaries"] for record in records(lab)] == [1]


def test_unread_and_failed_canaries_do_not_count(lab: LabUnderTest) -> None:
    add_canary(lab, [50.0] * 6, [51.0] * 6, compared_at=None, state=JobState.QUEUED, outcome=None)
    assert records(lab) == []


def test_quote_and_report_have_the_record(lab: LabUnderTest) -> None:
    add_noisy(lab, 4)
    lab.mark_all_good()
    headers = {"Authorization": f"Bearer {lab.token}"}
    request = {
        "series": {"git": {"url": "https://git.example.org/dev/linux.git", "ref": "x"}},
        "tree": "lab-tree",
        "targets": [{"plan": "affinity", "device_type": "single"}],
    }
    [target] = lab.client.post("/api/v1/quotes", json=request, headers=headers).raise_for_status().json()["targets"]
    assert target["canaries"] == records(lab)
    submission = lab.submit("affinity@single", "affinity@device")
    lab.finished(submission)
    single, other = lab.report(submission).targets
    assert single.canaries[0].canaries == 4
    assert other.canaries == [], "another device has a record of its own"
    page = lab.client.get(f"/api/v1/submissions/{submission}/report?format=html", headers=headers).text
    assert "On single-1, 4 A/A comparisons of affinity:" in " ".join(page.split())
    with lab.transaction() as session:
        assert session.get_one(Device, "single-1").health is DeviceHealth.GOOD


def test_spread_of_a_submission_is_that_of_the_canaries(lab: LabUnderTest) -> None:
    rng = np.random.default_rng(2)
    noise = 50 + 3 * rng.normal(size=(2, 40))
    add_canary(lab, noise[0].tolist(), noise[1].tolist())
    [run] = lab.runs(lab.submit("affinity@single"))
    spread = float(np.std(noise[1] - noise[0]))
    assert run.profile.spreads["share_l3"] == pytest.approx(spread, rel=0.25)
    [study] = lab.runs(lab.submit("affinity@single", series=None))
    assert study.profile.spreads == {}, "settings share their boots, so this is not their noise"
