"""Print where a kernel keeps its per-CPU memory, slab caches, worker pools and spinlocks. Runs inside the sandbox.

Argument: vmlinux, made by submitted code. The output is one JSON object: key -> value of a layout file, as described in
`wqlab_bench/instrument/plugin/kernel_data.h`; or `error`. Keys that this kernel lacks are missing.
"""

from __future__ import annotations

import json
import sys

import drgn

WORD = 8
SECTION_SHIFT = 27
"""SECTION_SIZE_BITS of x86-64, and of arm64 with pages of 4 KiB."""
X86_DIRECT_MAP = 0xFFFF888000000000
"""__PAGE_OFFSET_BASE_L4, for a kernel that cannot move it."""
ARM64_DIRECT_MAP = 0xFFFF000000000000
"""PAGE_OFFSET with addresses of 48 bits."""


def read_layout(vmlinux: str) -> dict[str, str]:
    """Return the values by key. Raises LookupError if vmlinux has no symbols."""
    program = drgn.Program()
    module = program.extra_module("vmlinux", create=True)
    module.address_range = (0, (1 << 64) - 1)
    module.try_file(vmlinux, force=True)
    bias = module.debug_file_bias or 0
    found: dict[str, str] = {}

    def address(name: str) -> int | None:
        try:
            # drgn numbers addresses from the start of the image.
            in_image: int = program.symbol(name).address
            return (in_image - bias) % (1 << 64)
        except LookupError:
            return None

    def add(key: str, symbol: str, *, indirect: bool = False) -> None:
        if (place := address(symbol)) is not None:
            found[key] = f"{'@' if indirect else ''}{place:x}"

    if address("memstart_addr") is not None:
        found["direct_map"] = f"{ARM64_DIRECT_MAP:x}"
        add("memory_start", "memstart_addr", indirect=True)
    else:
        found["direct_map"] = f"{X86_DIRECT_MAP:x}"
        add("direct_map", "page_offset_base", indirect=True)
    add("per_cpu_offset", "__per_cpu_offset")
    add("per_cpu_start", "__per_cpu_start")
    add("per_cpu_unit", "pcpu_unit_size", indirect=True)
    add("slab_caches", "slab_caches")
    add("kmem_cache", "kmem_cache", indirect=True)
    if (sections := address("mem_section")) is not None and program.symbol("mem_section").size == WORD:
        found |= {"mem_section": f"@{sections:x}", "section_shift": f"{SECTION_SHIFT:x}"}
    # The kernel's own function, not that for guests of a hypervisor.
    for slow in ("native_queued_spin_lock_slowpath", "queued_spin_lock_slowpath"):
        if "spin_slow" not in found and address(slow) is not None:
            add("spin_slow", slow)
            found["spin_slow_size"] = f"{program.symbol(slow).size:x}"
    edges = address("__lock_text_start"), address("__lock_text_end")
    if edges[0] is not None and edges[1] is not None:
        found |= {"lock_text": f"{edges[0]:x}", "lock_text_size": f"{edges[1] - edges[0]:x}"}
    try:
        pool = program.type("struct worker_pool")
        members = ("lock", "cpu", "id", "hash_node")
        found |= {f"pool_{name}": f"{pool.member(name).bit_offset // 8:x}" for name in members}
        found["pool_size"] = f"{drgn.sizeof(pool):x}"
    except LookupError:
        return found
    for key, symbol, element in (
        ("cpu_pools", "cpu_worker_pools", drgn.sizeof(pool)),
        ("bh_pools", "bh_worker_pools", drgn.sizeof(pool)),
        ("unbound_pools", "unbound_pool_hash", WORD),
    ):
        add(key, symbol)
        if key in found:
            found[f"{key}_count"] = f"{program.symbol(symbol).size // element:x}"
    return found


if __name__ == "__main__":
    try:
        print(json.dumps(read_layout(sys.argv[1])))
    except Exception as error:  # data without names is better than no counts
        print(json.dumps({"error": f"{error}"[:200]}))
