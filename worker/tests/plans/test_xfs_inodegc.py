"""Plan xfs-inodegc: the number of files, and the reduction of its trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_worker.measure.collect import Records
from wqlab_worker.measure.parsers.histogram import read_histogram

from .scripts import AWKS, call, trace

NAME = "xfs-inodegc"
SCALED = " (scaled to this device's memory; the plan asks for 2500)"


@pytest.mark.parametrize(
    ("memory_mib", "extents", "share", "expected"),
    [
        (65536, 1, "1/1", "64 jobs, 10000 files each, 1 extents in a file"),
        (65536, 16, "1/4", "64 jobs, 2500 files each, 16 extents in a file"),
        # 1024 MiB for the files, of 68 KiB each.
        (
            2176,
            16,
            "1/4",
            "64 jobs, 240 files each, 16 extents in a file (scaled to this device's memory; the plan asks for 2500)",
        ),
    ],
)
def test_number_of_files_is_scaled_to_memory(
    tmp_path: Path, memory_mib: int, extents: int, share: str, expected: str
) -> None:
    command = f"echo {memory_mib} >$WORK/memory_mib\nscale 10000"
    found = call(NAME, command, tmp_path, JOBS="64", EXTENTS=str(extents), SHARE=share, SCENARIO="small")
    assert found.facts["scale small"] == expected


def test_device_without_memory_for_a_file_fails_by_name(tmp_path: Path) -> None:
    command = "echo 128 >$WORK/memory_mib\n(scale 10000) || true"
    found = call(NAME, command, tmp_path, JOBS="64", EXTENTS="1", SHARE="1/1")
    assert found.failure and found.failure.summary == "not enough memory for the files of 64 jobs: 0 KiB"


def line(task: str, cpu: int, second: float, event: str) -> str:
    return f"     {task}   [{cpu:03}] ..... {second:.6f}: {event}\n"


def unlinked(cpu: int, second: float, inode: int) -> str:
    return line("fio-101", cpu, second, f"xfs_inode_set_need_inactive: dev 252:0 ino {inode:#x} iflags 0x0")


def freed(cpu: int, second: float, inode: int, worker: str) -> str:
    return line(worker, cpu, second, f"xfs_inode_inactivating: dev 252:0 ino {inode:#x} iflags 0x1")


def queued(cpu: int, second: float, work: str, requested: int) -> str:
    return line(
        "<idle>-0",
        cpu,
        second,
        f"workqueue_queue_work: work struct=00000000{work} function=xfs_inodegc_worker workqueue=xfs-inodegc/nullb0 "
        f"req_cpu={requested} cpu={cpu}",
    )


def started(cpu: int, second: float, work: str, worker: str) -> str:
    return line(
        worker, cpu, second, f"workqueue_execute_start: work struct 00000000{work}: function xfs_inodegc_worker"
    )


TRACE = (
    unlinked(0, 1.0, 0x83)
    + unlinked(0, 1.001, 0x84)
    # Queued again before it starts, for CPU 0.
    + queued(0, 1.004, "aa01", 0)
    + queued(0, 1.0041, "aa01", 0)
    + started(0, 1.005, "aa01", "kworker/0:1-9")
    + freed(0, 1.0051, 0x83, "kworker/0:1-9")
    + freed(0, 1.0052, 0x84, "kworker/0:1-9")
    # Unlinked on CPU 1 and freed on CPU 0, with a work for any CPU that CPU 1 queued.
    + unlinked(1, 2.0, 0x85)
    + line("fio-101", 1, 2.0001, "xfs_inodegc_throttle: dev 252:0 m_features 0x1 opstate () s_flags 0x1 caller x")
    + queued(1, 2.001, "aa02", 512)
    + started(0, 2.002, "aa02", "kworker/u4:1-10")
    + freed(0, 2.0021, 0x85, "kworker/u4:1-10")
    # For any CPU, queued again by another CPU before it starts; the next time by one that starts it.
    + queued(0, 2.1, "aa03", 512)
    + queued(1, 2.11, "aa03", 512)
    + started(1, 2.12, "aa03", "kworker/u4:1-10")
    + queued(0, 2.2, "aa03", 512)
    + started(0, 2.21, "aa03", "kworker/u4:1-10")
    # A work of another workqueue on the same worker, and an inode that is never freed.
    + started(0, 2.5, "bb01", "kworker/0:1-9")
    + unlinked(1, 3.0, 0x86)
)


def reduced(tmp_path: Path, awk: str) -> Records:
    trace(tmp_path, TRACE)
    system = tmp_path / "sys/devices/system/cpu"
    system.mkdir(parents=True)
    (system / "kernel_max").write_text("511\n")
    return call(NAME, f'AWK="{awk}"\nreduce_trace', tmp_path, SYS=str(tmp_path / "sys"))


@pytest.mark.parametrize("awk", AWKS)
def test_trace_is_reduced(tmp_path: Path, awk: str) -> None:
    found = reduced(tmp_path, awk)
    assert found.values == {
        "unlinked": 4,
        "inactivated": 3,
        "inactivated_at_home": 2,
        "works": 4,
        "queued": 6,
        "throttled": 1,
        "largest_batch": 2,
    }
    assert sorted(found.frame("pairs")) == ["0 0 2", "1 0 1", "1 1 1"]
    assert dict(read_histogram(found, "freed_after_us")) == {5100: 1, 4200: 1, 2100: 1}
