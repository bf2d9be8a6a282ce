"""Real output of the plan scripts, recorded on emulated devices with Linux 6.12.117, gives exactly these values.

fio's JSON is whole in dm-24cpu-untraced.txt; the other files have only the keys of it that are read.
Neighbouring buckets of histograms are added up where that changes no metric.
Waits are rounded down in dm-24cpu-cache.txt (to 100 ms) and in the files of btrfs (to 50 us, from 1 ms on to 1 ms).
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from wqlab_contracts.messages import MeasuredTopology
from wqlab_contracts.plan_file import read_plan
from wqlab_contracts.specs import TestPlan
from wqlab_worker.measure.collect import Measurement, collect, read_records
from wqlab_worker.measure.parsers.fio import read_fio

RECORDED = Path(__file__).parent / "recorded"
PLANS = Path(__file__).parents[4] / "testplans"


@functools.cache
def plan(name: str) -> TestPlan:
    document = read_plan(PLANS / name / "plan.yaml", name)
    found = document.validate_as(TestPlan)
    assert found is not None, document.problems
    return found


def device(cpus: int, l3_domains: int, nodes: int = 1) -> MeasuredTopology:
    return MeasuredTopology(
        cpus=cpus,
        core=[cpu // 2 for cpu in range(cpus)],
        l3=[cpu * l3_domains // cpus for cpu in range(cpus)],
        node=[cpu * nodes // cpus for cpu in range(cpus)],
        package=[cpu * nodes // cpus for cpu in range(cpus)],
    )


RYZEN = device(24, 4)
XEON = device(32, 2, nodes=2)
DEFAULTS = "base_slice=default,granularity=default"


def measured(plan_name: str, file: str, topology: MeasuredTopology, traced: bool, setting: str = "") -> Measurement:
    chosen = plan(plan_name)
    text = (RECORDED / file).read_text()
    found = collect(text, chosen.parser, chosen, topology, traced, setting=setting)
    assert found.failure is None
    assert found.unsupported == []
    return found


def test_dm_crypt_shares_are_read() -> None:
    values = measured("dm-crypt-affinity", "dm-24cpu-cache.txt", RYZEN, True, "scope=cache,strict=0").values
    assert values["items"] == 1457
    assert values["local_l3_share"] == pytest.approx(100 * 1165 / 1457, abs=1e-9)
    assert values["local_cpu_share"] == pytest.approx(100 * 185 / 1457, abs=1e-9)
    assert values["local_l3_by_chance"] == pytest.approx(25.0, abs=1e-9)
    assert values["local_node_share"] == 100.0


def test_the_same_output_on_another_topology_has_another_share() -> None:
    smt_last = RYZEN.model_copy(update={"l3": [cpu % 12 // 3 for cpu in range(24)]})
    one_l3 = RYZEN.model_copy(update={"l3": [0] * 24})
    assert measured("dm-crypt-affinity", "dm-24cpu-cache.txt", one_l3, traced=True).values["local_l3_share"] == 100.0
    assert measured("dm-crypt-affinity", "dm-24cpu-cache.txt", smt_last, traced=True).values["local_l3_share"] < 60


def test_untraced_dm_crypt_values_are_read() -> None:
    found = measured("dm-crypt-affinity", "dm-24cpu-untraced.txt", RYZEN, traced=False)
    assert found.values["bandwidth"] == pytest.approx((15_728_640 + 8_749_056) / 1_048_576 / 2.19)
    assert found.values["issuers"] == 8
    assert found.values["cpu_utilisation"] == pytest.approx(6.6367)
    assert [found.values[f"read_clat_{p}"] for p in ("p50", "p99", "p999")] == [767557.632, 1535115.264, 1535115.264]
    assert [found.values[f"write_clat_{p}"] for p in ("p50", "p99", "p999")] == [1061158.912, 1719664.64, 1887436.8]
    assert found.command is not None
    assert found.command.startswith("fio --name=iops-test-job --filename=/dev/mapper/")
    assert found.facts["fio"] == "fio-3.33"


def test_bandwidth_of_a_run_of_milliseconds_is_that_of_its_stable_intervals() -> None:
    text = (RECORDED / "dm-24cpu-untraced.txt").read_text()
    text += "value\tsteady_bytes\t8388608\nvalue\tsteady_ns\t4000000\n"
    found = collect(text, "dm_crypt_affinity", plan("dm-crypt-affinity"), RYZEN, False)
    assert found.values["bandwidth"] == 2000


def counted_locks(file: str) -> dict[str, float]:
    """Values of a record that is older than the counts of mutexes and the idle time."""
    found = collect((RECORDED / file).read_text(), "xfs_fsync", plan("xfs-fsync"), XEON, True)
    lacking = {"mutex_per_flush", "mutex_contended_share", "idle_while_work_waits_us"}
    assert {str(metric) for metric, _ in found.unsupported} == lacking
    return found.values


def test_xfs_lock_counts_of_32_cpus_are_read() -> None:
    """Linux 6.12: one lock for each CPU, one for the default pool_workqueue, one for the completion."""
    values = counted_locks("xfs-32cpu.txt")
    assert values["locks_per_flush"] == 34
    assert values["exact_share"] > 95
    assert values["locks_per_fsync"] == pytest.approx(values["locks_per_flush_mean"] * values["flushes_per_fsync"])
    better = counted_locks("xfs-32cpu-locked-once-per-pool.txt")
    assert better["locks_per_flush"] == 4
    assert better["locks_per_fsync"] < values["locks_per_fsync"] / 4


def test_mutexes_of_flushes_are_read() -> None:
    """Linux 7.3: one lock for each pool of neighbouring CPUs, one for the default one, one for the completion."""
    text = (RECORDED / "xfs-32cpu-7.3.txt").read_text() + "value\tidle_while_work_waits_us\t64000\n"
    found = collect(text, "xfs_fsync", plan("xfs-fsync"), XEON, True)
    assert found.unsupported == []
    values = found.values
    assert values["idle_while_work_waits_us"] == 64_000 / read_fio(read_records(text)).sync.ios
    assert values["locks_per_flush"] == 4
    assert values["mutex_per_flush"] == pytest.approx(1.296, abs=1e-3)
    assert values["mutex_contended_share"] == pytest.approx(4.12, abs=0.01)


def test_untraced_xfs_values_are_read() -> None:
    values = measured("xfs-fsync", "xfs-32cpu-untraced.txt", XEON, traced=False).values
    assert values["bandwidth"] == pytest.approx(1.7194, abs=1e-3)
    assert values["iops"] == pytest.approx(440.15, abs=0.01)
    assert values["fsync_mean"] == pytest.approx(2711742.45, abs=0.01)
    # fio's histogram ends at 17.1 s.
    assert [values[f"fsync_{p}"] for p in ("p50", "p99", "p999")] == [2139095.04, 17112760.32, 17112760.32]


def test_migrations_of_the_writer_are_read() -> None:
    """3072 writes in 2.832 s with four migrations, by the trace and by the writer's own counter."""
    values = measured("aio-migration", "aio-2cpu.txt", device(2, 1), traced=True, setting=DEFAULTS).values
    assert values["migrations"] == values["migrations_by_counter"] == 4
    assert values["migrations_per_1000_ios"] == pytest.approx(4000 / 3072)
    assert values["stay_max_ms"] == pytest.approx(834.515)
    assert (values["completions_unbound"], values["completions_local"]) == (0, 100)
    assert values["completions_by_work"] == pytest.approx(100 * 239 / 256)


def test_overwrites_that_complete_without_a_work_have_no_migrations() -> None:
    """As since Linux 6.19, where such a scenario cannot show the effect."""
    counts = {"probed": 256, "queued": 0, "unbound_queued": 0, "started": 0, "started_locally": 0}
    values = [f"value\tcompletions_{name}\t{number}" for name, number in counts.items()]
    knobs = [
        f"{when}\t{knob}\tdefault" for when in ("setting", "setting_after") for knob in ("granularity", "base_slice")
    ]
    text = "\n".join([*knobs, *values, "value\toverwrites_without_work\t1", ""])
    found = collect(text, "aio_migration", plan("aio-migration"), device(2, 1), True, setting=DEFAULTS)
    assert (found.failure, found.values) == (None, {"completions_by_work": 0})
    reasons = {str(metric): str(reason) for metric, reason in found.unsupported}
    assert "since 6.19, so no kworker moves the writer" in reasons["migrations_per_1000_ios"]
    assert reasons["completions_local"] == "this kernel queues no completion work for such writes"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"started": 1}, "completion works started locally: 239 of 1"),
        ({"unbound_queued": 240}, "completion works queued to no CPU: 240 of 239"),
        ({"started": 240}, "239 completion works were queued, and 240 of them started"),
    ],
)
def test_more_completion_works_than_there_were_are_not_measured(changes: dict[str, int], reason: str) -> None:
    text = (RECORDED / "aio-2cpu.txt").read_text()
    for name, value in changes.items():
        text, times = re.subn(rf"(value\tcompletions_{name}\t)\d+", rf"\g<1>{value}", text)
        assert times == 1
    found = collect(text, "aio_migration", plan("aio-migration"), device(2, 1), True, setting=DEFAULTS)
    assert found.values == {}
    assert found.failure is not None and found.failure.summary == f"not measured: {reason}"


def test_untraced_aio_values_are_read() -> None:
    values = measured("aio-migration", "aio-2cpu-untraced.txt", device(2, 1), traced=False, setting=DEFAULTS).values
    assert values["bandwidth"] == pytest.approx(12 / 12.19)
    assert values["latency_mean"] == pytest.approx(242757.242)
    assert [values[f"latency_{p}"] for p in ("p50", "p99", "p999")] == [202375.168, 960495.616, 1098907.648]
    assert values["writer_switches"] == 1451


def test_netperf_wakeups_are_read() -> None:
    """460 messages with 97 wakeups across CPUs, 63 of which were queued."""
    found = measured("netperf-stream", "netperf-2cpu-udp-netns-4096.txt", device(2, 1), traced=True)
    assert found.values["queued_wakeup_share"] == pytest.approx(100 * 63 / 97)
    assert found.values["queued_wakeups"] == pytest.approx(63 / 0.46)
    assert found.values["remote_wakeups"] == pytest.approx(97 / 0.46)
    assert found.values["wakeups"] == pytest.approx(298 / 0.46)
    assert found.command is not None
    assert found.command.startswith("netperf -4 -H 198.51.100.2 -t UDP_STREAM -l 2 -f m -- -m 4096 -M 4096 ")


def test_untraced_netperf_values_are_read() -> None:
    values = measured("netperf-stream", "netperf-2cpu-untraced.txt", device(2, 1), traced=False).values
    assert values == {
        "recv": 8.95,
        "send": 15.54,
        "idle_share": pytest.approx(100 - 11.0491),
        "context_switches": pytest.approx(751 / 1.007),
        "call_function_interrupts": pytest.approx(114 / 1.007),
        "reschedule_interrupts": pytest.approx(14 / 1.007),
    }
