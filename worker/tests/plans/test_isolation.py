"""Plan isolation: the CPUs that it isolates, what makes a scenario unsupported, and the reduction on the device."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_worker.measure.collect import Records

from .scripts import AWKS, call, trace

NAME = "isolation"


def system(folder: Path, online: str, files: dict[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a script on a device with these CPUs and further files in sysfs and proc."""
    made = {
        "sys/devices/system/cpu/online": online,
        "proc/cmdline": "console=ttyS0 isolcpus=1",
        **{f"sys/{name}": text for name, text in (files or {}).items()},
    }
    for name, text in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return {"SYS": str(folder / "sys"), "PROC": str(folder / "proc")}


@pytest.mark.parametrize(
    ("online", "isolated", "chosen", "others", "mask"),
    [
        ("0-1", "half", "1", "0", "1"),
        ("0-3", "half", "2,3", "0,1", "3"),
        ("0-2", "half", "2", "0,1", "3"),
        ("0-3", "1-2", "1,2", "0,3", "9"),
        ("0,2,4-9", "half", "6,7,8,9", "0,2,4,5", "35"),
        ("0-67", "0-35", ",".join(map(str, range(36))), ",".join(map(str, range(36, 68))), "f,fffffff0,00000000"),
    ],
)
@pytest.mark.parametrize("awk", AWKS)
def test_cpus_are_divided_and_written_as_the_kernel_does(
    tmp_path: Path, awk: str, online: str, isolated: str, chosen: str, others: str, mask: str
) -> None:
    command = (
        f'AWK="{awk}"\nchosen=$(chosen_cpus)\nothers=$(without "$(online)" "$chosen")\nrecord fact chosen "$chosen"\n'
        'record fact others "$others"\nrecord fact mask "$(hex_mask "$others")"'
    )
    found = call(NAME, command, tmp_path, ISOLATED=isolated, **system(tmp_path, online))
    assert found.facts == {"chosen": chosen, "others": others, "mask": mask}


@pytest.mark.parametrize("awk", AWKS)
@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ("3", "c", 0),
        ("f", "4", 1),
        ("00f", "8", 1),
        ("f0,00000000", "0000000f,ffffffff", 0),
        ("1f,00000000", "10,00000000", 1),
    ],
)
def test_masks_with_a_cpu_in_common_overlap(tmp_path: Path, awk: str, one: str, other: str, common: int) -> None:
    command = f'AWK="{awk}"\nif overlap {one} {other}; then record value common 1; else record value common 0; fi'
    assert call(NAME, command, tmp_path).values["common"] == common


@pytest.mark.parametrize(
    ("means", "files", "reason"),
    [
        ("cpumask", {}, "has no cpumask of all unbound workqueues in sysfs"),
        ("cpuset", {}, "does not take isolated partitions from its workqueues (Linux 6.8 does)"),
        (
            "cpuset",
            {"devices/virtual/workqueue/cpumask_isolated": "0", "fs/cgroup/cgroup.controllers": "cpu memory"},
            "no cpuset controller in cgroup v2 (CONFIG_CPUSETS)",
        ),
        ("isolcpus", {"devices/system/cpu/isolated": ""}, "isolates no CPU: it lacks CONFIG_CPU_ISOLATION"),
        ("nohz_full", {"devices/system/cpu/nohz_full": "(null)"}, "add it to boot.kernel_arguments of a device type"),
        ("isolcpus", {"devices/system/cpu/isolated": "0-1"}, "of CPUs 0-1, 0,1 would be isolated and none left"),
    ],
)
def test_missing_means_are_unsupported_with_the_reason(
    tmp_path: Path, means: str, files: dict[str, str], reason: str
) -> None:
    found = call(NAME, "available || true", tmp_path, MEANS=means, ISOLATED="half", **system(tmp_path, "0-1", files))
    assert reason in dict(found.unsupported)["*"]
    assert found.failure is None


def test_cpus_isolated_since_boot_are_taken_from_the_kernel(tmp_path: Path) -> None:
    environment = system(tmp_path, "0-3", {"devices/system/cpu/isolated": "1,3"})
    found = call(
        NAME, 'available && record fact cpus "$isolated $housekeeping"', tmp_path, MEANS="isolcpus", **environment
    )
    assert (found.facts["cpus"], found.unsupported) == ("1,3 0,2", [])


def test_mask_that_the_kernel_does_not_use_is_unsupported(tmp_path: Path) -> None:
    environment = system(tmp_path, "0-3", {"devices/virtual/workqueue/cpumask": "f"})
    found = call(NAME, "masked=3 isolated=2,3\nobeyed || true", tmp_path, MEANS="cpumask", **environment)
    assert "has cpumask f for unbound workqueues, which includes some of CPUs 2,3" in dict(found.unsupported)["*"]


def test_partition_that_the_kernel_calls_invalid_is_unsupported(tmp_path: Path) -> None:
    said = "isolated invalid (Cpu list in cpuset.cpus not exclusive)"
    environment = system(tmp_path, "0-3", {"fs/cgroup/wqlab-isolation/cpuset.cpus.partition": said})
    found = call(NAME, "masked=3 isolated=2,3\nobeyed || true", tmp_path, MEANS="cpuset", **environment)
    assert said in dict(found.unsupported)["*"]


def reduced(tmp_path: Path, text: str, awk: str, booted: int = 0) -> Records:
    trace(tmp_path, text)
    command = f'AWK="{awk}"\nreduce_trace 2,3 {booted}'
    return call(NAME, command, tmp_path, SCENARIO="cpumask", GRACE_US="1000")


def queued(second: float, cpu: int, work: str, workqueue: str = "kcryptd-252:0-1", pool: int = -1) -> str:
    return (
        f"     fio-71      [{cpu:03}] ..... {second:.6f}: workqueue_queue_work: work struct=00000000{work} "
        f"function=kcryptd_crypt workqueue={workqueue} req_cpu=8192 cpu={pool}\n"
    )


def started(second: float, cpu: int, work: str, worker: str = "kworker/u16:1") -> str:
    return (
        f"   {worker}-35   [{cpu:03}] ..... {second:.6f}: workqueue_execute_start: work struct 00000000{work}: "
        "function kcryptd_crypt\n"
    )


def marked(second: float, text: str) -> str:
    return f"       sh-60      [000] ..... {second:.6f}: tracing_mark_write: wqlab {text}\n"


CHANGE = (
    queued(1.0, 0, "aaaa01") + started(1.1, 3, "aaaa01")  # before: may run anywhere
    + queued(1.2, 0, "aaaa02")
    + marked(2.0, "isolating") + marked(2.01, "isolated")
    + queued(2.0105, 0, "aaaa03")  # within the grace period
    + started(2.02, 2, "aaaa02") + started(2.03, 3, "aaaa03")  # both late
    + queued(2.1, 0, "aaaa04") + started(2.2, 1, "aaaa04")
    + queued(2.3, 0, "bbbb01", "mm_percpu_wq", pool=2) + started(2.4, 2, "bbbb01", "kworker/2:1")
)  # fmt: skip


@pytest.mark.parametrize("awk", AWKS)
def test_works_are_counted_by_when_they_were_queued(tmp_path: Path, awk: str) -> None:
    found = reduced(tmp_path, CHANGE + marked(3.0, "releasing") + marked(3.1, "released"), awk)
    assert found.values == {
        "works_on_isolated": 0,
        "works_while_isolated": 1,
        "works_before": 1,
        "late_works": 2,
        "percpu_works": 1,
    }
    assert found.frame("changes") == ["10000 20000"], "microseconds: of the write, and until the last late work"
    assert "works on isolated CPUs cpumask" not in found.facts


@pytest.mark.parametrize("awk", AWKS)
def test_work_on_an_isolated_cpu_is_counted_and_named(tmp_path: Path, awk: str) -> None:
    wrong = queued(2.5, 0, "aaaa05") + started(2.6, 2, "aaaa05") + queued(2.7, 1, "aaaa05") + started(2.8, 3, "aaaa05")
    found = reduced(tmp_path, CHANGE + wrong + marked(3.0, "releasing"), awk)
    assert found.values["works_on_isolated"] == 2
    assert found.values["works_while_isolated"] == 3
    assert found.facts["works on isolated CPUs cpumask"] == (
        "kcryptd-252:0-1 (kcryptd_crypt) on CPU 2; kcryptd-252:0-1 (kcryptd_crypt) on CPU 3"
    )


@pytest.mark.parametrize("awk", AWKS)
def test_work_that_is_queued_again_before_its_start_is_counted_twice(tmp_path: Path, awk: str) -> None:
    twice = queued(2.5, 0, "aaaa05") + queued(2.51, 1, "aaaa05")
    ran = started(2.6, 2, "aaaa05") + started(2.7, 3, "aaaa05")
    found = reduced(tmp_path, CHANGE + twice + ran + marked(3.0, "releasing"), awk)
    assert found.values["works_on_isolated"] == 2
    assert found.values["late_works"] == 2, "those of the change"


@pytest.mark.parametrize("awk", AWKS)
def test_boot_isolation_needs_no_change(tmp_path: Path, awk: str) -> None:
    found = reduced(tmp_path, queued(1.0, 0, "aaaa01") + started(1.1, 3, "aaaa01"), awk, booted=1)
    assert found.values["works_on_isolated"] == 1
    assert found.frame("changes") == []


def test_tasks_that_preempt_the_spinning_one_are_named(tmp_path: Path) -> None:
    switch = (
        "      sh-99      [002] d..2. 2.500000: sched_switch: prev_comm=sh prev_pid=99 prev_prio=120 prev_state=R "
        "==> next_comm=kworker/2:1 next_pid=31 next_prio=120\n"
    )
    found = reduced(tmp_path, CHANGE + switch * 2 + marked(3.0, "releasing"), AWKS[0])
    assert found.facts["preempted by cpumask"] == "kworker/2:1 2"


def test_interrupts_of_one_cpu_are_read(tmp_path: Path) -> None:
    environment = system(tmp_path, "0-3")
    table = (
        "           CPU0       CPU2       CPU3\n  4:   7   5   1  IO-APIC 4-edge ttyS0\nLOC: 100 200 300 Local timer\n"
    )
    (tmp_path / "proc/interrupts").write_text(table + "ERR:          0\n")
    assert call(NAME, 'record fact read "$(interrupts 2)"', tmp_path, **environment).facts["read"] == "205 200"
