"""Parsers of plans isolation and hotplug, with recorded output and that of broken kernels.

Recorded on an emulated device with two CPUs whose clock counts instructions, Linux 6.12.117.
"""

from __future__ import annotations

import re

import pytest

from wqlab_worker.measure.collect import Measurement, collect

from .test_recorded import RECORDED, device, plan

TINY = device(2, 1)
ISOLATION = (RECORDED / "isolation-2cpu-cpumask.txt").read_text()
HOTPLUG = (RECORDED / "hotplug-2cpu.txt").read_text()


def measured(name: str, text: str) -> Measurement:
    return collect(text, name, plan(name), TINY, True)


def changed(text: str, pattern: str, by: str) -> str:
    """The output with one place changed."""
    found, times = re.subn(pattern, by, text, count=1, flags=re.MULTILINE)
    assert times == 1
    return found


# --- isolation --------------------------------------------------------------------------------------------------------


def test_live_changes_are_read() -> None:
    found = measured("isolation", ISOLATION)
    assert (found.failure, found.unsupported) == (None, [])
    assert found.values == {
        "works_on_isolated": 0,
        "works_while_isolated": 1139,
        "works_before": 359,
        "late_works": 0,
        "percpu_works": 6,
        "changes": 4,
        "hold_mean_us": 0,
        "hold_max_us": 0,
        "write_mean_us": 3273.5,
        "preemptions": 219,
        "interrupts": 470,
        "ticks": 406,
    }
    assert found.facts["isolated CPUs cpumask"] == "1 of 0-1, works queued from 0"
    assert found.command is not None and found.command.startswith(
        "fio --name=load --filename=/dev/mapper/wqlab-isolation"
    )


def test_partition_has_the_same_figures() -> None:
    found = measured("isolation", (RECORDED / "isolation-2cpu-cpuset.txt").read_text())
    assert (found.failure, found.unsupported) == (None, [])
    assert found.values["works_on_isolated"] == 0 < found.values["works_while_isolated"]
    assert (found.values["late_works"], found.values["hold_max_us"]) == (1, 766)
    assert found.facts["preempted by cpuset"] == "ksoftirqd/1 1; kworker/1:1 2; migration/1 1"


def test_works_on_an_isolated_cpu_are_counted_and_named() -> None:
    """From a kernel whose code was changed in memory to that of tests/series/ignores-isolation.mbox."""
    found = measured("isolation", (RECORDED / "isolation-2cpu-ignored.txt").read_text())
    assert (found.failure, found.unsupported) == (None, [])
    assert (found.values["works_on_isolated"], found.values["works_while_isolated"]) == (494, 1082)
    assert found.facts["works on isolated CPUs cpumask"] == "kcryptd-253:0-1 (kcryptd_crypt) on CPU 1"


def test_cpus_isolated_since_boot_have_no_times_of_changes() -> None:
    text = re.sub(r"^begin\tchanges\n.*?^end", "begin\tchanges\nend", ISOLATION, flags=re.MULTILINE | re.DOTALL)
    found = measured("isolation", text)
    assert {metric for metric, _ in found.unsupported} == {
        "works_before", "hold_mean_us", "hold_max_us", "write_mean_us",
    }  # fmt: skip
    assert {str(reason) for _, reason in found.unsupported} == {
        "the CPUs are isolated since boot, and nothing changes live"
    }
    assert (found.values["works_on_isolated"], found.values["changes"]) == (0, 0)


def test_isolation_without_works_is_not_measured() -> None:
    """Never 0 works on isolated CPUs if none ran at all."""
    found = measured(
        "isolation", changed(ISOLATION, r"^value\tworks_while_isolated\t\d+", "value\tworks_while_isolated\t0")
    )
    assert found.values == {}
    assert "none could break the isolation" in dict(found.unsupported)["works_on_isolated"]


def test_lost_events_of_the_trace_void_the_counts() -> None:
    found = measured("isolation", f"{ISOLATION}overrun\t7\n")
    assert found.values == {}
    assert "lost 7 events" in dict(found.unsupported)["works_on_isolated"]


def test_unreadable_change_is_not_measured() -> None:
    found = measured("isolation", ISOLATION.replace("begin\tchanges\n", "begin\tchanges\n12 -3\n"))
    assert found.failure is not None and "a change is unreadable: '12 -3'" in found.failure.summary


# --- hotplug ----------------------------------------------------------------------------------------------------------


def test_loads_of_all_cycles_are_added() -> None:
    found = measured("hotplug", HOTPLUG)
    assert (found.failure, found.unsupported) == (None, [])
    assert found.values == {
        "works_lost": 0,
        "stayed_elsewhere": 0,
        "ran_twice_at_once": 0,
        "refusals": 0,
        "warnings": 0,
        "cycles": 20,
        "works_executed": 3 * 1680,
        "works_elsewhere": 379 + 358 + 374,
        "unbind_mean_us": pytest.approx(430.65),
        "unbind_max_us": 888,
        "rebind_mean_us": 378,
        "rebind_max_us": 421,
    }
    assert found.facts["CPUs switched off and on"] == "1 of 0-1"


def test_lost_works_are_counted_and_named() -> None:
    """From a kernel whose code was changed in memory to that of tests/series/loses-works-at-hotplug.mbox."""
    found = measured("hotplug", (RECORDED / "hotplug-2cpu-lost.txt").read_text())
    assert (found.failure, found.unsupported) == (None, [])
    assert (found.values["works_lost"], found.values["works_executed"], found.values["cycles"]) == (5, 1003, 6)
    assert found.facts["lost works"] == "load_work_fn queued on CPU 1 and never started"


@pytest.mark.parametrize(
    ("frame", "line", "by", "metric", "value"),
    [
        ("loads", r"refused 0", "refused 2", "works_lost", 2),
        ("after", r"refused 0", "refused 3", "works_lost", 3),
        ("loads", r"reentered 0", "reentered 1", "ran_twice_at_once", 1),
        ("after", r"misplaced 0", "misplaced 4", "stayed_elsewhere", 4),
    ],
)
def test_each_wrong_work_is_counted(frame: str, line: str, by: str, metric: str, value: int) -> None:
    text = changed(HOTPLUG, rf"(?s)(begin\t{frame}\n.*?){line}", rf"\g<1>{by}")
    assert measured("hotplug", text).values[metric] == value


@pytest.mark.parametrize(
    ("pattern", "by", "reason"),
    [
        (r"^value\tcycles\t\d+", "value\tcycles\t0", "no CPU was switched off and on"),
        (r"^begin\tloads\n", "begin\tloads\nburn S\n", "there is no result of a load"),
        (r"^unbind 1 \d+", "unbind 1", "a time is unreadable: 'unbind 1'"),
        (r"^executed \d+", "executed 99999", "executed 99999 of"),
    ],
)
def test_inconsistent_output_is_not_measured(pattern: str, by: str, reason: str) -> None:
    found = measured("hotplug", changed(HOTPLUG, pattern, by))
    assert found.values == {}
    assert found.failure is not None and reason in found.failure.summary


def test_cycles_whose_events_were_lost_have_no_times() -> None:
    found = measured("hotplug", re.sub(r"^(un|re)bind .*\n", "", HOTPLUG, flags=re.MULTILINE))
    assert {metric for metric, _ in found.unsupported} == {
        "unbind_mean_us", "unbind_max_us", "rebind_mean_us", "rebind_max_us",
    }  # fmt: skip
    assert found.values["works_lost"] == 0
