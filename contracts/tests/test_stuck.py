"""What kept a pool of workers busy."""

from __future__ import annotations

from wqlab_contracts.enums import FindingKind
from wqlab_contracts.keys import describe_defect
from wqlab_contracts.stuck import stuck_work_functions

TITLE = "BUG: workqueue lockup - pool cpus={cpu} node=0 flags=0x0 nice=0 stuck for {time}s!"
BUSY = """\
Showing busy workqueues and worker pools:
workqueue events: flags=0x0
  pwq {pool}: cpus={cpu} node=0 flags=0x0 nice=0 active=2 refcnt=3
    in-flight: 24:{work} [mod] BAR(7), 117(RESCUER):{other} for 31s
    pending: vmstat_shepherd, e1000_watchdog
workqueue mm_percpu_wq: flags=0x8
  pwq 30: cpus=7 node=0 flags=0x0 nice=0 active=1 refcnt=2
    in-flight: 55:vmstat_update
pool {pool}: cpus={cpu} node=0 flags=0x0 nice=0 hung={time}s workers=3 idle: 18
"""
RUNNING = """\
Showing backtraces of running workers in stalled CPU-bound worker pools:
pool {pool}:
task:kworker/{cpu}:1     state:R  running task     stack:0     pid:24    tgid:24    ppid:2
Workqueue: my queue {work} [mod] (description)
Call Trace:
"""


def defect(text: str = BUSY, title: str = TITLE, **fields: object) -> str:
    values = {"cpu": 1, "time": 31, "pool": 6, "work": "stuck_fn", "other": "stuck_fn", **fields}
    lines = text.format_map(values).splitlines()
    excerpt = "\n".join(f"[  60.{number:06}][  T12] {line}" for number, line in enumerate(lines))
    return describe_defect(FindingKind.WORKQUEUE_STALL, title.format_map(values), (), excerpt)


def test_workqueue_lockups_with_one_stuck_function_are_one_defect() -> None:
    assert defect() == "workqueue_stall: workqueue lockup in stuck_fn"
    assert defect() == defect(cpu=3, time=62, pool=14)
    assert defect() != defect(work="another_fn", other="another_fn")


def test_all_functions_in_flight_are_named_unless_a_worker_is_shown_running() -> None:
    assert defect(other="a_fn") == "workqueue_stall: workqueue lockup in a_fn, stuck_fn"
    assert defect(BUSY + RUNNING, other="a_fn") == defect() == defect(BUSY + RUNNING, work="stuck_fn")
    assert defect(BUSY + RUNNING.replace("running workers in stalled CPU-bound", "busy workers in stalled")) == defect()


def test_worker_of_another_pool_is_not_the_stuck_one() -> None:
    shown = RUNNING.replace("pool {pool}", "pool 30").replace("{work}", "other_fn")
    assert defect(BUSY + shown) == defect() == defect(BUSY + shown + RUNNING.partition("\n")[2])


def test_lockups_of_unbound_pools_are_distinguished_by_their_functions() -> None:
    title = TITLE.replace("cpus={cpu} node=0 flags=0x0", "cpus=0-3 flags=0x4")
    busy = BUSY.replace("cpus={cpu} node=0 flags=0x0", "cpus=0-3 flags=0x4")
    assert defect(busy, title) == defect()
    assert stuck_work_functions("BUG: workqueue lockup - pool cpus=9 flags=0x0 nice=0", busy) == []


def test_lockups_without_a_stuck_function_are_one_defect_for_each_kind_of_pool() -> None:
    assert defect("") == defect("", cpu=3) != defect("", TITLE.replace("nice=0", "nice=-20"))
