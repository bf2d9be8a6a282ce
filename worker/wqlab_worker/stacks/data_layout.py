"""Find where a kernel keeps its per-CPU memory, slab caches and worker pools, for the plugin of an instrumented device.

As in `decoder.py`, vmlinux is read in the sandbox only, and the answer is validated.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import structlog
from pydantic import StringConstraints, TypeAdapter, ValidationError

from wqlab_contracts.messages import Artifact, Kernel

from ..failures import JobError
from .decoder import LIMITS, run_in_sandbox

log = structlog.get_logger()

_Key = Literal[
    "direct_map", "memory_start", "per_cpu_offset", "per_cpu_start", "per_cpu_unit", "slab_caches", "kmem_cache",
    "mem_section", "section_shift", "cpu_pools", "cpu_pools_count", "bh_pools", "bh_pools_count", "unbound_pools",
    "unbound_pools_count", "pool_size", "pool_lock", "pool_cpu", "pool_id", "pool_hash_node", "spin_slow",
    "spin_slow_size", "lock_text", "lock_text_size",
]  # fmt: skip
_LAYOUT: TypeAdapter[dict[_Key, Annotated[str, StringConstraints(pattern=r"^@?[0-9a-f]{1,16}$")]]] = TypeAdapter(
    dict[_Key, Annotated[str, StringConstraints(pattern=r"^@?[0-9a-f]{1,16}$")]]
)


def data_layout(kernel: Kernel, fetch: Callable[[Artifact], Path]) -> str:
    """Return the text of the layout file that the plugin reads (plugin/kernel_data.h); empty if it cannot be made.

    It never raises, because counts without names of data are better than none.
    `fetch` returns the path of an artifact on this machine.
    """
    if kernel.vmlinux is None:
        return ""
    try:
        return read(fetch(kernel.vmlinux))
    except JobError as error:
        log.warning("data has no names", reason=str(error))
    except ValidationError:
        log.warning("data has no names", reason="the layout of vmlinux is not usable")
    except Exception as error:  # counts without names are better than none
        log.warning("data has no names", reason=repr(error))
    return ""


def read(vmlinux: Path) -> str:
    """Read the layout from a vmlinux file and return it as text, one `name number` line for each key.

    Raises InfrastructureError if the sandbox fails, and pydantic's ValidationError if its answer is not a layout.
    """
    answer = run_in_sandbox({"/vmlinux": vmlinux}, {}, LIMITS, script="read_data_layout.py")
    return "".join(f"{key} {value}\n" for key, value in sorted(_LAYOUT.validate_json(answer).items()))
