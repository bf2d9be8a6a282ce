"""Plan xfs-fsync: its metrics, and the reduction of its trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_worker.measure.collect import Records
from wqlab_worker.measure.parsers.histogram import read_histogram

from .scripts import AWKS, call, plan, trace


def test_xfs_plan_is_complete_on_hardware() -> None:
    hardware = plan("xfs-fsync").hardware
    assert [hardware.parameters[name] for name in ("jobs", "mounts", "file_kib")] == [64, 4, 128 << 10]
    assert hardware.repetitions.untraced == 5


@pytest.mark.parametrize(
    ("memory_mib", "jobs", "file_kib", "expected", "scaled"),
    [
        (65536, 64, 131072, "64 jobs on 4 mounts, 131072 KiB each", False),
        (1800, 16, 320, "16 jobs on 4 mounts, 320 KiB each", False),
        (8192, 64, 131072, "64 jobs on 4 mounts, 30720 KiB each", True),
        (400, 16, 320, "16 jobs on 1 mounts, 320 KiB each", True),
        (140, 64, 512, "8 jobs on 1 mounts, 384 KiB each", True),
    ],
)
def test_workload_is_scaled_to_memory(
    tmp_path: Path, memory_mib: int, jobs: int, file_kib: int, expected: str, scaled: bool
) -> None:
    command = f"echo {memory_mib} >$WORK/memory_mib\nscale {file_kib}"
    found = call("xfs-fsync", command, tmp_path, MOUNTS="4", JOBS=str(jobs)).facts["scale"]
    assert found.startswith(expected)
    assert ("scaled to this device's memory" in found) == scaled


def graph(pid: int, cpu: int, start: float, lines: str, task: str = "fio") -> str:
    """Lines as the function_graph tracer prints them, a microsecond apart."""
    return "".join(
        f"  {start + number / 1e6:.6f} |  {cpu:2})    {task}-{pid}     | {line}\n"
        for number, line in enumerate(lines.strip().splitlines())
    )


LOCK = "_raw_spin_lock_irq();"
END = "} /* __flush_workqueue */"
RETURNS = f"__flush_workqueue() {{\n  mutex_lock();\n  {LOCK}\n  {LOCK}\n  _raw_spin_lock_irqsave();\n{END}"


def histogram(records: Records, name: str) -> dict[int, int]:
    return dict(read_histogram(records, name))


def counts(tmp_path: Path, *per_cpu: str) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    trace(tmp_path, "", dict(enumerate(per_cpu)))
    names = ("locks_until_wait_returned", "locks_until_wait_waited", "locks_whole_flush")
    by_awk = []
    for awk in AWKS:
        records = call("xfs-fsync", f"AWK='{awk}'\nreduce_trace", tmp_path)
        by_awk.append([histogram(records, name) for name in names])
    assert by_awk[0] == by_awk[1]
    returned, waited, whole = by_awk[0]
    return returned, waited, whole


def test_locks_of_a_flush_that_returns_at_once(tmp_path: Path) -> None:
    assert counts(tmp_path, "# tracer: function_graph\n" + graph(7, 0, 10.0, RETURNS)) == ({3: 1}, {}, {3: 1})


def test_helper_functions_and_variants_are_counted(tmp_path: Path) -> None:
    body = RETURNS.replace(LOCK, "take() {\n _raw_spin_lock();\n _raw_spin_trylock() {\n}\n_raw_write_lock_bh();\n}", 1)
    assert counts(tmp_path, graph(7, 0, 10.0, body))[2] == {5: 1}


def test_flush_that_continues_on_another_cpu_is_counted(tmp_path: Path) -> None:
    before = f"__flush_workqueue() {{\n  {LOCK}\n  {LOCK}\n  schedule() {{\n    _raw_spin_lock();"
    after = f"  }} /* schedule */\n  {LOCK}\n}} /* __flush_workqueue */"
    found = counts(tmp_path, graph(7, 0, 20.0, after) + graph(8, 0, 21.0, RETURNS), graph(7, 1, 10.0, before))
    assert found == ({3: 1}, {2: 1}, {4: 1, 3: 1})


def test_locks_of_softirqs_and_contended_mutexes_are_not_counted(tmp_path: Path) -> None:
    mutex = (
        "mutex_lock() {\n _raw_spin_lock();\n schedule() {\n _raw_spin_lock();\n } /* schedule */\n } /* mutex_lock */"
    )
    softirq = "handle_softirqs() {\n _raw_spin_lock();\n schedule();\n } /* handle_softirqs */"
    body = RETURNS.replace("mutex_lock();", f"{mutex}\n{softirq}")
    assert counts(tmp_path, graph(7, 0, 10.0, body)) == ({3: 1}, {}, {5: 1})


@pytest.mark.parametrize(
    ("mutex", "mutexes", "contended"),
    [
        ("mutex_lock();", 1, 0),
        ("mutex_lock() {\n __mutex_lock_slowpath();\n } /* mutex_lock */", 1, 1),
        ("mutex_lock() {\n __mutex_lock_slowpath() {\n _raw_spin_lock();\n }\n } /* mutex_lock */", 1, 1),
        (
            "mutex_lock() {\n handle_softirqs() {\n _raw_spin_lock();\n } /* handle_softirqs */\n } /* mutex_lock */",
            1,
            0,
        ),
        ("mutex_lock();\n mutex_unlock() {\n _raw_spin_lock();\n } /* mutex_unlock */\n mutex_lock();", 2, 0),
        ("", 0, 0),
    ],
)
def test_mutexes_of_a_flush_are_counted(tmp_path: Path, mutex: str, mutexes: int, contended: int) -> None:
    unfinished = "__flush_workqueue() {\n mutex_lock();"
    trace(tmp_path, "", {0: graph(7, 0, 10.0, RETURNS.replace("mutex_lock();", mutex)) + graph(8, 0, 12.0, unfinished)})
    for awk in AWKS:
        records = call("xfs-fsync", f"AWK='{awk}'\nreduce_trace", tmp_path)
        assert records.values == {"mutexes": mutexes, "mutexes_contended": contended}


def test_other_tasks_and_flushes_seen_in_part_are_left_out(tmp_path: Path) -> None:
    cut = f"{LOCK}\n{LOCK}\n}} /* __flush_workqueue */"
    unfinished = f"__flush_workqueue() {{\n {LOCK}"
    lines = graph(7, 0, 10.0, cut) + graph(9, 0, 11.0, RETURNS, task="kworker/u8:1") + graph(8, 0, 12.0, unfinished)
    assert counts(tmp_path, lines) == ({}, {}, {})


# Works as Linux 7.3 prints them. CPU 1 is idle from 10.0 on, CPU 0 from 10.0004 on. Unbound works do not run on CPU 2.
WORKS = """\
     <idle>-0       [000] d..2.    10.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=fio next_pid=7 next_prio=120
        fio-7       [000] d..3.    10.000100: workqueue_queue_work: work struct=00000000c1550001 function=xlog_cil_push_work workqueue=xfs-cil/ram0 req_cpu=8192 cpu=-1
        fio-7       [000] d..3.    10.000100: workqueue_activate_work: work struct 00000000c1550001
        fio-7       [000] d..3.    10.000200: workqueue_queue_work: work struct=00000000c1550002 function=xlog_ioend_work workqueue=xfs-log/ram0 req_cpu=0 cpu=0
        fio-7       [000] d..3.    10.000200: workqueue_activate_work: work struct 00000000c1550002
        fio-7       [000] d..2.    10.000400: sched_switch: prev_comm=fio prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
    kworker/u8:3-77 [001] .....    10.000500: workqueue_execute_start: work struct 00000000c1550001: function xlog_cil_push_work
    kworker/0:1H-19 [000] .....    10.000900: workqueue_execute_start: work struct 00000000c1550002: function xlog_ioend_work
"""  # noqa: E501 - as the kernel prints them


@pytest.mark.parametrize("queued_on", ["cpu=-1", "cpu=4294967295"], ids=["signed", "unsigned"])
def test_idle_time_is_that_of_unbound_works(tmp_path: Path, queued_on: str) -> None:
    tracing, sys = tmp_path / "tracing", tmp_path / "sys/devices"
    trace(tmp_path, "", {0: graph(7, 0, 10.0, RETURNS)})
    works = tracing / "instances/wqlab-works"
    for folder in (works / "per_cpu/cpu0", sys / "virtual/workqueue", sys / "system/cpu"):
        folder.mkdir(parents=True)
    (works / "trace").write_text(WORKS.replace("cpu=-1", queued_on))
    (works / "per_cpu/cpu0/stats").write_text("overrun: 0\ndropped events: 2\n")
    (sys / "virtual/workqueue/cpumask").write_text("3\n")
    (sys / "system/cpu/online").write_text("0-2\n")
    for awk in AWKS:
        found = call("xfs-fsync", f"AWK='{awk}'\nIDLE=1\nrmdir() {{ :; }}\nreduce_trace", tmp_path, SYS=str(sys.parent))
        # CPU 1 for 400 us and CPU 0 for 100 us.
        assert (found.values["idle_while_work_waits_us"], found.overrun) == (500, 2)


def test_locks_are_traced_if_idle_time_is_unsupported(tmp_path: Path) -> None:
    found = call("xfs-fsync", "mkdir -p $TRACING\nworks_start\nrecord fact idle ${IDLE:-0}", tmp_path, TRACE_KIB="64")
    assert found.facts == {"idle": "0"}
    assert [metric for metric, _ in found.unsupported] == ["idle_while_work_waits_us"]


# --- netperf-stream ---------------------------------------------------------------------------------------------------
