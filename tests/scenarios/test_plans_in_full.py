"""Series that change what a plan counts, and all scenarios of an emulated device.

In the nightly suite, because together they take ten minutes; test_plans.py has the short runs.
"""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import ROOT, Lab, comparisons

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]

SAME_BYTES = ROOT / "tests/series/changes-a-comment.mbox"
SCOPES = ROOT / "tests/series/default-scope-system.mbox"
UNBINDS = ROOT / "kernels/examples/dio-done-unbound.mbox"
DEFAULT_SLICE = "base_slice=default,granularity=default"


@pytest.fixture(scope="module")
def submissions(lab: Lab) -> dict[str, int]:
    def submit(plan: str, *more: str) -> int:
        return lab.submit("--mbox", str(UNBINDS), "--target", f"{plan}@tiny", "--blocks", "1", *more)

    return {
        "aio-migration": submit("aio-migration", "--scenario", "rand-overwrite", "--setting", DEFAULT_SLICE),
        "dm-crypt-affinity": lab.submit(
            *(
                "--mbox",
                str(SCOPES),
                "--target",
                "dm-crypt-affinity@two-sockets-smt-last",
                "--blocks",
                "1",
                "--scenario",
                "HIGH",
            ),
            *("--setting", "scope=default,strict=default", "--setting", "scope=cache,strict=0"),
        ),
        "identical": lab.submit("--mbox", str(SAME_BYTES), "--target", "xfs-fsync@tiny"),
        "netperf-stream": submit("netperf-stream"),
        "cmwq-load": submit("cmwq-load", "--scenario", "wl0-S", "--scenario", "wl5-L"),
        "max-active": submit("max-active"),
        "work-latency": submit("work-latency"),
        "work-latency-scopes": lab.submit(
            *("--mbox", str(SCOPES), "--target", "work-latency-scopes@two-sockets-smt-last", "--blocks", "1"),
            *("--setting", "scope=default,strict=default", "--setting", "scope=cache,strict=1"),
        ),
    }


def means(report: dict[str, Any], metric: str) -> list[tuple[float, float]]:
    return [(c["baseline"]["mean"], c["candidate"]["mean"]) for c in comparisons(report, metric=metric)]


def test_unbound_completions_change_the_migrations(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["aio-migration"])
    assert means(report, "completions_unbound") == [(0, 100)]
    [(bound, unbound)] = means(report, "completions_local")
    assert bound == 100 > unbound


def test_series_that_changes_the_default_scope_is_measured(lab: Lab, submissions: dict[str, int]) -> None:
    """Both defaults are shown; only the setting that writes no scope shows the effect."""
    report = lab.finish(submissions["dm-crypt-affinity"])
    (target,) = report["targets"]
    differences = {each["name"]: (each["baseline"], each["candidate"]) for each in target["environment"]["differences"]}
    assert differences["default affinity scope"] == ("cache", "system")
    assert differences["affinity_scope by default"] == ("default (cache)", "default (system)")
    shares = {
        cell["setting"]: (cell["baseline"]["mean"], cell["candidate"]["mean"])
        for cell in comparisons(report, metric="local_l3_share", question="kernel")
    }
    default, written = shares["scope=default,strict=default"], shares["scope=cache,strict=0"]
    assert default[0] - default[1] > 10, "the default of the candidate spreads work over all L3 domains"
    assert abs(written[0] - written[1]) < 10


def test_series_that_changes_a_comment_needs_no_device(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["identical"])
    (target,) = report["targets"]
    assert (target["byte_identical"], target["verdict"], target["blocks_completed"]) == (True, "equivalent", 0)
    assert report["submission"]["exit_code"] == 0


def test_load_executes_all_work(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["cmwq-load"])
    for metric in ("concurrency_deficit", "works_lost", "rule_violations"):
        assert means(report, metric) == [(0, 0)] * 2, metric
    assert all(mean > 0 for pair in means(report, "works_executed") for mean in pair)


def test_limits_of_active_works_are_kept(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["max-active"])
    assert means(report, "rule_violations") == [(0, 0)] * 16, "eight scenarios with two limits"
    assert {mean for pair in means(report, "overtaken_max") for mean in pair} >= {4, 200}, "of per-CPU workqueues"


def test_every_kind_of_work_is_executed(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["work-latency"])
    for metric in ("loses_wakeups", "works_lost", "rule_violations"):
        assert means(report, metric) == [(0, 0)] * 10, metric
    [rescued] = comparisons(report, metric="rescued_share", scenario="rescuer")
    assert rescued["baseline"]["mean"] > 0 and rescued["candidate"]["mean"] > 0


def test_strict_scope_keeps_single_works_in_their_l3(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["work-latency-scopes"])
    shares = comparisons(report, metric="local_l3_share", question="kernel", setting="scope=cache,strict=1")
    assert [(c["baseline"]["mean"], c["candidate"]["mean"]) for c in shares] == [(100, 100)] * 2, "idle and loaded"
    assert means(report, "loses_wakeups") == [(0, 0)] * 4


def test_netperf_runs_on_both_networks(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["netperf-stream"])
    received = comparisons(report, metric="recv")
    assert {c["scenario"].split("-")[1] for c in received} == {"lo", "netns"}
    assert all(c["candidate"]["mean"] > 0 and c["effect"] is None for c in received), "means without effects"
    table = lab.wqlab("report", str(submissions["netperf-stream"]), "--format", "mmtests")
    assert "Amean" in table and "queued_wakeup_share-udp-lo-" in table
