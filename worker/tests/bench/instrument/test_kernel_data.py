"""What the plugin reads of a kernel's data, from memory that a test made."""

from __future__ import annotations

import ctypes
import itertools
import struct
from pathlib import Path

import pytest

from wqlab_bench.instrument import build_plugin
from wqlab_host import tool

SOURCES = ("kernel_data.c", "table.c", "memory.c")
BRIDGE = """
#include <stdlib.h>
#include "kernel_data.h"

static struct table lines;

struct kernel_data *data_new(const char *layout, kernel_read_t read)
{
    struct kernel_data *data = calloc(1, sizeof(*data));

    kernel_data_load(data, layout, read, 2);
    kernel_data_begin(data);
    return data;
}

void data_add_line(uint64_t virtual_address, int level, uint64_t count)
{
    struct row *row = table_row(&lines, virtual_address >> 6, 0, 0);

    row->value = virtual_address;
    row->count[level] += count;
}

int data_print(struct kernel_data *data, uint64_t address, const char *path)
{
    FILE *file = fopen(path, "w");

    kernel_data_print_slab(data, address, file);
    kernel_data_print_per_cpu(data, file);
    kernel_data_print_pools(data, &lines, file);
    return fclose(file);
}
"""
READ = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t)

DIRECT = 0xFFFF888000000000
CACHES, SECTIONS, PER_CPU, HASH = 0xFFFFFFFF82000000, 0xFFFFFFFF82001000, 0xFFFFFFFF82002000, 0xFFFFFFFF82003000
POINTERS = 0xFFFFFFFF82004000
LIST_OFFSET, SIZE_OFFSET = 96, 24
POOL_BYTES, HASH_NODE = 0x318, 0x2F0
PAGES = DIRECT + 0x100000
"""Where the struct pages of the first section are."""
FIRST_POOL, BOUND_POOL = DIRECT + 0x5000 + 0x400, DIRECT + 0x9000


class Memory:
    """Memory of a guest; what was not written is unreadable."""

    def __init__(self) -> None:
        self.bytes: dict[int, int] = {}

    def write(self, address: int, data: bytes) -> None:
        self.bytes |= {address + index: byte for index, byte in enumerate(data)}

    def word(self, address: int, value: int) -> None:
        self.write(address, struct.pack("<Q", value))

    def read(self, address: int, to: int, size: int) -> bool:
        if any(address + index not in self.bytes for index in range(size)):
            return False
        ctypes.memmove(to, bytes(self.bytes[address + index] for index in range(size)), size)
        return True

    def add_caches(self, caches: list[tuple[str, int]], *, red_zone: int = 0) -> dict[str, int]:
        """Write a list of slab caches, each with its size. Returns their addresses."""
        addresses = {name: DIRECT + 0x10000 + 0x100 * number for number, (name, _) in enumerate(caches)}
        nodes = [CACHES, *(address + LIST_OFFSET for address in addresses.values()), CACHES]
        for node, following in itertools.pairwise(nodes):
            self.word(node, following)
        for number, (name, size) in enumerate(caches):
            address, text = addresses[name], DIRECT + 0x20000 + 0x40 * number
            self.write(address, bytes(48))
            self.write(address + SIZE_OFFSET, struct.pack("<II", size + red_zone, size))
            self.word(address + LIST_OFFSET - 8, text)
            self.write(text, name.encode() + b"\0")
        self.word(POINTERS, addresses["kmem_cache"])
        return addresses

    def add_slab(self, page: int, pages: int, cache: int) -> None:
        """Make `pages` pages from a physical page on a slab of a cache, as struct slab of Linux 6.12 has it."""
        root = DIRECT + 0x30000
        self.word(SECTIONS, root)
        self.word(root, PAGES | 3)
        first = PAGES + 64 * page
        self.word(first + 8, cache)
        for number in range(1, pages):
            self.word(first + 64 * number + 8, first + 1)

    def add_pools(self) -> None:
        self.write(HASH, bytes(8 * 4))
        self.word(HASH + 8, FIRST_POOL + HASH_NODE)
        self.word(FIRST_POOL + HASH_NODE, 0)
        self.write(FIRST_POOL, struct.pack("<IiiI", 0, -1, 0, 8))
        for cpu in range(2):
            self.word(PER_CPU + 8 * cpu, DIRECT + 0x8000 + cpu * 0x4000)
            self.write(BOUND_POOL + cpu * 0x4000, struct.pack("<IiiI", 0, cpu, 0, 2 * cpu))


LAYOUT = {
    "direct_map": f"{DIRECT:x}", "per_cpu_offset": f"{PER_CPU:x}", "per_cpu_start": "0", "per_cpu_unit": "4000",
    "slab_caches": f"{CACHES:x}", "kmem_cache": f"@{POINTERS:x}", "mem_section": f"{SECTIONS:x}", "section_shift": "1b",
    "cpu_pools": "1000", "cpu_pools_count": "1", "unbound_pools": f"{HASH:x}", "unbound_pools_count": "4",
    "pool_size": f"{POOL_BYTES:x}", "pool_lock": "0", "pool_cpu": "4", "pool_id": "c",
    "pool_hash_node": f"{HASH_NODE:x}",
}  # fmt: skip
CACHES_OF_TEST = [("kmem_cache", 256), ("kmalloc-1k", 1024), ("kmalloc-64", 64), ("pool_workqueue", 512)]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("kernel-data")
    sources = Path(build_plugin.__file__).parent / "plugin"
    (folder / "bridge.c").write_text(BRIDGE)
    built = str(folder / "data.so")
    words = ["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    files = [str(folder / "bridge.c"), *(str(sources / name) for name in SOURCES)]
    tool.output([*words, "-fPIC", "-shared", "-I", str(sources), *files, "-o", built], OSError)
    loaded = ctypes.CDLL(built)
    loaded.data_new.restype = ctypes.c_void_p
    loaded.data_new.argtypes = [ctypes.c_char_p, READ]
    loaded.data_print.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_char_p]
    loaded.data_add_line.argtypes = [ctypes.c_uint64, ctypes.c_int, ctypes.c_uint64]
    return loaded


def printed(library: ctypes.CDLL, memory: Memory, address: int, folder: Path, **changes: str | None) -> list[list[str]]:
    """Return the fields of the records that the plugin prints for an address of a line."""
    layout, output = folder / "layout", folder / "output"
    keys = {key: value for key, value in (LAYOUT | changes).items() if value is not None}
    layout.write_text("".join(f"{key} {value}\n" for key, value in keys.items()))
    read = READ(memory.read)
    data = library.data_new(str(layout).encode(), read)
    assert library.data_print(data, address, str(output).encode()) == 0
    return [line.split("\t") for line in output.read_text().splitlines()]


def of_kind(records: list[list[str]], kind: str) -> list[list[str]]:
    return [fields for name, *fields in records if name == kind]


@pytest.mark.parametrize("red_zone", [0, 64])
def test_line_is_named_by_the_cache_and_the_offset_in_its_object(
    library: ctypes.CDLL, tmp_path: Path, red_zone: int
) -> None:
    memory = Memory()
    caches = memory.add_caches(CACHES_OF_TEST, red_zone=red_zone)
    memory.add_slab(4, 4, caches["pool_workqueue"])
    # In the third page of the slab, whose struct page refers to the first one.
    address = DIRECT + 0x6000 + 0x140
    (found,) = of_kind(printed(library, memory, address, tmp_path), "slab")
    stride = 512 + red_zone
    assert found == [f"{address:x}", str(stride), str((0x2000 + 0x140) % stride), "pool_workqueue"]


def test_page_that_is_no_slab_has_no_name(library: ctypes.CDLL, tmp_path: Path) -> None:
    memory = Memory()
    caches = memory.add_caches(CACHES_OF_TEST)
    memory.add_slab(4, 1, caches["kmalloc-64"] + 8)  # a pointer to something else
    assert not of_kind(printed(library, memory, DIRECT + 0x4000, tmp_path), "slab")
    assert not of_kind(printed(library, memory, 0x7F0000001000, tmp_path), "slab")
    assert not of_kind(printed(library, memory, DIRECT + 0x4000, tmp_path, slab_caches=None), "slab")


def test_list_without_end_is_no_endless_loop(library: ctypes.CDLL, tmp_path: Path) -> None:
    memory = Memory()
    caches = memory.add_caches(CACHES_OF_TEST)
    memory.word(caches["pool_workqueue"] + LIST_OFFSET, caches["kmem_cache"] + LIST_OFFSET)
    memory.add_pools()
    memory.word(FIRST_POOL + HASH_NODE, FIRST_POOL + HASH_NODE)
    assert printed(library, memory, DIRECT + 0x4000, tmp_path)


def test_transfers_of_the_locks_of_all_pools(library: ctypes.CDLL, tmp_path: Path) -> None:
    memory = Memory()
    memory.add_pools()
    library.data_add_line(FIRST_POOL + 8, 1, 30)
    library.data_add_line(FIRST_POOL + 8, 2, 4)
    library.data_add_line(FIRST_POOL + 64, 2, 1000)  # the pool's next line
    library.data_add_line(BOUND_POOL + 0x4000, 3, 5)
    records = printed(library, memory, 0, tmp_path)
    size = str(POOL_BYTES)
    assert of_kind(records, "pool") == [
        [f"{BOUND_POOL:x}", size, "0", "0", "0", "0", "0", "0"],
        [f"{BOUND_POOL + 0x4000:x}", size, "1", "2", "0", "0", "0", "5"],
        [f"{FIRST_POOL:x}", size, "unbound", "8", "0", "30", "4", "0"],
    ]
    assert of_kind(records, "percpu") == [
        ["0", f"{DIRECT + 0x8000:x}", "16384"],
        ["1", f"{DIRECT + 0xC000:x}", "16384"],
    ]
