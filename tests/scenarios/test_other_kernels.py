"""Older and newer kernels than the default one, and a debug kernel.

In the nightly suite, because each build takes ten minutes.
"""

from __future__ import annotations

from typing import Any

import pytest

from wqlab_contracts.loading import load_data

from .conftest import NOOP, ROOT, Lab, comparisons

pytestmark = [pytest.mark.scenario, pytest.mark.nightly, pytest.mark.timeout(7200)]

ANYWHERE = ROOT / "tests/series/anywhere.mbox"
DEBUG = [
    *("--recipe", "debug", "--blocks", "1"),
    *("--target", "xfs-fsync@tiny", "--target", "cmwq-load@tiny", "--scenario", "wl0-S"),
]
HOTPLUG = ["--recipe", "debug", "--blocks", "1", "--target", "hotplug@tiny", "--param", "cycles=4"]
GRANULARITIES = [f"base_slice=default,granularity={value}" for value in ("default", "slow", "fast")]


@pytest.fixture(scope="module")
def submissions(lab: Lab, study: int) -> dict[str, int]:
    """Submit a study for each kernel; `study` adds the device with four L3 domains."""
    settings = [
        word for setting in (*GRANULARITIES, "base_slice=4ms,granularity=default") for word in ("--setting", setting)
    ]
    return {
        "6.1": lab.submit(
            *("--settings-only", "--tree", "linux-6.1", "--blocks", "1"),
            *("--target", "dm-crypt-affinity@tiny", "--scenario", "HIGH"),
            *("--target", "aio-migration@tiny", "--scenario", "rand-overwrite", *settings),
        ),
        "7.3": lab.submit(
            *("--mbox", str(ANYWHERE), "--tree", "linux-7.3", "--blocks", "1"),
            *("--target", "test-workqueue@tiny", "--target", "cmwq-load@tiny", "--scenario", "wl0-S"),
            *("--target", "dm-crypt-affinity@four-l3", "--scenario", "HIGH"),
            *("--setting", "scope=system,strict=0", "--setting", "scope=cache_shard,strict=1"),
        ),
        "debug": lab.submit("--mbox", str(NOOP), *DEBUG),
        "hotplug": lab.submit("--mbox", str(NOOP), *HOTPLUG),
        "lock order": lab.submit("--mbox", str(ROOT / "tests/series/wrong-lock-order-at-hotplug.mbox"), *HOTPLUG),
        "past": lab.submit("--mbox", str(ROOT / "tests/series/reads-past-its-end.mbox"), *DEBUG),
    }


def test_every_plan_measures_the_newest_tree(lab: Lab) -> None:
    """One block of each plan's first scenario on the default tree of trees.yaml."""
    newest = load_data(ROOT).default_tree
    plans = [plan for plan in load_data(lab.data).plans.values() if not plan.checks_health]
    words = [
        word
        for plan in plans
        for word in (
            "--target",
            f"{plan.name}@tiny",
            "--scenario",
            plan.measured(None, emulated=True).scenarios[0].name,
        )
    ]
    report = lab.finish(lab.submit("--mbox", str(ANYWHERE), "--tree", newest, "--blocks", "1", *words))
    for plan in plans:
        found = target(report, plan.name)
        assert found["environment"]["release"]["baseline"].startswith(newest.removeprefix("linux-"))
        assert not [item for item in found["unsupported"] if item["metric"] is None and item["setting"] == ""], (
            plan.name
        )
        measured = {each["metric"] for each in found["comparisons"] if each["baseline"] and each["candidate"]}
        assert measured, f"{plan.name} measured nothing"


def target(report: dict[str, Any], plan: str) -> dict[str, Any]:
    [found] = [target for target in report["targets"] if target["plan"]["name"] == plan]
    assert found["outcome"] == "passed", found["failure"]
    return dict(found)


def test_kernel_without_affinity_scopes_is_unsupported(lab: Lab, submissions: dict[str, int]) -> None:
    found = target(lab.finish(submissions["6.1"]), "dm-crypt-affinity")
    assert found["environment"]["release"]["baseline"].startswith("6.1.")
    assert {comparison["verdict"] for comparison in found["comparisons"]} == {"unsupported"}
    assert all("has no affinity_scope" in comparison["reason"] for comparison in found["comparisons"])


def test_kernel_before_eevdf_supports_only_granularities(lab: Lab, submissions: dict[str, int]) -> None:
    found = target(lab.finish(submissions["6.1"]), "aio-migration")
    lacking = {item["setting"] for item in found["unsupported"] if item["metric"] is None}
    assert lacking == {"base_slice=4ms,granularity=default"}
    measured = [c for c in found["comparisons"] if c["metric"] == "migrations_per_1000_ios" and c["candidate"]]
    assert {c["setting"] for c in measured} == set(GRANULARITIES[1:])


def test_kernel_benchmark_runs_in_every_scope(lab: Lab, submissions: dict[str, int]) -> None:
    found = target(lab.finish(submissions["7.3"]), "test-workqueue")
    assert not found["unsupported"]
    assert found["environment"]["release"]["baseline"].startswith("7.3")
    [scopes] = [c for c in found["comparisons"] if c["metric"] == "scopes_run"]
    assert scopes["baseline"]["mean"] == scopes["candidate"]["mean"] == 6


def test_newer_kernel_has_every_scope_and_loads_the_module(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["7.3"])
    assert target(report, "cmwq-load")["unsupported"] == []
    assert target(report, "dm-crypt-affinity")["unsupported"] == []
    shares = {
        c["setting"]: c["baseline"]["mean"] for c in comparisons(report, metric="local_l3_share", question="kernel")
    }
    assert shares["scope=cache_shard,strict=1"] == 100


def test_debug_kernel_reports_no_finding_or_figure_for_a_good_series(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["debug"])
    for plan in ("xfs-fsync", "cmwq-load"):
        found = target(report, plan)
        assert (found["findings"], found["comparisons"], found["verdict"]) == ([], [], "no_evidence")
        assert found["environment"]["facts"].get("kasan") == "y"


def test_debug_kernel_finds_an_out_of_bounds_read(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["past"], codes=(3,))
    assert report["submission"]["failure"]["kind"] == "kernel"
    found = [finding for target in report["targets"] for finding in target["findings"]]
    assert {(finding["kind"], finding["arm"]) for finding in found} == {("kasan", "candidate")}
    assert all("wq_test_read" in finding["excerpt"] for finding in found)


def test_debug_kernel_reports_nothing_while_cpus_go_and_come(lab: Lab, submissions: dict[str, int]) -> None:
    found = target(lab.finish(submissions["hotplug"]), "hotplug")
    assert (found["findings"], found["verdict"]) == ([], "no_evidence")


def test_debug_kernel_finds_a_wrong_lock_order_at_hotplug(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["lock order"], codes=(3,))
    assert report["submission"]["failure"]["kind"] == "kernel"
    found = [finding for target in report["targets"] for finding in target["findings"]]
    assert {(finding["kind"], finding["arm"]) for finding in found} == {("lockdep", "candidate")}
    # unbind_workers() is inlined into this one.
    assert all("wq_pool_mutex){+.+.}-{3:3}, at: workqueue_offline_cpu" in finding["excerpt"] for finding in found)
