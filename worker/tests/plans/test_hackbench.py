"""Plan hackbench: number of groups, histograms of the kernel, and loads beside the messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from .scripts import AWKS, call, plan

NAME = "hackbench"
DELAYS = """\
# event histogram
#
# trigger info: hist:keys=us:vals=hitcount:sort=hitcount:size=32768 [active]
#

{ us:          3 } hitcount:          4
{ us:       1234 } hitcount:          1
{ us:       1239 } hitcount:          2
{ us: 18446744073709551614 } hitcount:          1

Totals:
    Hits: 8
    Entries: 4
    Dropped: 0
"""
MOVES = """\
# trigger info: hist:keys=comm:vals=hitcount:sort=hitcount:size=1024 if comm == "hackbench" [active]

{ comm: hackbench                                          } hitcount:         12

Totals:
    Hits: 12
"""


def histogram(folder: Path, event: str, text: str) -> None:
    path = folder / "tracing/instances/wqlab-wakeups/events" / event
    path.mkdir(parents=True)
    (path / "hist").write_text(text)


def test_each_transport_is_measured_alone_and_beside_a_load() -> None:
    parameters = [scenario.parameters for scenario in plan(NAME).scenarios]
    assert {(each["transport"], each["beside"]) for each in parameters} == {
        (transport, beside) for transport in ("pipe", "socket") for beside in ("nothing", "load")
    }


@pytest.mark.parametrize(
    ("cpus", "share", "groups"), [(2, "1/2", "1"), (1, "1/2", "1"), (24, "1/4", "6"), (3, "2/1", "6")]
)
def test_groups_follow_from_the_cpus(tmp_path: Path, cpus: int, share: str, groups: str) -> None:
    command = f'nproc() {{ echo {cpus}; }}\nrecord fact groups "$(groups)"'
    assert call(NAME, command, tmp_path, GROUPS_PER_CPU=share).facts == {"groups": groups}


@pytest.mark.parametrize("awk", AWKS)
def test_wakeup_times_are_read_with_three_digits(tmp_path: Path, awk: str) -> None:
    """A task that starts before it is woken, by the clocks of two CPUs, has waited for 0 us."""
    histogram(tmp_path, "synthetic/wqlab_delay", DELAYS)
    found = call(NAME, f"AWK='{awk}'\nreduce_delays", tmp_path)
    assert sorted(found.frame("histogram wakeup_us")) == ["0 1", "1230 1", "1240 2", "3 4"]
    assert found.overrun == 0


def test_full_histogram_counts_as_lost_events(tmp_path: Path) -> None:
    histogram(tmp_path, "synthetic/wqlab_delay", DELAYS.replace("Dropped: 0", "Dropped: 7"))
    assert call(NAME, "reduce_delays", tmp_path).overrun == 7


@pytest.mark.parametrize("awk", AWKS)
@pytest.mark.parametrize(("text", "moves"), [(MOVES, 12), ("# trigger info: hitcount\n\nTotals:\n    Hits: 0\n", 0)])
def test_migrations_are_read(tmp_path: Path, awk: str, text: str, moves: int) -> None:
    histogram(tmp_path, "sched/sched_migrate_task", text)
    assert call(NAME, f"AWK='{awk}'\nreduce_moves", tmp_path).values == {"migrations": moves}


def test_kernel_without_histograms_is_unsupported(tmp_path: Path) -> None:
    (tmp_path / "tracing/instances").mkdir(parents=True)
    (tmp_path / "tracing/tracing_on").touch()
    found = call(NAME, "trace_wakeups || record fact status $?", tmp_path)
    assert [name for name, _ in found.unsupported] == ["traced"]
    assert "CONFIG_HIST_TRIGGERS" in found.unsupported[0][1]
    assert found.facts == {"status": "1"}


STAND_INS = """\
nproc() { echo 2; }
start_load() { echo "workload 0" >"$LOAD/result"; }
"""
SIZES = {"FDS": "4", "LOOPS": "20", "SIZE": "100", "GROUPS_PER_CPU": "1/2", "LOAD_MS": "10"}


@pytest.mark.parametrize(("transport", "pipe"), [("pipe", " --pipe"), ("socket", "")])
def test_loads_follow_one_another_until_all_messages_arrived(tmp_path: Path, transport: str, pipe: str) -> None:
    """A hackbench that ends once three loads have ended."""
    (tmp_path / "load").mkdir()
    waits = 'until [ "$(grep -c workload "$WORK/loads" 2>/dev/null)" -ge 3 ]; do :; done; echo "Time: 0.5"'
    command = f"{STAND_INS}hackbench() {{ {waits}; }}\nworkload\nresult"
    environment = {**SIZES, "TRANSPORT": transport, "BESIDE": "load", "LOAD": str(tmp_path / "load")}
    found = call(NAME, command, tmp_path, **environment)
    assert found.command == f"hackbench -g 1 -f 4 -l 20 -s 100{pipe}"
    assert len(found.frame("loads")) >= 3
    assert found.frame("hackbench") == ["Time: 0.5"]


def test_hackbench_that_fails_is_named(tmp_path: Path) -> None:
    command = f'{STAND_INS}hackbench() {{ echo "fork() failed"; return 1; }}\n(workload) || :'
    found = call(NAME, command, tmp_path, **SIZES, TRANSPORT="pipe", BESIDE="nothing")
    assert found.failure and found.failure.summary == "hackbench ended with exit status 1: fork() failed"
