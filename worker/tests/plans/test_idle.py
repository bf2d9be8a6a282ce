"""CPU time that was idle while work waited: the reduction of a trace, compared with a sum over each microsecond."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .scripts import AWKS, PLANS, SHELL

END_US = 60
STEP = 7
"""Distance of the numbers of CPUs in the trace, so that masks have several words."""
PROGRAM = """
. "$EVENTS"
$AWK_TO_TEST -v mask="$MASK" -v online="$ONLINE" -v pods="$PODS" "$TRACE_FUNCTIONS $IDLE_FUNCTIONS"'
BEGIN { idle_setup() }
/ sched_switch: / { idle_switch(); next }
/ workqueue_queue_work: / { queue(item()); next }
/ workqueue_activate_work: / { idle_activate(item()); next }
/ workqueue_execute_start: / { idle_start(item()); end_wait(item()) }
END { idle_records() }' "$TRACE"
"""


@dataclass(frozen=True)
class Item:
    work: int
    queued_on: int
    queued: int
    activated: int
    started: int


@dataclass(frozen=True)
class Case:
    cpus: int
    mask: frozenset[int]
    """CPUs of the workqueue."""
    pods: tuple[frozenset[int], ...]
    """A partition of the CPUs to which items are confined; empty if they are not."""
    idle: tuple[frozenset[int], ...]
    """Microseconds in which each CPU is idle."""
    items: tuple[Item, ...]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    cpus = draw(st.integers(1, 6))
    cut = draw(st.integers(0, cpus))
    pods = tuple(filter(None, (frozenset(range(cut)), frozenset(range(cut, cpus))))) if draw(st.booleans()) else ()
    idle = []
    for _ in range(cpus):
        ends = sorted(draw(st.sets(st.integers(1, END_US - 1), max_size=8)))
        is_idle, bounds = draw(st.booleans()), [0, *ends, END_US]
        # A CPU without a switch is taken for an idle one.
        parts = [(a, b) for n, (a, b) in enumerate(pairwise(bounds)) if (n % 2 == 0) is is_idle]
        idle.append(frozenset(us for a, b in (parts if ends else [(0, END_US)]) for us in range(a, b)))
    items = []
    for work in range(draw(st.integers(0, 4))):
        free = 0
        for _ in range(draw(st.integers(1, 3))):
            times = sorted(draw(st.lists(st.integers(free, END_US - 1), min_size=3, max_size=3)))
            # A work may be queued again once it runs, shortly before the trace has the event of its start.
            items.append(Item(work, draw(st.integers(0, cpus - 1)), *times))
            free = times[2]
    mask = draw(st.frozensets(st.integers(0, cpus - 1), min_size=1))
    return Case(cpus, mask, pods, tuple(idle), tuple(items))


def reference(case: Case, *, confined: bool) -> int:
    """Return the sum over CPUs and microseconds in which a CPU is idle and an item waits that it may run."""
    total = 0
    for us in range(END_US):
        waiting = [item for item in case.items if item.activated <= us < item.started]
        for cpu in case.mask:
            if us not in case.idle[cpu]:
                continue
            pod = next((pod for pod in case.pods if cpu in pod), frozenset(range(case.cpus)))
            total += any(not confined or item.queued_on in pod for item in waiting)
    return total


def trace_of(case: Case) -> str:
    found: list[tuple[int, int, str]] = []

    def add(us: int, order: int, cpu: int, event: str) -> None:
        found.append((us, order, f" kworker/u8:1-77 [{cpu * STEP:03d}] d..2. 100.{us:06d}: {event}\n"))

    for cpu, idle in enumerate(case.idle):
        for us in range(1, END_US):
            if (us in idle) != (us - 1 in idle):
                task, swapper = "prev_comm=fio prev_pid=9", f"next_comm=swapper/{cpu} next_pid=0"
                if us not in idle:
                    task, swapper = f"prev_comm=swapper/{cpu} prev_pid=0", "next_comm=fio next_pid=9"
                add(us, 0, cpu, f"sched_switch: {task} prev_prio=120 prev_state=S ==> {swapper} next_prio=120")
    for number, item in enumerate(case.items):
        work, order = f"00000000{item.work:08x}", 3 * number + 1
        queued = f"workqueue_queue_work: work struct={work} function=f workqueue=w req_cpu=64 cpu=-1"
        add(item.queued, order, item.queued_on, queued)
        add(item.activated, order + 1, 0, f"workqueue_activate_work: work struct {work}")
        add(item.started, order + 2, 0, f"workqueue_execute_start: work struct {work}: function f")
    # The trace ends with its last event.
    add(END_US, 99, 99, "sched_switch: prev_comm=a prev_pid=1 ==> next_comm=swapper/99 next_pid=0")
    return "".join(text for _, _, text in sorted(found, key=lambda each: each[:2]))


def reduce(case: Case, awk: str, trace: Path) -> dict[str, str]:
    trace.write_text(trace_of(case))
    mask = sum(1 << cpu * STEP for cpu in case.mask)
    result = subprocess.run(
        [SHELL, "-c", PROGRAM],
        env={
            "PATH": "/usr/bin:/bin",
            "EVENTS": str(PLANS / "common/events.sh"),
            "AWK_TO_TEST": awk,
            "MASK": f"{mask >> 32:x},{mask % (1 << 32):08x}",
            "ONLINE": ",".join(f"{cpu * STEP}" for cpu in range(case.cpus)),
            "PODS": " ".join(",".join(f"{cpu * STEP}" for cpu in sorted(pod)) for pod in case.pods),
            "TRACE": str(trace),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return {name: value for _, name, value in (line.split("\t") for line in result.stdout.splitlines())}


@pytest.mark.parametrize("awk", AWKS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_reduction_equals_the_sum_over_each_microsecond(case: Case, awk: str, tmp_path: Path) -> None:
    found = reduce(case, awk, tmp_path / "trace")
    assert found["idle_while_work_waits_us"] == f"{reference(case, confined=False)}"
    assert found["idle_in_scope_while_work_waits_us"] == f"{reference(case, confined=True)}"


def test_item_that_max_active_holds_back_does_not_wait_for_a_cpu(tmp_path: Path) -> None:
    held = Case(1, frozenset({0}), (), (frozenset(range(END_US)),), (Item(0, 0, 10, 40, 45),))
    assert reduce(held, AWKS[0], tmp_path / "trace")["idle_while_work_waits_us"] == "5"


def test_figure_of_the_scope_is_missing_if_a_cpu_has_no_known_pod(tmp_path: Path) -> None:
    idle = (frozenset(), frozenset(range(END_US)))
    case = Case(2, frozenset({0, 1}), (frozenset({0}),), idle, (Item(0, 1, 1, 2, 9),))
    found = reduce(case, AWKS[0], tmp_path / "trace")
    assert "idle_while_work_waits_us" in found
    assert "confines" in found["idle_in_scope_while_work_waits_us"]
