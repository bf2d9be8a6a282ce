"""Whole submissions on small devices: results must match the patch, the L3 layout and the CPU numbering."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from itertools import pairwise
from typing import Any

import pytest

from .conftest import EXAMPLE, NOOP, SERIES, Lab, comparisons, write_device_type
from .user_git import Topic

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]

OTHER_LOCKS = 2
"""Locks of a flush besides those of the CPUs' pools: the workqueue's default pwq, and the completion."""


def locks(report: dict[str, Any], device_type: str) -> dict[str, Any]:
    found = comparisons(report, metric="locks_per_flush", question="kernel", device_type=device_type)
    assert len(found) == 1
    return found[0]


def l3_of_cpus(report: dict[str, Any], device_type: str) -> list[int]:
    """Return the L3 domain of each CPU, as the device reported it."""
    target = next(t for t in report["targets"] if t["device_type"] == device_type)
    l3: list[int] = target["environment"]["topology"]["l3"]
    return l3


def runs_of_pods(report: dict[str, Any], device_type: str) -> int:
    """Return the number of runs of CPUs in one L3 domain; the example series takes one lock for each."""
    l3 = l3_of_cpus(report, device_type)
    return 1 + sum(a != b for a, b in pairwise(l3))


def assert_locks_follow_the_numbering(report: dict[str, Any], device_type: str) -> None:
    found = locks(report, device_type)
    assert found["baseline"]["mean"] == len(l3_of_cpus(report, device_type)) + OTHER_LOCKS
    assert found["candidate"]["mean"] == runs_of_pods(report, device_type) + OTHER_LOCKS
    assert found["verdict"] == "improvement"
    assert found["exact"] and found["p"] is None
    assert found["baseline"]["n"] == found["candidate"]["n"] == 2


def test_locks_fall_to_the_number_of_cpu_runs(lab: Lab, submissions: dict[str, int]) -> None:
    """SMT siblings are numbered last, so every L3 domain has two runs of CPUs."""
    report = lab.finish(submissions["example"])
    assert len(l3_of_cpus(report, "two-sockets-smt-last")) == 8
    assert runs_of_pods(report, "two-sockets-smt-last") == 4
    assert_locks_follow_the_numbering(report, "two-sockets-smt-last")


def test_locks_fall_further_if_siblings_are_adjacent(lab: Lab) -> None:
    write_device_type(lab.data, "two-sockets", (2, 1, 1, 2, 2, "contiguous"))
    subprocess.run(["wqlab-lab", "up"], env=lab.environment, check=True)
    report = lab.finish(lab.submit("--mbox", str(EXAMPLE), "--target", "xfs-fsync@two-sockets"))
    assert len(l3_of_cpus(report, "two-sockets")) == 4
    assert runs_of_pods(report, "two-sockets") == 2
    assert_locks_follow_the_numbering(report, "two-sockets")


def test_series_with_triple_locking_regresses(lab: Lab, submissions: dict[str, int]) -> None:
    found = locks(lab.finish(submissions["tripled"], codes=(1,)), "tiny")
    assert found["verdict"] == "regression"
    assert found["candidate"]["mean"] == 3 * (2 + 1) + 1


def test_added_device_joins_the_running_lab(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["settings"])
    assert l3_of_cpus(report, "four-l3") == [0, 1, 2, 3]


def test_settings_change_the_placement_of_work(lab: Lab, submissions: dict[str, int]) -> None:
    """Four L3 domains give a share of 25 % by chance, once 50 % under load; only strict=1 gives a fixed share."""
    report = lab.finish(submissions["settings"])
    shares = comparisons(report, metric="local_l3_share", question="setting")
    assert {(c["scenario"], c["setting"]) for c in shares} == {
        ("HIGH", "scope=cache,strict=0"),
        ("HIGH", "scope=cache,strict=1"),
        ("HIGH", "scope=default,strict=default"),
    }
    for found in shares:
        assert 10 < found["baseline"]["mean"] < 60, found
        if found["setting"] == "scope=cache,strict=1":
            assert found["candidate"]["mean"] == 100
        else:
            assert found["candidate"]["mean"] > found["baseline"]["mean"] + 15, found
        # Two boots cannot reach p < 0.05, however large the difference is.
        assert found["verdict"] == "inconclusive"
        assert found["candidate"]["n"] == 2
        assert found["blocks_needed"] == 4


def test_emulated_throughput_has_no_verdict(lab: Lab, submissions: dict[str, int]) -> None:
    for name in ("settings", "example"):
        report = lab.finish(submissions[name])
        speeds = comparisons(report, evidence="none")
        assert {c["metric"] for c in speeds} >= {"bandwidth"}
        for found in speeds:
            assert found["verdict"] in {"no_evidence", None}
            assert not any(found[key] for key in ("effect", "ci95", "p", "p_adjusted", "blocks_needed"))


def test_each_sample_belongs_to_a_verified_boot(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["example"])
    arms = {build["arm"]: build["build_id_gnu"] for build in report["submission"]["builds"]}
    assert arms["baseline"] != arms["candidate"]
    for run in report["submission"]["runs"]:
        boots = [boot for boot in run["boots"] if boot["valid"]]
        assert len({boot["kernel_boot_id"] for boot in boots}) == len(boots) == 4
        for boot in boots:
            assert boot["build_id_gnu"] == arms[boot["arm"]]
            assert boot["token"] and boot["token"] in boot["cmdline"]
        assert len({boot["device"] for boot in boots}) == 1


def test_exported_samples_give_the_same_verdict(lab: Lab, submissions: dict[str, int], tmp_path: Any) -> None:
    report = lab.finish(submissions["tripled"], codes=(1,))
    text = lab.wqlab("samples", str(report["targets"][0]["run_id"]))
    assert {"locks_per_flush", "bandwidth"} <= {row["metric"] for row in csv.DictReader(io.StringIO(text))}
    path = tmp_path / "samples.csv"
    path.write_text(text)
    again = json.loads(lab.wqlab("compare", str(path), "--json", codes=(1,)))
    found = [c for c in again if c["metric"] == "locks_per_flush" and c["question"] == "kernel"]
    assert [c["verdict"] for c in found] == ["regression"]


def test_panic_at_boot_is_a_kernel_failure_and_device_recovers(lab: Lab, submissions: dict[str, int]) -> None:
    report = lab.finish(submissions["panic"], codes=(3,))
    failure = report["submission"]["failure"]
    assert failure["kind"] == "kernel"
    assert "panic" in (failure["summary"] + failure["excerpt"]).lower()
    place = next(frame for frame in failure["stack"] if frame["function"] == "wq_test_panic")
    assert (place["file"], place["source"]) == (
        "kernel/workqueue.c",
        'panic("wqlab test series: panic at boot");',
    )
    assert f"(kernel/workqueue.c:{place['line']})  {place['source']}" in failure["excerpt"]
    arms = [attempt["arm"] for attempt in report["attempts"]]
    assert "candidate" in arms, "every attempt that failed is listed"
    assert "baseline" not in arms
    assert not [d for d in json.loads(lab.wqlab("devices", "--json")) if d["health"] == "quarantined"]


def test_hang_at_boot_is_a_kernel_failure_and_device_recovers(lab: Lab) -> None:
    """The kernel stops without output, so only the timeout detects it.

    In the nightly suite; worker/tests/backends/test_ssh_device.py tests it without a device.
    """
    series = ("--mbox", str(SERIES / "hangs-at-boot.mbox"), "--blocks", "1")
    report = lab.finish(lab.submit(*series, "--target", "xfs-fsync@lone"), codes=(3,))
    failure = report["submission"]["failure"]
    assert failure["kind"] == "kernel"
    assert "hang" in failure["summary"] and "did not come up" in failure["summary"]
    found = [f for target in report["targets"] for f in target["findings"]]
    assert {(f["kind"], f["arm"]) for f in found} == {("hang", "candidate")}
    assert {attempt["arm"] for attempt in report["attempts"] if attempt["block"] is not None} == {"candidate"}
    (device,) = [d for d in json.loads(lab.wqlab("devices", "--json")) if d["device_type"] == "lone"]
    assert (device["health"], device["lease"]) == ("good", None)


def test_warning_of_only_the_candidate_fails_the_series(lab: Lab) -> None:
    """In the nightly suite; server/tests/pipeline/test_advance_failures.py tests the effects of a finding."""
    series = ("--mbox", str(SERIES / "warns-at-boot.mbox"), "--blocks", "1")
    report = lab.finish(lab.submit(*series, "--target", "xfs-fsync@tiny"), codes=(3,))
    assert report["submission"]["failure"]["kind"] == "kernel"
    found = [f for target in report["targets"] for f in target["findings"]]
    assert {(f["kind"], f["arm"]) for f in found} == {("warning", "candidate")}


def test_branch_uses_its_merge_base_and_reuses_equal_builds(
    lab: Lab, submissions: dict[str, int], topic: Topic
) -> None:
    """The branch has the same source tree as the series without effect, so there is no third build."""
    branch, series = (lab.finish(submissions[name])["submission"] for name in ("branch", "each plan"))
    assert branch["apply"]["base_commit"] == topic.base
    builds = [{build["arm"]: build["id"] for build in each["builds"]} for each in (branch, series)]
    assert builds[0] == builds[1]


def test_canceled_submission_frees_the_device(lab: Lab, submissions: dict[str, int]) -> None:
    lab.finish(submissions["branch"])
    submission = lab.submit("--mbox", str(NOOP), "--target", "xfs-fsync@tiny", "--blocks", "20")
    lab.wqlab("cancel", str(submission))
    report = lab.finish(submission, codes=(4,))
    assert report["submission"]["outcome"] == "canceled"
    leases = [device["lease"] for device in json.loads(lab.wqlab("devices", "--json"))]
    assert submission not in [lease["run_id"] for lease in leases if lease]


@pytest.mark.parametrize("style", ["text", "markdown", "junit", "html", "json"])
def test_every_report_format_contains_the_verdict(lab: Lab, submissions: dict[str, int], style: str) -> None:
    lab.finish(submissions["example"])
    text = lab.wqlab("report", str(submissions["example"]), "--format", style).replace("\\_", "_")
    assert "locks_per_flush" in text and "improve" in text.lower()
    if style == "text":
        assert max(map(len, text.splitlines())) <= 78


def test_oops_under_load_shows_the_lines_of_the_source(lab: Lab) -> None:
    series = str(SERIES / "oopses-under-load.mbox")
    submission = lab.submit("--mbox", series, "--target", "xfs-fsync@tiny", "--blocks", "1")
    report = lab.finish(submission, codes=(3,))
    failure = report["submission"]["failure"]
    inlined, containing, caller = failure["stack"][:3]
    assert (inlined["function"], inlined["inlined"]) == ("wq_test_oops", True)
    assert inlined["source"] == "WRITE_ONCE(gone->flush_color, -1);"
    assert (containing["function"], containing["source"]) == ("flush_workqueue_prep_pwqs", "wq_test_oops(NULL);")
    assert caller["function"] == "__flush_workqueue"
    oopses = [finding for finding in report["targets"][0]["findings"] if finding["kind"] == "oops"]
    assert {finding["defect"] for finding in oopses} == {failure["defect"]}, "each boot has the same defect"
    text = lab.wqlab("report", str(submission))
    assert text.count("BUG: kernel NULL pointer dereference") == 2, "in the summary and in the excerpt"
