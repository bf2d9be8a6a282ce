"""Traced boots: tracer.sh on the device, and its output parsed into a boot's table."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_contracts import traced_counts
from wqlab_contracts.enums import ArtifactKind, RunPurpose
from wqlab_contracts.messages import BootKey, MeasuredTopology, Samples
from wqlab_contracts.traced_counts import Row, TracedTopic
from wqlab_worker.backends.cancellation import Stop
from wqlab_worker.measure import monitor, tracer
from wqlab_worker.measure.collect import NotMeasured, Operations
from wqlab_worker.measure.measuring_loop import measure

from .scripted import RecordingSink, ScriptedDevice, answer, job

COMMON = Path(__file__).parents[3] / "testplans/common"
TOPOLOGY = MeasuredTopology(cpus=4, core=[0, 0, 1, 2], l3=[0, 0, 0, 1], node=[0, 0, 0, 1], package=[0, 0, 0, 1])
LINES = [
    "queued\txfs_end_io\t300\t90000\t4:100,10:199,11:1",
    "placed\txfs_end_io\t0\t0:100,1:50,2:20",
    "placed\txfs_end_io\t2\t3:130",
    "contended\t32\t7\t70\t3:7",
    "migrated\t0>1\t5\t0\t0:5",
    "migrated\t1>2\t6\t0\t0:6",
    "migrated\t2>3\t7\t0\t0:7",
    "migrated_task\tkworker\t18\t0\t",
    "switched\t\t1234\t0\t",
    "note\ta histogram was full: 3 events are not counted",
]


def rows(lines: list[str]) -> list[Row]:
    return list(tracer.parse_rows(lines, "fsync", "", TOPOLOGY))


def test_counts_become_rows_and_a_table_that_reads_back() -> None:
    found = {(row.topic.value, row.name): (row.count, row.total_us, row.p99_us) for row in rows(LINES)}
    assert found == {
        ("queued", "xfs_end_io"): (300, 90000, 1024),
        ("contended", "mutex"): (7, 70, 8),
        ("migrated", "between threads of a core"): (5, None, None),
        ("migrated", "between cores of an L3 domain"): (6, None, None),
        ("migrated", "between NUMA nodes"): (7, None, None),
        ("migrated_task", "kworker"): (18, None, None),
        ("switched", ""): (1234, None, None),
        ("note", "a histogram was full: 3 events are not counted"): (0, None, None),
    }
    assert list(traced_counts.read(traced_counts.write(rows(LINES)))) == rows(LINES)


def test_starts_are_added_up_by_their_distance_from_the_queueing_cpu() -> None:
    (queued,) = (row for row in rows(LINES) if row.topic is TracedTopic.QUEUED)
    assert (queued.on_cpu, queued.on_l3, queued.on_node, queued.off_node) == (100, 70, 0, 130)
    assert queued.buckets == "4:100,10:199,11:1"
    (uncounted,) = rows(["queued\txfs_end_io\t1\t0\t0:1"])
    assert (uncounted.on_cpu, uncounted.off_node) == (None, None)
    two_l3 = MeasuredTopology(cpus=2, core=[0, 1], l3=[0, 1], node=[0, 0], package=[0, 0])
    lines = ["queued\tf\t9\t0\t0:9", "placed\tf\t0\t0:2,1:7"]
    (elsewhere,) = tracer.parse_rows(lines, "fsync", "", two_l3)
    assert (elsewhere.on_cpu, elsewhere.on_l3, elsewhere.on_node, elsewhere.off_node) == (2, 0, 7, 0)


@pytest.mark.parametrize(
    "line",
    [
        "queued\ta\t-1\t0\t0:1",
        "queued\ta\t1\t0\t",
        "queued\ta\t1\t0\t99:1",
        "migrated\t0>9\t1\t0\t",
        "placed\ta\t0\t9:1",
        "placed\ta\t0\t0",
        "queued\ta\t1\t0\t0:1,x",
        "other\ta\t1\t0\t",
    ],
)
def test_unreadable_lines_are_left_out_and_counted(line: str) -> None:
    assert [(row.topic, row.name) for row in rows([line])] == [
        (TracedTopic.NOTE, f"1 unreadable lines are left out, such as {line[:40]!r}")
    ]


@given(st.lists(st.text(), max_size=8), st.text())
def test_arbitrary_device_output_does_not_raise(lines: list[str], stdout: str) -> None:
    found = rows([*LINES, *lines])
    assert len(list(traced_counts.read(traced_counts.write(found)))) == len(found)
    assert tracer.split_output(stdout)[0] in stdout


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", traced_counts.write([]) + "fsync,,other,a,1,,\n"])
def test_file_that_is_not_a_table_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a table of traced counts"):
        list(traced_counts.read(text))


def test_operations_or_why_there_are_none() -> None:
    assert tracer.operations_row(Operations(40, "fsync"), "fsync", "").count == 40
    missing = tracer.operations_row(NotMeasured("fio completed no fsync"), "fsync", "")
    assert (missing.topic, missing.name) == (
        TracedTopic.NOTE,
        "counts are not divided by operations: fio completed no fsync",
    )


# --- in the measuring loop --------------------------------------------------------------------------------------------


def traced(_key: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
    if action != "measure":
        return None
    assert environment["TRACE"] == "0"
    return answer(environment) + "\nbegin\ttraced\n" + "\n".join(LINES[:2]) + "\nend\ttraced\n"


def test_a_traced_boot_has_one_repetition_a_cell_and_no_samples() -> None:
    work = job(blocks=1, purpose=RunPurpose.TRACE)
    device, sink = ScriptedDevice(on_script=traced), RecordingSink()
    result = measure(work, work.blocks, device, sink, Stop(), clock=device.clock)
    assert result.failure is None
    assert device.monitored == [False, *[True] * 4] * 2, "the first call of a boot warms it"
    assert not [event for event in sink.events if isinstance(event, Samples) and event.samples]
    tables = [data.decode() for kind, _, data in sink.artifacts if kind is ArtifactKind.TRACED_COUNTS]
    assert len(tables) == 2
    for table in tables:
        cells = {(row.scenario, row.setting) for row in traced_counts.read(table)}
        assert len(cells) == 4


def test_a_kernel_that_cannot_be_traced_leaves_a_note() -> None:
    work = job(blocks=1, purpose=RunPurpose.TRACE)
    device = ScriptedDevice(on_script=lambda _, action, env: answer(env) if action == "measure" else None)
    sink = RecordingSink()
    assert measure(work, work.blocks, device, sink, Stop(), clock=device.clock).failure is None
    table = next(data.decode() for kind, _, data in sink.artifacts if kind is ArtifactKind.TRACED_COUNTS)
    assert "nothing is counted: the tracer printed nothing" in {row.name for row in traced_counts.read(table)}


# --- the script on the device -----------------------------------------------------------------------------------------

HISTOGRAMS = {
    "synthetic/wqlab_queued": """\
# event histogram
{ function: [ffffffff81234567] xfs_end_io           , us: ~ 2^4  } hitcount:        100  us:       1500
{ function: [ffffffff81234567] xfs_end_io           , us: ~ 2^10 } hitcount:         20  us:      18000
{ function: [ffffffffc0000000] flush [null_blk]     , us: ~ 2^0  } hitcount:          3  us:          2
{ function: [ffffffff81234567] xfs_end_io            , us: ~ 2^0  } hitcount:          1  us: 18446744073709551609

Totals:
    Hits: 123
    Entries: 3
    Dropped: 4
# event histogram
# trigger info: hist:keys=function.sym,from,to:vals=hitcount:sort=hitcount:size=2048 [active]
{ function: [ffffffff81234567] xfs_end_io            , from:          0, to:          3 } hitcount:         21
{ function: [ffffffff81234567] xfs_end_io            , from:          2, to:          2 } hitcount:        100
Totals:
    Dropped: 0
""",
    "synthetic/wqlab_executed": "",
    "synthetic/wqlab_locked": """\
{ kind:         32, us: ~ 2^5  } hitcount:          9  us:        250
    Dropped: 0
""",
    "lock/contention_begin": """\
{ common_pid:         12 } hitcount:          9
    Dropped: 0
{ common_stacktrace:
         __traceiter_contention_begin+0x47/0x60
         __mutex_lock.constprop.0+0x4d1/0x860
         __flush_workqueue+0x8a/0x5c0
         xlog_cil_push_now.isra.0+0x53/0x80
} hitcount:          7
{ common_stacktrace:
         native_queued_spin_lock_slowpath+0x1e1/0x2e0
         _raw_spin_lock_irqsave+0x44/0x50
         readahead_expand+0x8a/0x5c0
} hitcount:          2
    Dropped: 0
""",
    "sched/sched_migrate_task": """\
{ orig_cpu:          0, dest_cpu:          3 } hitcount:          5
    Dropped: 0
{ comm: kworker/u8:2    } hitcount:          2
{ comm: kworker/1:1     } hitcount:          3
{ comm: fio             } hitcount:          4
    Dropped: 0
""",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folders of a device: the plan's script, and a fake tracefs whose histograms have content from the start."""
    (tmp_path / "plan").mkdir()
    for name in ("tracer.sh", "histograms.sh", "monitor.sh"):
        shutil.copy(COMMON / name, tmp_path / "plan")
    (tmp_path / "plan/plan.sh").write_text("printf 'fact\\taction\\t%s\\n' \"$1\"; exit 3\n")
    events = tmp_path / "tracing/instances/wqlab-traced/events"
    (tmp_path / "tracing").mkdir()
    (tmp_path / "tracing/tracing_on").write_text("1\n")
    (tmp_path / "tracing/synthetic_events").write_text("")
    (tmp_path / "tracing/events/workqueue/workqueue_execute_start").mkdir(parents=True)
    names = [*HISTOGRAMS, *(f"workqueue/workqueue_{each}" for each in ("queue_work", "execute_start", "execute_end"))]
    for name in [*names, "lock/contention_end"]:
        (events / name).mkdir(parents=True)
        (events / name / "trigger").write_text("")
        (events / name / "hist").write_text(HISTOGRAMS.get(name, ""))
    return tmp_path


def run(folder: Path, observer: str = "tracer.sh", **more: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": "/usr/bin:/bin",
        "WORK": str(folder / "work"),
        "TRACING": str(folder / "tracing"),
        **more,
    }
    command = ["dash", str(folder / "plan" / observer), str(folder / "plan/plan.sh"), "measure"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_histograms_become_counts(folder: Path) -> None:
    done = run(folder)
    assert done.returncode == 3
    output, lines = tracer.split_output(done.stdout)
    assert output == "fact\taction\tmeasure\n"
    assert lines is not None
    found = {(row.topic.value, row.name): (row.count, row.total_us, row.p99_us) for row in rows(lines)}
    assert found.pop(("switched", ""))[0] > 0
    assert found == {
        ("queued", "xfs_end_io"): (121, 19500, 1024),
        ("queued", "flush"): (3, 2, 1),
        ("note", "a histogram was full: 4 events are not counted"): (0, None, None),
        ("contended", "mutex"): (9, 250, 32),
        ("contended_at", "__flush_workqueue"): (7, None, None),
        ("contended_at", "readahead_expand"): (2, None, None),
        ("migrated", "between NUMA nodes"): (5, None, None),
        ("migrated_task", "kworker"): (5, None, None),
        ("migrated_task", "fio"): (4, None, None),
    }


def test_each_repetition_removes_its_triggers_the_last_one_first(folder: Path) -> None:
    run(folder)
    run(folder)
    callers = "hist:keys=stacktrace:size=2048"
    times, *rest = triggers(folder, "lock/contention_begin", "wqlab-traced")
    assert rest == [callers, f"!{callers}", f"!{times}", times, callers, f"!{callers}", f"!{times}"]
    assert (folder / "tracing/synthetic_events").read_text().count("wqlab_locked") == 1


def test_a_kernel_without_histograms_runs_the_script_and_says_why(folder: Path) -> None:
    (folder / "tracing/instances/wqlab-traced/events/sched/sched_migrate_task/hist").unlink()
    done = run(folder)
    _, lines = tracer.split_output(done.stdout)
    assert done.returncode == 3
    assert [row.name for row in rows(lines or [])] == [
        "nothing is counted: this kernel has no histograms of trace events (CONFIG_HIST_TRIGGERS)"
    ]


def test_a_kernel_without_an_event_counts_the_others(folder: Path) -> None:
    (folder / "tracing/instances/wqlab-traced/events/lock/contention_end/trigger").unlink()
    _, lines = tracer.split_output(run(folder).stdout)
    notes = [row.name for row in rows(lines or []) if row.topic is TracedTopic.NOTE]
    assert "waits for locks are not counted by kind: this kernel has no such event" in notes
    assert any(row.topic is TracedTopic.MIGRATED for row in rows(lines or []))


def test_calls_of_changed_functions_are_counted_and_those_that_cannot_be_probed_are_missing(folder: Path) -> None:
    ran = folder / "tracing/instances/wqlab-traced/events/wqlab/ran"
    ran.mkdir(parents=True)
    (ran / "trigger").write_text("")
    (ran / "hist").write_text("# trigger info: hist:keys=__probe_ip.sym\n"
        "{ __probe_ip: [ffffffff810b1230] insert_work.isra.0                 } hitcount:         12\n")  # fmt: skip
    (folder / "kallsyms").write_text(
        "ffffffff810b1230 t insert_work.isra.0\nffffffff810b1000 t insert_work.isra.0.cold\n"
        "ffffffff810b2000 T flush_work\nffffffff82000000 d try_to_grab\n"
    )
    more = {"CHANGED_FUNCTIONS": "insert_work flush_work try_to_grab", "KALLSYMS": str(folder / "kallsyms")}
    for _ in range(2):  # of two repetitions, each says what it counted
        _, lines = tracer.split_output(run(folder, **more).stdout)
        called = {row.name: row.count for row in rows(lines or []) if row.topic is TracedTopic.CALLED}
        assert called == {"insert_work": 12, "flush_work": 0}
    (ran / "hist").write_text("# trigger info: hist:keys=__probe_ip.sym\n")  # no call of any
    _, lines = tracer.split_output(run(folder, **more).stdout)
    called = {row.name: row.count for row in rows(lines or []) if row.topic is TracedTopic.CALLED}
    assert called == {"insert_work": 0, "flush_work": 0}
    assert "p:wqlab/ran insert_work.isra.0\n" in (folder / "tracing/kprobe_events").read_text()


# --- the same histograms in a traced repetition of a measured boot ----------------------------------------------------


@pytest.fixture
def measured(folder: Path) -> Path:
    """Return a device whose tracefs has the instance that the monitor uses."""
    shutil.move(folder / "tracing/instances/wqlab-traced", folder / "tracing/instances/wqlab-waits")
    return folder


def waits(folder: Path, **environment: str) -> list[str] | None:
    """Return the lines about waits that the monitor prints before its series."""
    done = run(folder, "monitor.sh", **environment)
    assert done.returncode == 3
    output, series = monitor.split_output(done.stdout)
    assert series is not None
    output, lines = tracer.split_output(output)
    assert output == "fact\taction\tmeasure\n"
    return lines


def triggers(folder: Path, event: str, instance: str = "wqlab-waits") -> list[str]:
    return (folder / "tracing/instances" / instance / "events" / event / "trigger").read_text().splitlines()


def test_traced_repetition_counts_waits_and_places_and_removes_its_triggers(measured: Path) -> None:
    found = rows(waits(measured, TRACE="1") or [])
    assert [(row.name, row.count, row.buckets) for row in found if row.name == "xfs_end_io"] == [
        ("xfs_end_io", 121, "4:100,10:20,0:1")
    ]
    (placed,) = (row for row in found if row.on_cpu is not None)
    assert (placed.name, placed.on_cpu, placed.off_node) == ("xfs_end_io", 100, 21)
    assert {row.topic for row in found} == {TracedTopic.QUEUED, TracedTopic.NOTE}
    for event in ("workqueue/workqueue_queue_work", "workqueue/workqueue_execute_start", "synthetic/wqlab_queued"):
        set_up, removed = triggers(measured, event)[::2], triggers(measured, event)[1::2]
        if event.startswith("synthetic/"):
            [*set_up], removed = triggers(measured, event)[:2], triggers(measured, event)[2:][::-1]
        assert set_up and removed == [f"!{text}" for text in set_up]


def test_warm_up_is_not_traced(measured: Path) -> None:
    assert waits(measured, TRACE="0") is None
    assert triggers(measured, "workqueue/workqueue_queue_work") == []


def test_both_scripts_count_waits_by_the_same_triggers(measured: Path, tmp_path: Path) -> None:
    waits(measured, TRACE="1")
    of_monitor = triggers(measured, "workqueue/workqueue_execute_start")[0]
    shutil.copytree(measured / "tracing/instances/wqlab-waits", measured / "tracing/instances/wqlab-traced")
    event = measured / "tracing/instances/wqlab-traced/events/workqueue/workqueue_execute_start/trigger"
    event.write_text("")
    run(measured)
    assert event.read_text().splitlines()[0] == of_monitor.replace("size=8192", "size=32768")


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        ("synthetic_events", "this kernel has no histograms of trace events (CONFIG_HIST_TRIGGERS)"),
        (
            "instances/wqlab-waits/events/workqueue/workqueue_execute_start/hist",
            "this kernel has no histograms of trace events (CONFIG_HIST_TRIGGERS)",
        ),
        ("events/workqueue", "this kernel has no event workqueue_execute_start"),
        ("instances/wqlab-waits/events/workqueue/workqueue_queue_work/trigger", "this kernel has no such event"),
    ],
)
def test_kernel_without_the_histograms_runs_the_script_and_says_why(measured: Path, missing: str, reason: str) -> None:
    path = measured / "tracing" / missing
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    assert waits(measured, TRACE="1") == [
        f"note\tthe times from queueing to start of work items are not counted: {reason}"
    ]


def test_boot_keeps_the_waits_of_its_traced_repetitions() -> None:
    def counted(_key: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
        if action != "measure":
            return None
        frame = "\nbegin\ttraced\n" + LINES[0] + "\nend\ttraced\n" if environment["TRACE"] == "1" else ""
        return answer(environment) + frame + "\nbegin\tworkqueues\nsource\tstats\nend\tworkqueues\n"

    work = job(blocks=1)
    files = {**work.files, monitor.SCRIPT: "exit 0\n", tracer.HISTOGRAMS: ""}
    work = work.model_copy(update={"files": files})
    device, sink = ScriptedDevice(on_script=counted), RecordingSink()
    assert measure(work, work.blocks, device, sink, Stop(), clock=device.clock).failure is None
    tables = [data.decode() for kind, _, data in sink.artifacts if kind is ArtifactKind.TRACED_COUNTS]
    assert len(tables) == 2, "one of each boot"
    for table in tables:
        found = list(traced_counts.read(table))
        assert {(row.topic, row.name, row.count, row.repetition) for row in found} == {
            (TracedTopic.QUEUED, "xfs_end_io", 300, 3)
        }
        assert len(found) == 4, "one of each scenario and setting"
    assert any(isinstance(event, Samples) and event.samples for event in sink.events)
