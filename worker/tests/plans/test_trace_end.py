"""Traced repetitions: what the plans' scripts have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from .scripts import call, trace

QUEUED = (
    "  fio-9  [000] d....  1.000100: workqueue_queue_work: "
    "work struct=00000000aa function=f workqueue=w req_cpu=0 cpu=0\n"
)
STARTED = "  kworker/0:1-8  [001] .....  1.000200: workqueue_execute_start: work struct 00000000aa: function f\n"


@pytest.mark.parametrize("plan", ["dm-crypt-affinity", "xfs-inodegc"])
def test_trace_is_read_before_it_is_emptied(tmp_path: Path, plan: str) -> None:
    trace(tmp_path, QUEUED + STARTED)
    tracing = tmp_path / "tracing"
    (tracing / "events").mkdir()
    (tracing / "per_cpu/cpu0").mkdir(parents=True)
    (tracing / "per_cpu/cpu0/stats").write_text("entries: 2\noverrun: 3\ndropped events: 4\n")
    (tracing / "tracing_on").write_text("1\n")
    (tmp_path / "devices/system/cpu").mkdir(parents=True)
    (tmp_path / "devices/system/cpu/kernel_max").write_text("7\n")
    found = call(plan, "trace_end", tmp_path, SYS=str(tmp_path))
    assert (found.frame("pairs")[0].split()[:3], found.overrun) == (["0", "1", "1"], 7)
    left = {name: (tracing / name).read_text().strip() for name in ("trace", "tracing_on", "buffer_size_kb")}
    assert left == {"trace": "", "tracing_on": "0", "buffer_size_kb": "1"}


@pytest.mark.parametrize(("traced", "marks"), [("0", ["track", "begin", "end"]), ("1", ["track", "untrack"])])
def test_traced_repetition_marks_no_window(tmp_path: Path, traced: str, marks: list[str]) -> None:
    command = f'wqmark() {{ echo "$1" >>{tmp_path}/marks; }}\nfor each in track begin end; do window $each; done'
    call("xfs-fsync", command, tmp_path, WINDOW="1", TRACE=traced)
    assert (tmp_path / "marks").read_text().split() == marks


def test_kernel_without_an_event_traces_no_works(tmp_path: Path) -> None:
    (tmp_path / "tracing/events/workqueue/workqueue_queue_work").mkdir(parents=True)
    (tmp_path / "tracing/tracing_on").touch()
    found = call("wireguard", "trace_works traced 'workqueue ~ \"wg-*\"' || :", tmp_path, TRACE_KIB="64")
    assert found.unsupported == [("traced", "this kernel has no event workqueue_execute_start")]
