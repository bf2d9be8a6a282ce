"""Names of the data of cache lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_bench.instrument.stream import Line, PerCpu, Pool, Slab, Window
from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.messages import Artifact, Kernel
from wqlab_worker.backends.instrumented.data_names import DataName, merged_caches, name_of
from wqlab_worker.stacks.counted_code import CountedCode

BASE = 0xFFFF888000000000
MOVED = (0, 1, 0, 0)
WINDOW = Window(
    1,
    per_cpu={0: PerCpu(BASE, 0x1000), 3: PerCpu(BASE + 0x4000, 0x1000)},
    pools=[Pool(BASE + 0x9000, 0x318, None, MOVED), Pool(BASE + 0x4100, 0x318, 3, MOVED)],
)
LINKS = """total 0
drwxr-xr-x    2 root     root             0 Jan  1 00:00 :0000192
lrwxrwxrwx    1 root     root             0 Jan  1 00:00 bio-184 -> :0000192
lrwxrwxrwx    1 root     root             0 Jan  1 00:00 xfs_ili -> :0000192
drwxr-xr-x    2 root     root             0 Jan  1 00:00 task_struct
"""


@pytest.fixture
def code() -> CountedCode:
    image = Artifact(sha256="0" * 64, size=1, kind=ArtifactKind.KERNEL, name="x")
    counted = CountedCode(
        Kernel(recipe="measure", build_id_gnu="ab" * 20, release="6", image=image), lambda _: Path("/none")
    )
    counted.data = {0xFFFFFFFF82000040: "tk_core + 0x40"}
    counted.per_cpu = {0x100: "cpu_worker_pools (per-CPU)"}
    return counted


@pytest.mark.parametrize(
    ("address", "slab", "name"),
    [
        (0x7F0000000000, None, DataName("user space")),
        (BASE + 0x9040, Slab("kmalloc-1k", 1024, 64), DataName("unbound worker_pool + 0x40")),
        (BASE + 0x4100, None, DataName("cpu_worker_pools (per-CPU)", 3)),
        (BASE + 0x200, None, DataName("allocated per-CPU memory", 0)),
        (BASE + 0x10080, Slab("pool_workqueue", 512, 128), DataName("pool_workqueue cache + 0x80")),
        (BASE + 0x10080, Slab("bio-184", 192, 0), DataName("bio-184/xfs_ili cache")),
        (BASE + 0x10080, Slab("kmalloc-16", 16, 8), DataName("kmalloc-16 cache")),
        (0xFFFFFFFF82000040, None, DataName("tk_core + 0x40")),
        (BASE + 0x20000, None, DataName("")),
    ],
)
def test_line_has_the_name_of_its_data(code: CountedCode, address: int, slab: Slab | None, name: DataName) -> None:
    assert name_of(WINDOW, Line(0, address, MOVED, slab), code, merged_caches(LINKS)) == name
