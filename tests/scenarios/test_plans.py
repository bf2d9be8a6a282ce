"""Run every plan once on the smallest device, from submission to report, and check that its counts are consistent.

test_findings.py tests more of dm-crypt-affinity and xfs-fsync. The nightly suite runs the plans also on a device with
two sockets, on the arm64 device, which needs another kernel, and in full (test_plans_in_full.py).
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from wqlab_contracts.traced_counts import PLACES, parse_buckets, percentile

from .conftest import (
    BIG_LITTLE,
    NOOP,
    REDUCED_PARAMETERS,
    WORK_LATENCY,
    Lab,
    comparisons,
    submit_each_plan,
)
from .plan_reports import facts, raw_output, samples, target, values, waits_of_boots

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]
TWO_SOCKETS = "two-sockets-smt-last"
STREAM = re.compile(
    r"^command\tnetperf [^\n]*-t (?P<protocol>TCP|UDP)_STREAM [^\n]*-m (?P<message>\d+) .*?"
    r"^LOCAL_BYTES_SENT=(?P<sent>\d+)$.*?^REMOTE_BYTES_RECVD=(?P<arrived>\d+)$",
    re.MULTILINE | re.DOTALL,
)


@pytest.fixture(scope="module", params=["tiny", TWO_SOCKETS, BIG_LITTLE])
def report(request: pytest.FixtureRequest, lab: Lab) -> dict[str, Any]:
    """Return the report of the series, with the targets of the study as well."""
    ids = request.getfixturevalue("each_plan") if request.param == "tiny" else submit_each_plan(lab, request.param)
    series, study = map(lab.finish, ids)
    return {**series, "targets": [*series["targets"], *study["targets"]]}


def test_trace_and_proc_count_the_same_migrations(lab: Lab, report: dict[str, Any]) -> None:
    """Compare the trace with the counter in the writer's /proc/PID/sched."""
    rows = samples(lab, report, "aio-migration")
    traced = values(rows, "migrations")
    assert len(traced) == 2, "of each setting"
    assert traced == values(rows, "migrations_by_counter")
    assert set(values(rows, "completions_unbound").values()) == {0}


def test_stream_messages_arrive_on_both_networks(lab: Lab, report: dict[str, Any]) -> None:
    rows = samples(lab, report, "netperf-stream")
    received = values(rows, "recv")
    assert {scenario for _, _, scenario, *_ in received} == {"udp-lo-64", "tcp-netns-4096"}
    assert all(mbits > 0 for mbits in received.values())
    # Compare bytes: each end divides by the time that its own clock measured.
    streams = list(STREAM.finditer("".join(raw_output(lab, target(report, "netperf-stream")["run_id"]))))
    over_tcp = [stream for stream in streams if stream["protocol"] == "TCP"]
    assert len(over_tcp) == len(streams) / 2 >= 2, "of each kernel, two streams"
    for stream in streams:
        # TCP may have sent part of the message that the timer interrupts; netperf counts it only at the receiver.
        uncounted = int(stream["message"]) - 1 if stream in over_tcp else 0
        assert 0 < int(stream["arrived"]) <= int(stream["sent"]) + uncounted, "more arrived than was sent"
    assert all(0 <= share <= 100 for share in values(rows, "queued_wakeup_share").values())


def test_load_module_counts_are_consistent(lab: Lab, report: dict[str, Any]) -> None:
    rows = samples(lab, report, "cmwq-load")
    executed = values(rows, "works_executed")
    assert len(executed) == 2 and all(count > 0 for count in executed.values())
    for metric in ("works_lost", "concurrency_deficit", "rule_violations"):
        assert set(values(rows, metric).values()) == {0}, metric
    workers, rescued = values(rows, "workers"), values(rows, "rescued_works")
    for key, peak in values(rows, "peak_concurrency").items():
        # On a slow device workers start late, and a rescuer executes works too.
        assert 1 <= peak <= workers[key] + rescued[key], (key, peak, workers[key], rescued[key])


def test_every_kind_of_work_is_executed_where_it_belongs(lab: Lab, report: dict[str, Any]) -> None:
    rows = samples(lab, report, "work-latency")

    def by_scenario(metric: str) -> dict[str, set[float]]:
        found: dict[str, set[float]] = {}
        for (_, _, scenario, *_), value in values(rows, metric).items():
            found.setdefault(scenario, set()).add(value)
        return found

    works = REDUCED_PARAMETERS["work-latency"]
    executed = {name: {float(works["works"])} for name in WORK_LATENCY}
    executed |= {"unbound-loaded": {float(works["loaded_works"])}, "rescuer": {float(works["rescuer_works"])}}
    assert by_scenario("works_executed") == executed
    for metric in ("loses_wakeups", "lost_wakeups", "works_lost", "rule_violations"):
        assert by_scenario(metric) == {name: {0} for name in WORK_LATENCY}, metric
    on_their_cpu = by_scenario("local_cpu_share")
    assert all(on_their_cpu[name] == {100} for name in ("percpu", "highpri", "bh", "delayed")), on_their_cpu
    assert by_scenario("wakeups_per_work")["bh"] == {0}, "softirqs execute them"
    assert min(by_scenario("rescued_share")["rescuer"]) > 0


def test_works_stay_on_their_cpu_in_its_own_scope(lab: Lab, report: dict[str, Any]) -> None:
    rows = samples(lab, report, "work-latency-scopes")
    shares = {key[3]: share for key, share in values(rows, "local_cpu_share").items()}
    assert shares.keys() == {"scope=system,strict=0", "scope=cpu,strict=1"}
    assert shares["scope=cpu,strict=1"] == 100 > shares["scope=system,strict=0"]
    assert set(values(rows, "lost_wakeups").values()) == {0}


def test_every_cpu_queues_works_and_none_is_lost(lab: Lab, report: dict[str, Any]) -> None:
    rows = samples(lab, report, "queue-rate")
    cpus = len(target(report, "queue-rate")["environment"]["topology"]["l3"])
    rates = {key[3]: rate for key, rate in values(rows, "items_per_s").items()}
    assert rates.keys() == {"scope=system", "scope=cpu"} and min(rates.values()) > 0
    assert set(values(rows, "works_lost").values()) == {0}
    assert set(values(rows, "producers").values()) == {cpus}
    assert all(dropped <= 4 for dropped in values(rows, "intervals_dropped").values()), "half of them at most"
    medians, tails = values(rows, "queue_p50_ns"), values(rows, "queue_p95_ns")
    assert all(0 < median <= tails[key] for key, median in medians.items())


def test_limits_of_active_works_are_kept_and_used(lab: Lab, report: dict[str, Any]) -> None:
    rows = samples(lab, report, "max-active")

    def by_scenario(metric: str) -> dict[str, set[float]]:
        found: dict[str, set[float]] = {}
        for (_, _, scenario, *_), value in values(rows, metric).items():
            found.setdefault(scenario, set()).add(value)
        return found

    shapes = ("fan", "nested", "crossed", "fair")
    names = {f"{shape}-{kind}" for shape in shapes for kind in ("percpu", "unbound")}
    assert by_scenario("rule_violations") == {name: {0} for name in names}
    concurrency = by_scenario("concurrency")
    nodes = len(set(target(report, "max-active")["environment"]["topology"]["node"] or [0]))
    # On each of the two CPUs that queue; on each node, as a limit below 8 is whole there (Linux 6.9).
    assert (concurrency["fan-percpu"], concurrency["fan-unbound"]) == ({8}, {4 * nodes})
    assert by_scenario("deadlocks").keys() == {name for name in names if name.startswith(("nested", "crossed"))}
    assert all(share > 0 for share in by_scenario("least_served_share")["fair-percpu"])


def test_tree_without_the_benchmark_is_unsupported(lab: Lab) -> None:
    report = lab.finish(lab.submit("--mbox", str(NOOP), "--blocks", "1", "--target", "test-workqueue@tiny"))
    found = target(report, "test-workqueue")
    assert found["unsupported"] and all("test_workqueue" in item["reason"] for item in found["unsupported"])
    assert {comparison["verdict"] for comparison in found["comparisons"]} <= {"unsupported", None}


def test_no_work_starts_on_isolated_cpus(lab: Lab, report: dict[str, Any]) -> None:
    """The works of a change that were queued before it may start late; those queued after it may not."""
    rows = samples(lab, report, "isolation")
    assert target(report, "isolation")["unsupported"] == []
    assert {scenario for _, _, scenario, *_ in values(rows, "changes")} == {"cpumask", "cpuset"}
    live = REDUCED_PARAMETERS["isolation"]["changes"] + 1  # and one for the spinning task
    assert set(values(rows, "changes").values()) == {live}
    assert set(values(rows, "works_on_isolated").values()) == {0}
    assert all(count > 0 for count in values(rows, "works_while_isolated").values())
    interrupts, ticks = values(rows, "interrupts"), values(rows, "ticks")
    assert all(0 < ticks[key] <= interrupts[key] for key in interrupts)


def test_no_work_is_lost_when_cpus_go_and_come(lab: Lab, report: dict[str, Any]) -> None:
    rows = samples(lab, report, "hotplug")
    assert set(values(rows, "cycles").values()) == {REDUCED_PARAMETERS["hotplug"]["cycles"]}
    executed = values(rows, "works_executed")
    assert len(executed) == 2 and all(count > 0 for count in executed.values())
    for metric in ("works_lost", "stayed_elsewhere", "ran_twice_at_once", "refusals", "warnings"):
        assert set(values(rows, metric).values()) == {0}, metric
    assert all(time > 0 for time in values(rows, "rebind_mean_us").values())


def test_unlinked_inodes_are_freed_where_they_were_unlinked(lab: Lab, report: dict[str, Any]) -> None:
    rows = samples(lab, report, "xfs-inodegc")
    assert target(report, "xfs-inodegc")["unsupported"] == []
    works = values(rows, "works_per_1000_files")
    assert {scenario for _, _, scenario, *_ in works} == {"small", "fragmented"}
    assert all(0 < count <= 1000 for count in works.values())
    for metric in ("local_cpu_share", "deferred_share"):
        assert set(values(rows, metric).values()) == {100}, metric
    assert all(queued >= 1 for queued in values(rows, "queueings_per_work").values())
    assert all(rate > 0 for rate in values(rows, "files_per_second").values())


def test_messages_wake_their_receivers(lab: Lab, report: dict[str, Any]) -> None:
    rows = samples(lab, report, "hackbench")
    # There are too few wakeups for a tail.
    assert {each["metric"] for each in target(report, "hackbench")["unsupported"]} <= {
        "wakeup_p99_us",
        "wakeup_p999_us",
    }
    switches = values(rows, "context_switches_per_1000_messages")
    assert {scenario for _, _, scenario, *_ in switches} == {"pipes", "sockets-loaded"}
    assert all(count > 0 for count in (*switches.values(), *values(rows, "wakeups_per_1000_messages").values()))
    medians, tails = values(rows, "wakeup_p50_us"), values(rows, "wakeup_p99_us")
    assert medians and all(median >= 0 for median in medians.values())
    assert all(medians[key] <= tail for key, tail in tails.items())
    assert set(values(rows, "works_lost").values()) == {0}


@pytest.mark.parametrize(("plan", "cells"), [("rt-app", 4), ("rt-app-scopes", 2)])
def test_every_request_is_executed_beside_works(lab: Lab, report: dict[str, Any], plan: str, cells: int) -> None:
    """On a busy emulator requests may end late. The request after a late one starts without a wakeup."""
    rows = samples(lab, report, plan)
    late, median, longest = (values(rows, name) for name in ("late_share", "wakeup_p50_us", "wakeup_max_us"))
    assert len(late) == cells and all(0 <= share <= 100 for share in late.values()), late
    assert {key for key, share in late.items() if share < 100} == median.keys() == longest.keys()
    assert all(0 <= median[key] <= longest[key] for key in median)
    assert all(time > 0 for time in values(rows, "run_p50_us").values())
    assert all(count > 0 for count in values(rows, "context_switches_per_1000_requests").values())
    # The traced repetition counts those of the start too: the barrier and the initial delay of each thread.
    wakeups = values(rows, "wakeups_per_request")
    assert len(wakeups) == cells and all(count > 0 for count in wakeups.values())
    assert all(count >= 0 for count in values(rows, "migrations_per_1000_requests").values())
    assert set(values(rows, "works_lost").values()) <= {0}
    assert all(count > 0 for count in values(rows, "load_iops").values())
    if plan == "rt-app-scopes":
        on_cpu = {key[3]: share for key, share in values(rows, "local_cpu_share").items()}
        assert on_cpu.keys() == {"scope=system,strict=0", "scope=cpu,strict=1"}
        assert on_cpu["scope=cpu,strict=1"] == 100


def test_one_boot_gives_a_curve_without_crossings(report: dict[str, Any]) -> None:
    found = target(report, "fan-out")
    cpus = len(found["environment"]["topology"]["l3"])
    curves = [curve for curve in found["curves"] if curve["metric"] == "local_l3_share"]
    assert {curve["kernel"] for curve in curves} == {"baseline"}
    for curve in curves:
        assert {point["x"] for line in curve["lines"] for point in line["points"]} == {1, 4 * cpus}
        assert (curve["evidence"], curve["crossings"]) == ("mechanism", [])


def kernels(plan: str) -> set[str]:
    """Return the arms in which `submit_each_plan` measures a plan."""
    return {"baseline"} if plan in {"aio-migration", "fan-out", "rt-app-scopes"} else {"baseline", "candidate"}


def test_every_plan_records_a_workqueue_series(report: dict[str, Any]) -> None:
    of_the_cpus = ("aio-migration", "netperf-stream", "isolation", "hotplug", "hackbench", "rt-app")
    for plan in (*of_the_cpus, "fan-out", "rt-app-scopes", "xfs-inodegc"):
        cells = target(report, plan)["workqueues"]
        assert {cell["source"] for cell in cells} == {"stats"}, plan
        assert {series["arm"] for cell in cells for series in cell["series"]} == kernels(plan), plan


def test_every_traced_repetition_counts_how_long_work_items_waited(lab: Lab, report: dict[str, Any]) -> None:
    """The tables of the boots have every function; a report has those that differ in six blocks."""
    counted = {}
    for plan in ("aio-migration", "netperf-stream", "fan-out", "isolation", "hotplug"):
        counted[plan] = waits_of_boots(lab, target(report, plan)["run_id"])
        assert {arm for arm, _ in counted[plan]} == kernels(plan), plan
        for _, row in counted[plan]:
            assert percentile(parse_buckets(row.buckets), 50) >= 1, plan
            assert sum(getattr(row, place) or 0 for place in PLACES) == row.count > 0, plan
    for plan in ("cmwq-load", "work-latency"):
        assert waits_of_boots(lab, target(report, plan)["run_id"]) == []
    # The plan's own trace counts the works of kcryptd, which are all of this function.
    traced = values(samples(lab, report, "fan-out"), "items")
    crypt = [(arm, row) for arm, row in counted["fan-out"] if row.name == "kcryptd_crypt"]
    assert crypt
    for arm, row in crypt:
        here = {key[0]: number for key, number in traced.items() if key[2:4] == (row.scenario, row.setting)}
        assert row.count == here[arm], (row, here)


def test_emulated_throughput_of_every_plan_has_no_verdict(report: dict[str, Any]) -> None:
    speeds = comparisons(report, evidence="none")
    assert {comparison["metric"] for comparison in speeds} >= {"recv", "bandwidth", "encode_seconds"}
    for found in speeds:
        assert not any(found[key] for key in ("effect", "ci95", "p", "p_adjusted", "blocks_needed"))


MEMORY = "page cache written back and dropped; transparent hugepages not in this kernel, KSM not in this kernel"


def test_workloads_run_where_they_are_declared(lab: Lab, bound: tuple[int, int]) -> None:
    """On two nodes of CPUs 0-1,4-5 and 2-3,6-7: the scripts read back what the kernel made of it, and say so."""
    placed, streams = bound
    crypt = facts(lab.finish(placed), "dm-crypt-affinity")
    assert crypt["job_cpus"] == "2-3,6-7, read back from a job"
    assert crypt["disk"].startswith("null_blk memory_backed, 32 MiB, 8 queues, prewritten on node 1")
    assert crypt["memory before each repetition"] == MEMORY
    stream = facts(lab.finish(streams), "netperf-stream")
    assert stream["endpoints"] == "other_node: netperf on CPU 2, netserver on CPU 0, read back from both"
    assert stream["memory before each repetition"] == MEMORY


def test_other_plans_run_where_they_are_declared(lab: Lab, bound: tuple[int, int]) -> None:
    submission = lab.submit(
        *("--mbox", str(NOOP), "--blocks", "1"),
        *("--target", f"xfs-fsync@{TWO_SOCKETS}", "--param", "disk_nodes=1", "--param", "job_cpus=all"),
        *("--target", f"aio-migration@{TWO_SOCKETS}", "--scenario", "rand-overwrite", "--param", "disk_nodes=0"),
        *("--setting", "base_slice=default,granularity=default"),
    )
    report = lab.finish(submission)
    assert facts(report, "xfs-fsync")["job_cpus"] == "0-7, read back from a job"
    assert facts(report, "xfs-fsync")["disk"].endswith(", prewritten on nodes 1")
    assert facts(report, "aio-migration")["disk"].endswith(", prewritten on node 0")


def test_works_stay_in_the_affinity_scope_of_two_sockets(lab: Lab) -> None:
    settings = ("scope=system,strict=0", "scope=numa,strict=1", "scope=cache,strict=1", "scope=cpu,strict=1")
    submission = lab.submit(
        *("--settings-only", "--blocks", "1", "--target", f"work-latency-scopes@{TWO_SOCKETS}"),
        *(word for setting in settings for word in ("--setting", setting)),
    )
    rows = samples(lab, lab.finish(submission), "work-latency-scopes")

    def shares(metric: str) -> dict[str, set[float]]:
        found: dict[str, set[float]] = {}
        for (_, _, _, setting, _), value in values(rows, metric).items():
            found.setdefault(setting, set()).add(value)
        return found

    on_cpu, on_l3, on_node = (shares(f"local_{place}_share") for place in ("cpu", "l3", "node"))
    assert on_cpu["scope=cpu,strict=1"] == {100}
    assert on_l3["scope=cache,strict=1"] == {100} and min(on_cpu["scope=cache,strict=1"]) < 100
    assert on_node["scope=numa,strict=1"] == {100} and min(on_cpu["scope=numa,strict=1"]) < 100
    assert min(on_node["scope=system,strict=0"]) < 100, "an idle worker of the other socket is as good"
