"""The model of cache lines, compiled for itself, against a simpler one in Python."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_bench.instrument import build_plugin
from wqlab_host import tool

PLACES = [(0, 0, 0), (0, 0, 0), (1, 0, 0), (2, 1, 0), (3, 2, 1), (3, 2, 1)]
"""Core, L3 domain and node of each CPU."""
LEVELS = ("smt", "l3", "node", "remote")
SOURCES = ("lines.c", "capacity.c", "topology.c", "memory.c")
BRIDGE = """
#include <stdlib.h>
#include "capacity.h"
#include "lines.h"

struct model { struct topology topology; struct lines lines; };

struct model *model_new(const char *cpus, unsigned int l2_kib, unsigned int l3_kib)
{
    struct model *model = calloc(1, sizeof(*model));

    topology_parse(&model->topology, cpus);
    lines_init(&model->lines, &model->topology, capacity_new(&model->topology, l2_kib, l3_kib), 16 << 20);
    return model;
}

int model_access(struct model *model, unsigned int cpu, uint64_t line, int is_store, uint64_t pc,
                 struct transfer *transfer)
{
    struct page *page = lines_page(&model->lines, line / LINES_A_PAGE);

    return page && lines_access(&model->lines, cpu, page, line % LINES_A_PAGE, is_store, pc, transfer);
}

void model_forget(struct model *model) { lines_forget(&model->lines); }
"""

Transferred = tuple[str, int, int] | None
"""Level, CPU that had the line, program counter of the last store; None if the line did not move."""


class _Transfer(ctypes.Structure):
    _fields_ = [
        ("copy", ctypes.c_int), ("is_shared", ctypes.c_bool),
        ("level", ctypes.c_int), ("source", ctypes.c_uint), ("writer_pc", ctypes.c_uint64),
    ]  # fmt: skip


class Model:
    """The plugin's model."""

    def __init__(self, library: ctypes.CDLL, l2_kib: int = 0, l3_kib: int = 0) -> None:
        self._library = library
        cpus = "/".join(":".join(map(str, place)) for place in PLACES)
        self._model = ctypes.c_void_p(library.model_new(cpus.encode(), l2_kib, l3_kib))

    def access(self, cpu: int, line: int, is_store: bool, pc: int) -> Transferred:
        transfer = _Transfer()
        words = (self._model, cpu, ctypes.c_uint64(line), is_store, ctypes.c_uint64(pc), ctypes.byref(transfer))
        if not self._library.model_access(*words):
            return None
        return LEVELS[transfer.level], transfer.source, transfer.writer_pc

    def load(self, cpu: int, line: int) -> Transferred:
        return self.access(cpu, line, False, 1)

    def store(self, cpu: int, line: int) -> Transferred:
        return self.access(cpu, line, True, 2)

    def forget(self) -> None:
        self._library.model_forget(self._model)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("lines")
    sources = Path(build_plugin.__file__).parent / "plugin"
    (folder / "bridge.c").write_text(BRIDGE)
    files = [str(sources / name) for name in SOURCES]
    words = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    built = str(folder / "lines.so")
    tool.output(
        [*words, "-fPIC", "-shared", "-I", str(sources), str(folder / "bridge.c"), *files, "-o", built], OSError
    )
    loaded = ctypes.CDLL(built)
    loaded.model_new.restype = ctypes.c_void_p
    return loaded


def level(cpu: int, other: int) -> int:
    """Return the index in LEVELS of the smallest part of the machine that has both CPUs."""
    return next((index for index in range(3) if PLACES[cpu][index] == PLACES[other][index]), 3)


@dataclass
class Reference:
    """The model as lines.h describes it, without regard to speed."""

    holders: dict[int, set[int]] = field(default_factory=dict)
    writers: dict[int, tuple[int, int]] = field(default_factory=dict)

    def access(self, cpu: int, line: int, is_store: bool, pc: int) -> Transferred:
        holders = self.holders.setdefault(line, set())
        others = holders - {cpu}
        writer, writer_pc = self.writers.get(line, (-1, 0))
        moved = bool(others) if is_store else cpu not in holders and bool(others) and line in self.writers
        found: Transferred = None
        if moved:
            choose = max if is_store else min
            best = choose(level(cpu, other) for other in others)
            equal = sorted(other for other in others if level(cpu, other) == best)
            found = LEVELS[best], writer if writer in equal else equal[0], writer_pc
        if is_store:
            self.holders[line] = {cpu}
            self.writers[line] = (cpu, pc)
        else:
            holders.add(cpu)
        return found


PCS = st.sampled_from([0x401000, 0xFFFFFFFF81000000, 0xFF00000000000000, 0x00FFFFFFFFFFFFFF])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.booleans(), PCS), max_size=60))
def test_any_accesses_move_the_lines_that_the_reference_moves(
    library: ctypes.CDLL, accesses: list[tuple[int, int, bool, int]]
) -> None:
    model, reference = Model(library), Reference()
    for access in accesses:
        assert model.access(*access) == reference.access(*access), access


def test_load_of_unwritten_line_is_no_transfer(library: ctypes.CDLL) -> None:
    model = Model(library)
    assert [model.load(cpu, 7) for cpu in range(6)] == [None] * 6
    # But a store takes the line from all of them.
    assert model.store(0, 7) == ("remote", 4, 0)


def test_load_copies_from_nearest_cpu_and_store_waits_for_farthest(library: ctypes.CDLL) -> None:
    model = Model(library)
    assert model.store(4, 7) is None
    assert model.load(0, 7) == ("remote", 4, 2)
    assert model.load(1, 7) == ("smt", 0, 2)
    assert model.store(1, 7) == ("remote", 4, 2)


def test_forgotten_lines_do_not_move(library: ctypes.CDLL) -> None:
    model = Model(library)
    model.store(0, 7)
    model.forget()
    assert model.store(1, 7) is None


def test_lines_beyond_memory_are_ignored(library: ctypes.CDLL) -> None:
    model = Model(library)
    assert [model.store(cpu, 1 << 50) for cpu in (0, 1)] == [None, None]


LINES_A_KIB = 1024 // 64


def moved(model: Model, lines: range) -> int:
    """Write lines on CPU 0 and return how many move when CPU 4 reads them."""
    for line in lines:
        model.store(0, line)
    return sum(model.load(4, line) is not None for line in lines)


def test_unlimited_caches_keep_every_line(library: ctypes.CDLL) -> None:
    assert moved(Model(library), range(4096)) == 4096


def test_private_cache_keeps_as_many_lines_as_it_has_room_for(library: ctypes.CDLL) -> None:
    assert moved(Model(library, l2_kib=64), range(4096)) == 64 * LINES_A_KIB


def test_l3_keeps_lines_that_left_the_private_cache(library: ctypes.CDLL) -> None:
    assert moved(Model(library, l2_kib=16, l3_kib=128), range(4096)) == 128 * LINES_A_KIB


def test_least_recently_used_line_of_a_set_is_replaced(library: ctypes.CDLL) -> None:
    model = Model(library, l2_kib=64)
    sets = 64 * LINES_A_KIB // 8
    same_set = [way * sets for way in range(9)]
    for line in same_set[:8]:
        model.store(0, line)
    model.load(0, same_set[0])
    model.store(0, same_set[8])
    assert [model.load(4, line) is not None for line in same_set] == [True, False, *[True] * 7]


class LruSets:
    """A set-associative cache that replaces the least recently used line."""

    def __init__(self, kib: int, ways: int) -> None:
        self._ways = ways
        self._sets: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(kib * LINES_A_KIB // ways)]

    def use(self, line: int) -> None:
        lines = self._sets[line % len(self._sets)]
        lines[line] = None
        lines.move_to_end(line)
        if len(lines) > self._ways:
            lines.popitem(last=False)

    def has(self, line: int) -> bool:
        return line in self._sets[line % len(self._sets)]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=300))
def test_private_cache_is_an_lru_cache(library: ctypes.CDLL, lines: list[int]) -> None:
    model, cache = Model(library, l2_kib=1), LruSets(1, 8)
    for line in lines:
        model.store(0, line)
        cache.use(line)
    # The nearest CPU of another core takes every line that is left.
    assert [model.store(2, line) is not None for line in range(41)] == [cache.has(line) for line in range(41)]
