"""Workqueue series: monitor.sh on the device, and its output parsed into a boot's table."""

from __future__ import annotations

import os
import stat
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_contracts import workqueue_series
from wqlab_contracts.enums import Arm, ArtifactKind, RunPurpose
from wqlab_contracts.messages import BootKey
from wqlab_worker.backends.cancellation import Stop
from wqlab_worker.measure import monitor
from wqlab_worker.measure.collect import read_records
from wqlab_worker.measure.measuring_loop import measure

from .scripted import RecordingSink, ScriptedDevice, answer, job

SCRIPT = Path(__file__).parents[3] / "testplans/common/monitor.sh"
SERIES = [
    "source\tstats",
    "columns\tstarted\tcompleted\trepatriated\tin_flight",
    "1.000\tevents\t5\t4\t-\t1",
    "2.000\tevents\t9\t9\t-\t0",
]


def table(series: list[str]) -> list[workqueue_series.Row]:
    return list(monitor.parse_rows(series, "low", "scope=cache", 3, "traced"))


def test_a_series_becomes_rows_and_a_table_that_reads_back() -> None:
    rows = table([*SERIES, "note\t2.5\tthis sample is cut short"])
    assert [(row.seconds, row.workqueue, row.values, row.note) for row in rows] == [
        (2.5, "", {}, "this sample is cut short"),
        (1.0, "events", {"started": 5, "completed": 4, "in_flight": 1}, ""),
        (2.0, "events", {"started": 9, "completed": 9, "in_flight": 0}, ""),
    ]
    assert {(row.scenario, row.setting, row.repetition, row.phase, row.source) for row in rows} == {
        ("low", "scope=cache", 3, "traced", "stats")
    }
    assert list(workqueue_series.read(workqueue_series.write(rows))) == rows


def test_unreadable_lines_are_left_out_and_counted() -> None:
    broken = [
        "1.000\tevents\t5",
        "x\tevents\t1\t1\t-\t1",
        "1\tevents\t-3\t1\t-\t1",
        "columns\tother",
        "nan\tevents\t1\t1\t-\t1",
    ]
    rows = table([*SERIES, *broken])
    assert [row.note for row in rows if row.note] == ["5 unreadable lines are left out"]
    assert len(rows) == 3


def test_lines_beyond_the_limit_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "ROW_LIMIT", 3)
    rows = table(SERIES)
    assert [row.note for row in rows if row.note] == ["the series is too long: its last 1 lines are left out"]
    assert [row.seconds for row in rows if not row.note] == [1.0]


@given(st.lists(st.text(), max_size=8), st.text())
def test_arbitrary_device_output_does_not_raise(lines: list[str], stdout: str) -> None:
    rows = table([*SERIES[:2], *lines])
    assert list(workqueue_series.read(workqueue_series.write(rows))) == rows
    assert monitor.split_output(stdout)[0] in stdout


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", workqueue_series.write([]) + "low,,x,traced,stats,1,events" + "," * 11 + "\n"]
)
def test_file_that_is_not_a_table_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a workqueue table"):
        list(workqueue_series.read(text))


# --- in the measuring loop --------------------------------------------------------------------------------------------


def watched(_key: BootKey, action: str, environment: Mapping[str, str]) -> str | None:
    if action != "measure":
        return None
    return answer(environment) + "\nbegin\tworkqueues\n" + "\n".join(SERIES) + "\nend\tworkqueues\n"


def run_and_record(purpose: RunPurpose = RunPurpose.MEASURE) -> RecordingSink:
    work = job(blocks=1, purpose=purpose)
    work = work.model_copy(update={"files": {**work.files, monitor.SCRIPT: "exit 0\n"}})
    device, sink = ScriptedDevice(on_script=watched), RecordingSink()
    measure(work, work.blocks, device, sink, Stop(), clock=device.clock)
    of_cell = [True, False, False, True] if purpose is RunPurpose.MEASURE else [False] * 4
    assert device.monitored == [False, *of_cell * 4] * 2, "the first call of a boot warms it"
    return sink


def test_health_check_is_not_monitored() -> None:
    assert not [
        kind
        for kind, _, _ in run_and_record(RunPurpose.HEALTH_CHECK).artifacts
        if kind is ArtifactKind.WORKQUEUE_SERIES
    ]


def test_each_boot_keeps_the_series_of_its_untimed_repetitions() -> None:
    kept = [(name, data) for kind, name, data in run_and_record().artifacts if kind is ArtifactKind.WORKQUEUE_SERIES]
    assert [name for name, _ in kept] == [
        f"workqueues-block0-{position}-{arm}-attempt0.csv" for position, arm in enumerate((Arm.BASELINE, Arm.CANDIDATE))
    ]
    for _, data in kept:
        rows = list(workqueue_series.read(data.decode()))
        assert {(row.repetition, row.phase) for row in rows} == {(0, "warmup"), (3, "traced")}
        assert len({(row.scenario, row.setting) for row in rows}) == 4


def tables() -> list[list[workqueue_series.Row]]:
    kept = [data.decode() for kind, _, data in run_and_record().artifacts if kind is ArtifactKind.WORKQUEUE_SERIES]
    return [list(workqueue_series.read(text)) for text in kept]


@pytest.mark.parametrize("limit", [5, 6, 7, 15, 16, 17])
def test_truncated_table_ends_with_a_note(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each boot has two rows from each of eight repetitions."""
    whole = tables()[0]
    assert len(whole) == 16
    for module in (workqueue_series, monitor):
        monkeypatch.setattr(module, "ROW_LIMIT", limit)
    for rows in tables():
        if limit >= 16:
            assert rows == whole
            continue
        assert len(rows) == limit
        *before, last = rows
        assert before == whole[: limit - 1]
        assert (last.workqueue, last.values, last.note) == ("", {}, monitor.FULL)
        shown_with = (before[-1].scenario, before[-1].setting, before[-1].repetition, before[-1].phase)
        assert (last.scenario, last.setting, last.repetition, last.phase) == shown_with


# --- the script on the device -----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folders of a device: the plan's script, a fake tracefs, and programs."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "plan").mkdir()
    for name in ("monitor.sh", "histograms.sh"):
        (tmp_path / "plan" / name).write_text((SCRIPT.parent / name).read_text())
    (tmp_path / "plan/plan.sh").write_text("printf 'value\\tshare\\t1\\nfact\\taction\\t%s\\n' \"$1\"; exit 3\n")
    return tmp_path


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": f"{folder}/bin:/usr/bin:/bin",
        "WORK": str(folder / "work"),
        "TRACING": str(folder / "tracing"),
    }
    command = ["dash", str(folder / "plan/monitor.sh"), str(folder / "plan/plan.sh"), "measure"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def program(folder: Path, text: str) -> None:
    path = folder / "bin/wqmon"
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_monitored_script_keeps_its_exit_status(folder: Path) -> None:
    (folder / "plan/workqueue-layout").write_text("stat.started 0\n")
    lines = "\\n".join(SERIES).replace("\t", "\\t")
    trap = f"printf '{lines}\\n' > $2; kill $!; exit 0"
    program(folder, f'trap "{trap}" TERM\ntail -f /dev/null >/dev/null &\necho watching\nexec >&-\nwait\n')
    done = run(folder)
    assert done.returncode == 3
    output, series = monitor.split_output(done.stdout)
    records = read_records(output)
    assert (records.values, records.facts, records.damage) == ({"share": 1.0}, {"action": "measure"}, [])
    assert series == SERIES


def test_device_without_counters_and_tracepoints_is_measured(folder: Path) -> None:
    (folder / "plan/workqueue-layout").write_text("stat.started 0\n")
    program(folder, "echo 'wqmon: no readable /proc/kcore' >&2; exit 1\n")
    done = run(folder)
    _, series = monitor.split_output(done.stdout)
    assert done.returncode == 3
    assert series
    assert [row.note for row in table(series)] == [
        "not measured: wqmon: no readable /proc/kcore; this kernel has no event workqueue_queue_work"
    ]


EVENTS = """\
fio-9 [000] d..1. 10.100000: workqueue_queue_work: work struct=00a1 function=f workqueue=kcryptd-253:0-1 req_cpu=8
fio-9 [000] d..1. 10.200000: workqueue_queue_work: work struct=00a2 function=f workqueue=kcryptd-253:0-1 req_cpu=8
kw/0:1-12 [001] ..... 10.300000: workqueue_execute_start: work struct 00a1: function f
kw/0:1-12 [001] ..... 11.400000: workqueue_execute_end: work struct 00a1: function f
kw/0:1-12 [001] ..... 11.500000: workqueue_execute_start: work struct 00a2: function f
kw/0:1-12 [001] ..... 11.600000: workqueue_execute_start: work struct 00ff: function of_before
kw/0:1-12 [001] ..... 13.700000: workqueue_execute_end: work struct 00a2: function f
"""


@pytest.mark.parametrize("awk", ["mawk", "busybox awk"])
def test_tracepoints_replace_missing_counters(folder: Path, awk: str) -> None:
    """Files and pipes replace tracefs: reading trace_pipe never ends, and text written to trace_marker
    appears in it after the events."""
    for event in ("queue_work", "execute_start", "execute_end"):
        (folder / f"tracing/events/workqueue/workqueue_{event}").mkdir(parents=True)
    instance = folder / "tracing/instances/wqlab-monitor"
    for event in ("queue_work", "execute_start", "execute_end"):
        (instance / f"events/workqueue/workqueue_{event}").mkdir(parents=True)
    (instance / "per_cpu/cpu0").mkdir(parents=True)
    (instance / "per_cpu/cpu0/stats").write_text("entries: 7\noverrun: 2\ndropped events: 0\n")
    for name in ("trace_pipe", "trace_marker"):
        os.mkfifo(instance / name)
    for name in ("mawk", "gawk", "awk"):
        path = folder / "bin" / name
        path.write_text(f'#!/bin/sh\nexec /usr/bin/{awk} "$@"\n')
        path.chmod(0o755)
    with (instance / "trace_pipe").open("r+b", buffering=0) as pipe:

        def play() -> None:
            pipe.write(EVENTS.encode())
            mark = (instance / "trace_marker").read_text()
            pipe.write(f" sh-1 [000] ..... 13.9: tracing_mark_write: {mark}".encode())

        kernel = threading.Thread(target=play)
        kernel.start()
        _, series = monitor.split_output(run(folder).stdout)
        kernel.join()
    assert series
    rows = table(series)
    assert {row.source for row in rows} == {"tracepoints"}
    assert [row.note for row in rows if row.note] == [
        "CPU time, concurrency management, repatriations and rescues are not measured: "
        "this device has no program wqmon",
        "the trace buffer lost 2 events: counts are too low",
    ]
    sink = [(row.seconds, row.workqueue, row.values) for row in rows if not row.note]
    assert sink == [
        (1.0, "kcryptd-253:0-1", {"started": 1, "completed": 0, "in_flight": 1, "queued": 1}),
        (2.0, "kcryptd-253:0-1", {"started": 2, "completed": 1, "in_flight": 1, "queued": 0}),
        (4.0, "kcryptd-253:0-1", {"started": 2, "completed": 2, "in_flight": 0, "queued": 0}),
    ]
