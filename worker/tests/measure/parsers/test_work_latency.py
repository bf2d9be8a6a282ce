"""Parser of plans work-latency and work-latency-scopes, with recorded output and that of broken kernels.

The records are of an emulated device with two CPUs, Linux 6.12.117 and a busy host; `highpri-lost` is of that kernel
with the series tests/series/loses-wakeups.mbox.
"""

from __future__ import annotations

import re

import pytest

from wqlab_contracts.enums import NotMeasuredCause
from wqlab_worker.measure.collect import Measurement, collect, read_records
from wqlab_worker.measure.parsers.histogram import read_histogram
from wqlab_worker.measure.parsers.work_latency import operations

from .test_recorded import RECORDED, device, plan

TINY = device(2, 1)
FAULTS = ("loses_wakeups", "lost_wakeups", "works_lost", "rule_violations")


def recorded(kind: str) -> str:
    return (RECORDED / f"work-latency-2cpu-{kind}.txt").read_text()


PERCPU = recorded("percpu")


def measure(text: str, setting: str = "") -> Measurement:
    return collect(text, "work_latency", plan("work-latency"), TINY, False, setting=setting)


def with_counts(text: str, **counts: int) -> str:
    """The recorded output with other counts of the module."""
    for name, value in counts.items():
        text, times = re.subn(rf"^{name} \d+$", f"{name} {value}", text, flags=re.MULTILINE)
        assert times == 1
    return text


def lacking(found: Measurement) -> dict[str, str]:
    assert {reason.cause for _, reason in found.unsupported} == {NotMeasuredCause.LACKING}
    return {str(metric): str(reason) for metric, reason in found.unsupported if metric != "beside_long_share"}


def test_works_of_a_good_kernel_are_read() -> None:
    found = measure(PERCPU)
    assert found.failure is None
    assert {name: found.values[name] for name in FAULTS} == dict.fromkeys(FAULTS, 0)
    assert (found.values["works_executed"], found.values["workers"]) == (100, 2)
    assert found.values["wakeups_per_work"] == 1.03
    assert {found.values[f"local_{level}_share"] for level in ("cpu", "core", "l3", "node")} == {100}
    assert found.command is not None and "kind=percpu works=100 cpu=all" in found.command


def test_percentiles_are_those_of_the_histogram() -> None:
    found = measure(PERCPU)
    waits = sorted(read_histogram(read_records(PERCPU), "queue_to_start_ns").elements())
    assert len(waits) == 100
    assert found.values["queue_to_start_p50_us"] == waits[49] / 1000
    assert found.values["queue_to_start_p99_us"] == waits[98] / 1000 == 197.632
    assert found.values["queue_to_start_max_us"] == 282.009, "exact, not a bucket"
    assert lacking(found) == {"queue_to_start_p999_us": "p999 needs 1000 works, and there were 100"}


@pytest.mark.parametrize(("longest", "tail"), [(278_528, 278.528), (282_623, 280.576)])
def test_longest_wait_may_be_anywhere_in_the_last_bucket(longest: int, tail: float) -> None:
    """With 100 works at 280,576 ns, the middle of their bucket."""
    text = re.sub(r"(begin\thistogram queue_to_start_ns\n).*?(end\t)", r"\g<1>280576 100\n\2", PERCPU, flags=re.DOTALL)
    found = measure(with_counts(text, queue_to_start_max_ns=longest)).values
    assert found["queue_to_start_max_us"] == longest / 1000
    assert found["queue_to_start_p50_us"] == found["queue_to_start_p99_us"] == tail


def test_works_that_start_beside_a_long_one_are_counted_where_there_is_one() -> None:
    reason = ("beside_long_share", "counted in scenario behind-long only")
    assert reason in [(metric, str(text)) for metric, text in measure(PERCPU).unsupported]
    found = measure(with_counts(PERCPU, burn_us=40000, beside_long=75))
    assert found.values["beside_long_share"] == 75
    more = measure(with_counts(PERCPU, burn_us=40000, beside_long=101))
    assert more.failure is not None and more.failure.summary == "not measured: works beside a long one: 101 of 100"


def test_rescuer_executes_works_under_memory_pressure() -> None:
    found = measure(recorded("rescuer"))
    assert (found.values["rescued_share"], found.values["works_executed"]) == (100, 5)
    assert {name: found.values[name] for name in FAULTS} == dict.fromkeys(FAULTS, 0)
    assert lacking(found).keys() == {"queue_to_start_p99_us", "queue_to_start_p999_us", "start_to_end_p99_us"}


def test_softirqs_wake_no_worker() -> None:
    found = measure(recorded("bh")).values
    assert (found["wakeups_per_work"], found["workers"], found["local_cpu_share"]) == (0, 0, 100)


def test_unbound_works_may_start_on_another_cpu() -> None:
    """30 of CPU 0 started there, 14 of CPU 1 on CPU 0 and 16 on CPU 1; both CPUs have one L3."""
    found = measure(recorded("unbound-loaded")).values
    assert found["local_cpu_share"] == pytest.approx(100 * (30 + 16) / 60)
    assert (found["local_l3_share"], found["local_l3_by_chance"]) == (100, 100)


def test_planted_lost_wakeups_are_found() -> None:
    """Every 50th of 400 works waited for a worker that slept on, and the next work woke it."""
    found = measure(recorded("highpri-lost")).values
    assert [found[name] for name in FAULTS] == [1, 8, 0, 0]
    assert (found["works_executed"], found["works_late"]) == (400, 8)


@pytest.mark.parametrize(
    ("counts", "metric", "value"),
    [
        ({"misplaced": 3}, "rule_violations", 3),
        ({"misplaced": 1, "early": 2, "wrong_context": 4}, "rule_violations", 7),
        ({"queued": 103, "lost": 3}, "works_lost", 3),
        ({"lost_wakeups": 3}, "lost_wakeups", 3),
        ({"lost_wakeups": 3}, "loses_wakeups", 1),
        ({"late": 4}, "works_late", 4),
        ({"wakeups": 250}, "wakeups_per_work", 2.5),
    ],
)
def test_broken_workqueue_gives_other_counts(counts: dict[str, int], metric: str, value: float) -> None:
    assert measure(with_counts(PERCPU, **counts)).values[metric] == value


def test_kernel_that_loses_every_work_is_measured() -> None:
    found = measure(with_counts(PERCPU, queued=3, executed=0, lost=3, lost_wakeups=3))
    assert found.failure is None
    assert [found.values[name] for name in FAULTS] == [1, 3, 3, 0]
    assert {str(reason) for _, reason in found.unsupported} == {"no work was executed"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PERCPU.replace("early 0\n", ""), "the module's result lacks 'early'"),
        (PERCPU.replace("late 0\n", "late -1\n", 1), "the module's result is unreadable"),
        (with_counts(PERCPU, executed=99), "99 executed and 0 lost works are not the 100 queued ones"),
        (with_counts(PERCPU, executed=99, queued=99), "pairs has 100 works instead of 99"),
        (
            re.sub(r"^1 1 50 ", "1 1 49 ", with_counts(PERCPU, executed=99, queued=99), flags=re.MULTILINE),
            "histogram queue_to_start_ns has 100 counts instead of 99",
        ),
        (re.sub(r"^1 1 ", "1 9 ", PERCPU, flags=re.MULTILINE), "CPU 9 is not one of the 2 CPUs"),
        (PERCPU.replace("end\tlatency", "end\tlatenzy"), "no complete `latency`"),
        (with_counts(PERCPU, rescued=700), "works of a rescuer: 700 of 100"),
        (
            with_counts(PERCPU, queue_to_start_max_ns=1),
            "the last bucket of histogram queue_to_start_ns is at 280576 ns, and the maximum is 1 ns",
        ),
        # The bucket has 278,528 to 282,623 ns.
        (with_counts(PERCPU, queue_to_start_max_ns=278_527), "at 280576 ns, and the maximum is 278527 ns"),
        (with_counts(PERCPU, queue_to_start_max_ns=282_624), "at 280576 ns, and the maximum is 282624 ns"),
        (with_counts(PERCPU, start_to_end_max_ns=9_000_000), "at 505856 ns, and the maximum is 9000000 ns"),
    ],
)
def test_inconsistent_result_is_not_measured(text: str, reason: str) -> None:
    found = measure(text)
    assert found.values == {}
    assert found.failure is not None
    assert reason in found.failure.summary


def test_idle_states_that_were_not_used_are_unsupported() -> None:
    """The recorded device left its idle states alone."""
    [(metric, reason)] = measure(PERCPU, setting="cstate=deep").unsupported
    assert (metric, reason.cause) == (None, NotMeasuredCause.SETTING_NOT_USED)


def test_works_are_the_operations_of_instrumented_devices() -> None:
    [(name, made)] = operations(read_records(PERCPU)).items()
    assert (name, made.number, made.unit) == ("works_executed", 100, "work item")
