"""End of a traced repetition, which the plans' scripts have in common."""

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
