"""Every plan from submission to report on the smallest board. For the night: together they take fifteen minutes."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import ROOT, Lab, comparisons

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(3600)]

UNBINDS = ROOT / "kernels/examples/dio-done-unbound.mbox"
DEFAULT_SLICE = "base_slice=default,granularity=default"


@pytest.fixture(scope="module")
def submissions(lab: Lab) -> dict[str, int]:
    def submit(plan: str, *more: str) -> int:
        return lab.submit("--mbox", str(UNBINDS), "--target", f"{plan}@tiny", "--blocks", "1", *more)

    return {
        "aio-migration": submit("aio-migration", "--scenario", "rand-overwrite", "--setting", DEFAULT_SLICE),
        "netperf-stream": submit("netperf-stream"),
        "cmwq-load": submit("cmwq-load", "--scenario", "wl0-S", "--scenario", "wl5-L"),
        "test-workqueue": submit("test-workqueue"),
        "fan-out": lab.submit(
            *("--settings-only", "--target", "fan-out@tiny", "--scenario", "ONE", "--scenario", "FOURFOLD"),
            *("--blocks", "1", "--param", "total_ios=32", "--param", "traced_ios=100"),
        ),
    }


def means(report: dict[str, Any], metric: str) -> list[tuple[float, float]]:
    return [(c["baseline"]["mean"], c["candidate"]["mean"]) for c in comparisons(report, metric=metric)]


def test_a_patch_that_unbinds_completions_is_seen_to(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["aio-migration"])
    assert means(report, "completions_unbound") == [(0, 100)]
    [(bound, unbound)] = means(report, "completions_local")
    assert bound == 100 > unbound


def test_a_load_loses_no_work(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["cmwq-load"])
    for metric in ("concurrency_deficit", "works_lost", "rule_violations"):
        assert means(report, metric) == [(0, 0)] * 2, metric
    assert all(mean > 0 for pair in means(report, "works_executed") for mean in pair)


def test_netperf_streams_on_both_networks(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["netperf-stream"])
    received = comparisons(report, metric="recv")
    assert {c["scenario"].split("-")[1] for c in received} == {"lo", "netns"}
    assert all(c["candidate"]["mean"] > 0 and c["effect"] is None for c in received), "values, and no more"
    table = lab.wqlab("report", str(submissions["netperf-stream"]), "--format", "mmtests")
    assert "Amean" in table and "queued_wakeup_share-udp-lo-" in table


def test_a_tree_without_the_module_is_unsupported(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["test-workqueue"])
    [target] = report["targets"]
    assert target["outcome"] == "passed"
    assert any("test_workqueue" in item["reason"] for item in target["unsupported"])


def test_a_curve_over_issuers(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["fan-out"])
    [curve] = [c for c in report["targets"][0]["curves"] if c["metric"] == "local_l3_share"]
    assert {point["x"] for line in curve["lines"] for point in line["points"]} == {1, 8}
    assert curve["crossings"] == [], "one boot proves none"
    assert all(c["evidence"] == "mechanism" for c in report["targets"][0]["curves"])
