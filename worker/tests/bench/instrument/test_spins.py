"""Waits for spinlocks that the plugin notes, with registers, stack and clock that a test made."""

from __future__ import annotations

import ctypes
import shutil
import struct
from pathlib import Path

import pytest

from wqlab_bench.instrument import build_plugin
from wqlab_host import tool

SOURCES = ("spins.c", "kernel_data.c", "table.c", "memory.c")
BRIDGE = """
#include <stdlib.h>
#include "spins.h"

static struct spins spins;
static struct kernel_data kernel;
static struct timing timing;
static int64_t ps[2], unit_ps, none;
static uint16_t low;
static uint64_t registers[2][16];

void waits_start(const char *layout, kernel_read_t read)
{
    kernel_data_load(&kernel, layout, read, 2);
    for (int cpu = 0; cpu < 2; cpu++)
        timing.cpus[cpu] = (struct qemu_plugin_vtime_view){
            .ps = &ps[cpu], .unit_ps = &unit_ps, .budget = &none, .extra = &none, .idle_ps = &none, .low = &low,
            .registers = registers[cpu],
        };
}

void waits_begin(unsigned int cpu, uint64_t lock, uint64_t stack, uint64_t frame, int64_t at)
{
    registers[cpu][7] = lock;
    registers[cpu][4] = stack;
    registers[cpu][5] = frame;
    ps[cpu] = at;
    spins_begin(&spins, &kernel, &timing, cpu);
}

void waits_end(unsigned int cpu, int64_t at)
{
    ps[cpu] = at;
    spins_end(&spins, &timing, cpu);
}

void waits_forget(void) { spins_forget(&spins); }

int waits_are_watched(uint64_t pc, const uint8_t *bytes, size_t size)
{
    return spins_begin_at(&kernel, pc) | spins_end_at(&kernel, pc, bytes, size) << 1;
}

int waits_print(const char *path)
{
    FILE *file = fopen(path, "w");

    kernel_data_begin(&kernel);
    spins_print(&spins, &kernel, file);
    return fclose(file);
}
"""
READ = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t)
SLOW, LOCK_TEXT, STACK, POOL = 0xFFFFFFFF81677D00, 0xFFFFFFFF81677740, 0xFFFFC90000000000, 0xFFFF888000005000
QUEUE, TIMER = 0xFFFFFFFF81100010, 0xFFFFFFFF81200020
"""Addresses behind the calls of functions that take a lock."""


class Waits:
    """The plugin's waits for spinlocks, beside a stack."""

    def __init__(self, library: Path, folder: Path) -> None:
        # Another file is another library, with data of its own.
        self.c = ctypes.CDLL(str(shutil.copy(library, folder)))
        self.stack: dict[int, int] = {}
        self._read = READ(self.read)
        layout = folder / "layout"
        layout.write_text(f"spin_slow {SLOW:x}\nspin_slow_size 280\nlock_text {LOCK_TEXT:x}\nlock_text_size a68\n")
        self.c.waits_start(str(layout).encode(), self._read)
        self._out = folder / "out"

    def read(self, address: int, to: int, size: int) -> bool:
        if address not in self.stack or size != 8:
            return False
        ctypes.memmove(to, struct.pack("<Q", self.stack[address]), 8)
        return True

    def begin(self, cpu: int, lock: int, returns: int, at: int) -> None:
        """Enter the slow path from a function of locks, whose caller goes on at `returns`."""
        self.stack |= {STACK: LOCK_TEXT + 0x100, STACK + 24: returns}
        u64 = ctypes.c_uint64
        self.c.waits_begin(cpu, u64(lock), u64(STACK), u64(STACK + 16), ctypes.c_int64(at))

    def end(self, cpu: int, at: int) -> None:
        self.c.waits_end(cpu, ctypes.c_int64(at))

    def records(self) -> list[str]:
        assert self.c.waits_print(str(self._out).encode()) == 0
        return self._out.read_text().splitlines()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, sources = tmp_path_factory.mktemp("spins"), Path(build_plugin.__file__).parent / "plugin"
    (folder / "bridge.c").write_text(BRIDGE)
    files = [str(folder / "bridge.c"), *(str(sources / name) for name in SOURCES)]
    words = ["-O1", "-std=gnu11", "-Wall", "-Werror", "-fPIC", "-shared", "-DWQLAB_PLUGIN_API=1"]
    tool.output(["gcc", *words, "-I", str(sources), *files, "-o", str(folder / "spins.so")], ValueError)
    return folder / "spins.so"


@pytest.fixture
def waits(library: Path, tmp_path: Path) -> Waits:
    return Waits(library, tmp_path)


def test_waits_are_summed_by_line_of_the_lock_and_call(waits: Waits) -> None:
    waits.begin(0, POOL, QUEUE, 1000)
    waits.begin(1, POOL + 8, QUEUE, 1500)
    waits.end(0, 4000)
    waits.end(1, 5000)
    waits.begin(0, POOL, TIMER, 6000)
    waits.end(0, 6700)
    assert waits.records() == [f"spin\t{POOL:x}\t{QUEUE - 1:x}\t2\t6500", f"spin\t{POOL:x}\t{TIMER - 1:x}\t1\t700"]


def test_an_interrupt_may_wait_while_it_interrupts_a_wait(waits: Waits) -> None:
    waits.begin(0, POOL, QUEUE, 1000)
    waits.begin(0, POOL + 64, TIMER, 2000)
    waits.end(0, 2500)
    waits.end(0, 4000)
    assert waits.records() == [f"spin\t{POOL + 64:x}\t{TIMER - 1:x}\t1\t500", f"spin\t{POOL:x}\t{QUEUE - 1:x}\t1\t3000"]


def test_a_wait_that_began_before_the_window_is_not_counted(waits: Waits) -> None:
    waits.begin(0, POOL, QUEUE, 1000)
    waits.c.waits_forget()
    waits.end(0, 2000)
    assert waits.records() == []


def test_direct_call_of_the_slow_path_is_the_call(waits: Waits) -> None:
    waits.begin(0, POOL, QUEUE, 1000)
    waits.end(0, 2000)
    waits.stack[STACK] = TIMER
    u64 = ctypes.c_uint64
    waits.c.waits_begin(0, u64(POOL), u64(STACK), u64(0), ctypes.c_int64(3000))
    waits.end(0, 3100)
    assert waits.records()[1] == f"spin\t{POOL:x}\t{TIMER - 1:x}\t1\t100"


def test_frames_of_functions_of_locks_are_passed(waits: Waits) -> None:
    waits.stack[STACK + 16] = STACK + 80
    waits.stack[STACK + 88] = TIMER
    waits.begin(0, POOL, LOCK_TEXT + 0x200, 1000)
    waits.end(0, 1100)
    assert waits.records() == [f"spin\t{POOL:x}\t{TIMER - 1:x}\t1\t100"]


@pytest.mark.parametrize(
    ("offset", "code", "watched"),
    [
        (0, "e8fb249dff", 1),  # the first instruction
        (0x36, "c3", 2),
        (0x100, "e9fbfeffff", 0),  # to the first instruction
        (0x100, "e900100000", 2),  # to the return thunk
        (0x100, "f390", 0),
        (0x280, "c3", 0),  # of the next function
        (-1, "c3", 0),
    ],
)
def test_first_instruction_and_returns_are_watched(waits: Waits, offset: int, code: str, watched: int) -> None:
    text = bytes.fromhex(code)
    assert waits.c.waits_are_watched(ctypes.c_uint64(SLOW + offset), text, ctypes.c_size_t(len(text))) == watched
