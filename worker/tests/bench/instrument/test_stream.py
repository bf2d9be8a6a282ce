"""Reading the plugin's output, whatever the guest made of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wqlab_bench.instrument import stream
from wqlab_bench.instrument.stream import (
    Blocks,
    CpuClock,
    Frame,
    Line,
    Moved,
    PerCpu,
    Pool,
    Slab,
    SpinWait,
    StreamError,
    Window,
)

WINDOW = (
    "total\t100\t90\t30\t20\t5\n"
    "code\tffffffff81000000\t12\t80\ncode\tffffffff81000000\t8\t10\ncode\t401000\t4\t10\n"
    "moved\tl3\tload\tffffffff81000004\tffffffff81000100\t7\nmoved\tremote\tstore\tffffffff81000100\t0\t2\n"
    "line\t1000\tffff888000001000\t0\t7\t0\t2\n"
    "slab\tffff888000001000\t512\t64\tpool_workqueue\n"
    "cpus\t0\t1\t9\n"
    "locked\tffffffff81000004\t5\n"
    "time\tffffffff81000000\t12500\nclock\t1\t1000\t5000\t700\n"
    "spin\tffff888000052000\tffffffff81000200\t3\t2400000\nslab\tffff888000052000\t1024\t0\tkmalloc-1k\n"
    "spin\tffffffff82000040\tffffffff81000300\t1\t500\n"
    "percpu\t1\tffff888000040000\t8192\n"
    "pool\tffff888000050000\t792\tunbound\t8\t0\t3\t0\t0\npool\tffff888000051000\t792\t1\t2\t0\t0\t0\t4\n"
)

BLOCKS = b"blocks kernel 39\nffffffff81000000\t8\nffffffff81000000\t12\n\n"


def read(tmp_path: Path, *records: bytes) -> list[Frame | Window | Blocks]:
    path = tmp_path / "stream"
    path.write_bytes(b"".join(records))
    return list(stream.read(path))


def frame(name: str, data: bytes) -> bytes:
    return f"send {name} {len(data)}\n".encode() + data + b"\n"


def window(text: str) -> bytes:
    return f"window 1 {len(text)}\n{text}\n".encode()


def test_frames_and_windows_are_read_in_order(tmp_path: Path) -> None:
    tricky = b"window 1 3\nabc\n"
    assert read(tmp_path, frame("fio.json", tricky), window(WINDOW), frame("empty", b""), BLOCKS) == [
        Frame("fio.json", tricky),
        Window(
            1, 100, 90, 30, 20, 5,
            code={0xFFFFFFFF81000000: 90, 0x401000: 10},
            sizes={0xFFFFFFFF81000000: 12, 0x401000: 4},
            moved=[
                Moved("l3", "load", 0xFFFFFFFF81000004, 0xFFFFFFFF81000100, 7),
                Moved("remote", "store", 0xFFFFFFFF81000100, 0, 2),
            ],
            lines=[Line(0x1000, 0xFFFF888000001000, (0, 7, 0, 2), Slab("pool_workqueue", 512, 64))],
            cpus={(0, 1): 9},
            locked_code={0xFFFFFFFF81000004: 5},
            per_cpu={1: PerCpu(0xFFFF888000040000, 8192)},
            pools=[
                Pool(0xFFFF888000050000, 792, None, (0, 3, 0, 0)),
                Pool(0xFFFF888000051000, 792, 1, (0, 0, 0, 4)),
            ],
            times={0xFFFFFFFF81000000: 12500},
            clocks={1: CpuClock(1000, 5000, 700)},
            spins=[
                SpinWait(0xFFFF888000052000, 0xFFFFFFFF81000200, 3, 2400000, Slab("kmalloc-1k", 1024, 0)),
                SpinWait(0xFFFFFFFF82000040, 0xFFFFFFFF81000300, 1, 500),
            ],
        ),
        Frame("empty", b""),
        Blocks({0xFFFFFFFF81000000: 12}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"send a 5\nabc", "ends within a record"),
        (b"send a 3\nabcd\n", "ends within a record"),
        (b"send a", "ends within a header"),
        (b"send " + b"a" * 400 + b" 0\n\n", "ends within a header"),
        (b"send a 99999999999\n", "the limit is"),
        (b"send a -1\n\n", "invalid value"),
        (b"lost the guest ended within a window\n", "the guest ended within a window"),
        (b"other\n", "unknown record"),
        (window("code\t1\t4\t1\n"), "no totals"),
        (b"blocks kernel 7\n1\t4\n2\t\n\n", "invalid value: ''"),
        (window(WINDOW + WINDOW), "invalid value: 'total"),
        (window(WINDOW + "moved\tl4\tload\t1\t1\t1\n"), "invalid value: 'moved"),
        (window(WINDOW + "cpus\t0\t64\t1\n"), "invalid value: '64'"),
        (window(WINDOW + "slab\t40\t512\t64\tx\n"), "invalid value: 'slab"),
        (window(WINDOW + "pool\t40\t8\tnone\t8\t0\t3\t0\t0\n"), "invalid value: 'none'"),
        (window(WINDOW + "code\t0x1\t4\t1\n"), "invalid value: '0x1'"),
    ],
)
def test_invalid_output_is_explained(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(StreamError, match=message):
        read(tmp_path, data)


def test_missing_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(StreamError, match="cannot read"):
        list(stream.read(tmp_path / "none"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 400), replacement=st.binary(max_size=8))
def test_damaged_output_never_crashes_the_reader(tmp_path: Path, place: int, replacement: bytes) -> None:
    whole = frame("fio.json", b"{}") + window(WINDOW)
    damaged = whole[:place] + replacement + whole[place + len(replacement) :]
    try:
        read(tmp_path, damaged)
    except StreamError as error:
        assert str(error)
