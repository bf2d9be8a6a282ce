"""Offsets of workqueue counters, read from the debug information of a build."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from wqlab_worker.build import workqueue_offsets

STRUCTS = """\
typedef unsigned long long u64;
struct list_head { struct list_head *next, *prev; };
enum pool_workqueue_stats { PWQ_STAT_STARTED, PWQ_STAT_COMPLETED, PWQ_STAT_CPU_TIME, PWQ_STAT_MAYDAY, PWQ_NR_STATS };
struct workqueue_struct { long first; struct list_head pwqs, list; char name[24]; };
struct pool_workqueue { int nr_in_flight[16]; struct list_head pwqs_node; u64 stats[PWQ_NR_STATS]; };
struct workqueue_struct wq; struct pool_workqueue pwq;
"""


def compiled(folder: Path, text: str, *options: str) -> Path:
    (folder / "kernel.c").write_text(text)
    command = ["gcc", "-nostdlib", "-static", "-Wl,-e,0", "-Wl,--build-id", *options, "kernel.c", "-o", "vmlinux"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "vmlinux"


def test_offsets_are_read_from_debug_information(tmp_path: Path) -> None:
    found = json.loads(workqueue_offsets.read_layout(compiled(tmp_path, STRUCTS, "-g")))
    assert found == {
        "workqueue_struct.pwqs": 8,
        "workqueue_struct.list": 24,
        "workqueue_struct.name": 40,
        "workqueue_struct.name.size": 24,
        "pool_workqueue.nr_in_flight": 0,
        "pool_workqueue.nr_in_flight.count": 16,
        "pool_workqueue.pwqs_node": 64,
        "pool_workqueue.stats": 80,
        "pool_workqueue.stats.count": 4,
        "stat.started": 0,
        "stat.completed": 1,
        "stat.cpu_us": 2,
        "stat.mayday": 3,
    }, "stats that this kernel does not have are left out"
    assert "pool_workqueue.stats 80\n" in workqueue_offsets.for_device(json.dumps(found))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        pytest.param("int nothing;\n", ("-g",), id="a kernel without the counters"),
        pytest.param(STRUCTS, (), id="no debug information"),
        pytest.param(STRUCTS.replace("stats[PWQ_NR_STATS]", "other"), ("-g",), id="counters that moved elsewhere"),
    ],
)
def test_kernel_without_counters_gives_a_reason(tmp_path: Path, text: str, options: tuple[str, ...]) -> None:
    found = workqueue_offsets.read_layout(compiled(tmp_path, text, *options))
    assert json.loads(found)["lacking"]
    assert workqueue_offsets.for_device(found) == ""


def test_damaged_vmlinux_gives_a_reason(tmp_path: Path) -> None:
    broken = compiled(tmp_path, STRUCTS, "-g")
    broken.write_bytes(broken.read_bytes()[:200])
    assert json.loads(workqueue_offsets.read_layout(broken))["lacking"]


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"stat.started": -1}', '{"stat.started": 99999999}', '{"a b\\nstat.started 1": 1}', '{"x": "1"}'],
)
def test_invalid_layout_is_not_sent_to_device(text: str) -> None:
    assert workqueue_offsets.for_device(text) == ""
