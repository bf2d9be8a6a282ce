"""The plugin counts what can be counted on paper: transfers of small programs, instructions, locked instructions."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from . import boots
from .boots import FEW, INSTALLED, MANY, NEWER, ROUNDS, Counts

pytestmark = pytest.mark.device
LEVELS = ("smt", "l3", "node", "remote")
SLOTS, PAGES = 16, 32


@pytest.fixture(
    scope="module",
    params=[
        ("x86_64", INSTALLED),
        pytest.param(("arm64", INSTALLED), marks=pytest.mark.nightly),
        pytest.param(("x86_64", NEWER), marks=pytest.mark.nightly),
    ],
    ids="-".join,
)
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[boots.Machine]:
    arch, release = request.param
    folder = tmp_path_factory.mktemp("counts")
    with boots.qemu_of(release, folder):
        yield boots.machine(arch, folder)


@pytest.fixture(scope="module")
def two_boots(machine: boots.Machine) -> list[Counts]:
    """Boot twice at once, and beside a process that keeps another CPU of the host busy."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        with ThreadPoolExecutor() as pool:
            return list(pool.map(machine.boot, ("first", "second")))
    finally:
        busy.kill()
        busy.wait()


@pytest.fixture(scope="module")
def counts(two_boots: list[Counts]) -> Counts:
    return two_boots[0]


@pytest.mark.parametrize("level", LEVELS)
def test_ping_pong_moves_line_once_per_handover(counts: Counts, level: str) -> None:
    first, second = "store_by_first", "store_by_second"
    assert counts.moved(f"ping-pong-{level}", first, second) == {
        (first, second, level, "store"): ROUNDS,
        (second, first, level, "store"): ROUNDS,
    }


def test_words_on_one_line_move_it_and_words_on_two_lines_do_not(counts: Counts) -> None:
    assert counts.total("false-sharing", "store_neighbour") == 2 * ROUNDS
    assert counts.total("false-sharing", "store_apart") == 0


@pytest.mark.parametrize(("phase", "threads"), [("ticket-lock-few", FEW), ("ticket-lock-many", MANY)])
def test_ticket_lock_moves_line_to_every_waiting_thread(counts: Counts, phase: str, threads: int) -> None:
    times = threads * ROUNDS
    waiting = [min(threads - 1, times - 1 - number) for number in range(times)]
    # Each thread but the first reads the line once before the first release, then all that wait after each release.
    assert counts.total(phase, "get_served") == threads - 1 + sum(waiting)
    assert counts.total(phase, "serve") == times
    # The first ticket is drawn by the thread that has set the lock up.
    assert counts.total(phase, "draw_ticket") == times - 1


@pytest.mark.parametrize(("phase", "threads"), [("queued-lock-few", FEW), ("queued-lock-many", MANY)])
def test_queued_lock_moves_as_many_lines_however_many_threads_wait(counts: Counts, phase: str, threads: int) -> None:
    times = threads * ROUNDS
    # Except at the ends: a node's line moves when it is prepared, linked, read, unlocked and read.
    assert counts.total(phase, "prepare_node") == times - threads
    assert counts.total(phase, "link_node") == times - 1
    assert counts.total(phase, "unlock_node") == times - 1
    assert counts.total(phase, "is_node_locked", "get_successor") == 2 * (times - 1)
    assert counts.total(phase, "swap_tail") == times - 1


def test_counters_per_cpu_move_no_line(counts: Counts) -> None:
    assert counts.total("counters", "count_alone") == 0
    assert counts.total("counters", "count_together") == 8 * ROUNDS - 1


def test_read_mostly_line_moves_once_to_each_reader_after_each_write(counts: Counts) -> None:
    moved = counts.moved("read-mostly", "read_setting", "write_setting")
    assert counts.total("read-mostly", "read_setting") == 7 * ROUNDS
    assert {kind for _, _, _, kind in moved if _ == "read_setting"} <= {"load"}
    # The first write finds no reader. A write waits for the farthest reader; a reader copies from the nearest.
    assert moved["write_setting", "write_setting", "remote", "store"] == ROUNDS - 1
    assert counts.total("read-mostly", "write_setting") == ROUNDS - 1
    assert {level: moved["read_setting", "write_setting", level, "load"] // ROUNDS for level in LEVELS} == {
        "smt": 4, "l3": 1, "node": 1, "remote": 1,
    }  # fmt: skip


@pytest.mark.parametrize("level", LEVELS)
def test_producer_and_consumer_move_each_slot_twice(counts: Counts, level: str) -> None:
    assert counts.moved(f"producer-consumer-{level}", "produce", "consume") == {
        ("consume", "produce", level, "load"): SLOTS * ROUNDS,
        ("produce", "produce", level, "store"): SLOTS * (ROUNDS - 1),
    }


def test_instructions_are_exact(counts: Counts) -> None:
    assert counts.instructions("instructions", "spend") == 2 * ROUNDS * 1000 + 1
    # Each page faults once, and its store begins again.
    assert counts.instructions("instructions", "touch") == 4 * PAGES + 1 + PAGES


def test_locked_instructions_are_counted(machine: boots.Machine, counts: Counts) -> None:
    a_round = {"x86_64": 3, "arm64": 1}[machine.arch]
    assert counts.locked("instructions", "change") == a_round * ROUNDS


def test_window_sums_agree(counts: Counts) -> None:
    for window in counts.windows.values():
        assert window.instructions == sum(window.code.values())
        assert window.kernel_instructions == sum(count for pc, count in window.code.items() if pc >> 63)
        assert window.locked == sum(window.locked_code.values())
        assert sum(moved.count for moved in window.moved) == sum(window.cpus.values())
        if len(window.lines) < 200:
            assert sum(sum(line.transfers) for line in window.lines) == sum(window.cpus.values())


def test_boots_are_equal_byte_for_byte(two_boots: list[Counts]) -> None:
    first, second = two_boots
    assert first.console == second.console
    assert first.output == second.output
