"""wqmon, run on memory images: ELF core files like /proc/kcore."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from wqlab_bench import rootfs

BASE, SIZE = 0xFFFF888000000000, 64 << 12
HEAD = BASE + 0x1000
LAYOUT = {
    "workqueue_struct.pwqs": 0,
    "workqueue_struct.list": 16,
    "workqueue_struct.name": 192,
    "workqueue_struct.name.size": 32,
    "pool_workqueue.nr_in_flight": 28,
    "pool_workqueue.nr_in_flight.count": 16,
    "pool_workqueue.pwqs_node": 136,
    "pool_workqueue.stats": 200,
    "pool_workqueue.stats.count": 8,
    **{
        f"stat.{name}": index
        for index, name in enumerate(
            ("started", "completed", "cpu_us", "cpu_intensive", "cm_wakeups", "repatriated", "mayday", "rescued")
        )
    },
}


class Memory:
    """Kernel memory with workqueues; `write` writes it to the file that wqmon reads."""

    def __init__(self, folder: Path) -> None:
        self.kcore, self.kallsyms, self.layout = folder / "kcore", folder / "kallsyms", folder / "layout"
        self.series = folder / "series"
        self.data = bytearray(SIZE)
        self.last = HEAD
        self.pwqs: dict[int, int] = {}
        self.set(HEAD, HEAD)
        self.kallsyms.write_text(f"{BASE:x} T _stext\n{HEAD:x} d workqueues\n{BASE:x} d workqueues_other\n")
        self.layout.write_text("".join(f"{key} {value}\n" for key, value in LAYOUT.items()))

    def set(self, address: int, *values: int) -> None:
        struct.pack_into(f"<{len(values)}Q", self.data, address - BASE, *values)

    def workqueue(self, address: int, name: bytes) -> None:
        self.data[address - BASE + 192 : address - BASE + 192 + len(name)] = name
        self.set(address, address)
        self.pwqs[address] = address
        self.set(self.last, address + 16)
        self.set(address + 16, HEAD)
        self.last = address + 16

    def pool(self, workqueue: int, address: int, stats: list[int], pending: int = 0) -> None:
        self.set(self.pwqs[workqueue], address + 136)
        self.set(address + 136, workqueue)
        self.pwqs[workqueue] = address + 136
        self.count(address, stats, pending)

    def count(self, address: int, stats: list[int], pending: int = 0) -> None:
        self.set(address + 200, *stats, *[0] * (8 - len(stats)))
        struct.pack_into("<i", self.data, address - BASE + 28 + 4, pending)

    def write(self) -> None:
        """Write the image in place, because wqmon has the file open."""
        header = (
            b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
        )
        other = struct.pack("<IIQQQQQQ", 1, 7, 4096, 0xFFFFFFFF81000000, 0, 4096, 4096, 4096)
        ours = struct.pack("<IIQQQQQQ", 1, 7, 8192, BASE, 0, SIZE, SIZE, 4096)
        image = (header + other + ours).ljust(8192, b"\0") + bytes(self.data)
        with self.kcore.open("r+b" if self.kcore.exists() else "wb") as file:
            file.write(image)

    def command(self, program: Path) -> list[str]:
        return [str(path) for path in (program, self.layout, self.series, self.kcore, self.kallsyms)]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wqmon")
    rootfs.Image("x86_64", folder, folder).static_program(rootfs._MONITOR)
    return folder / "wqmon"


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    made = Memory(tmp_path)
    made.workqueue(BASE + 0x2000, b"events")
    made.pool(BASE + 0x2000, BASE + 0x4000, [100, 99, 5000, 1, 2, 0, 3, 4], pending=4)
    made.pool(BASE + 0x2000, BASE + 0x4200, [10, 10])
    made.workqueue(BASE + 0x3000, b"kcryptd-253:0-1")
    made.pool(BASE + 0x3000, BASE + 0x4400, [7, 7])
    made.write()
    return made


@pytest.fixture
def watching(program: Path, memory: Memory) -> Iterator[subprocess.Popen[str]]:
    """A running wqmon after its first sample. It takes another sample when it is terminated."""
    process = subprocess.Popen(memory.command(program), stdout=subprocess.PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "watching\n"
    yield process
    process.kill()
    process.wait()


def lines(memory: Memory, process: subprocess.Popen[str]) -> list[list[str]]:
    """Terminate wqmon and return the last line of each workqueue, without its time."""
    process.terminate()
    assert process.wait() == 0
    rows = [line.split("\t") for line in memory.series.read_text().splitlines()]
    assert rows[:2] == [
        ["source", "stats"],
        ["columns", *(k[5:] for k in LAYOUT if k.startswith("stat.")), "in_flight", "queued"],
    ]
    return list({row[1]: row[1:] for row in rows[2:] if row[0] != "note"}.values())


def test_counters_are_summed_over_pools_since_start(memory: Memory, watching: subprocess.Popen[str]) -> None:
    memory.count(BASE + 0x4000, [150, 148, 9000, 1, 5, 0, 3, 5], pending=6)
    memory.count(BASE + 0x4200, [11, 11])
    memory.write()
    rows = lines(memory, watching)
    assert rows == [["events", "51", "50", "4000", "0", "3", "0", "0", "1", "2", "4"]], "idle kcryptd has no line"


def test_later_pools_and_workqueues_are_counted(memory: Memory, watching: subprocess.Popen[str]) -> None:
    """Add a pool to a workqueue (as after a change of its scope), and a workqueue with the name of another."""
    memory.pool(BASE + 0x3000, BASE + 0x4600, [5, 5])
    memory.workqueue(BASE + 0x6000, b"events")
    memory.pool(BASE + 0x6000, BASE + 0x7000, [3, 2])
    memory.write()
    assert {row[0]: row[1:3] for row in lines(memory, watching)} == {
        "events": ["3", "2"],
        "kcryptd-253:0-1": ["5", "5"],
    }


def test_counters_of_removed_pool_are_kept(memory: Memory, watching: subprocess.Popen[str]) -> None:
    memory.set(BASE + 0x2000, BASE + 0x4200 + 136)
    memory.count(BASE + 0x4200, [12, 12])
    memory.write()
    assert [row[:3] for row in lines(memory, watching)] == [["events", "2", "2"]]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param((HEAD, 0), id="null"),
        pytest.param((HEAD, 0xDEAD000000000100), id="poison"),
        pytest.param((HEAD, BASE + 0x2011), id="misaligned"),
        pytest.param((BASE + 0x3010, BASE + 0x2010), id="endless list"),
        pytest.param((BASE + 0x2000 + 192, 0x0101010101010101), id="no name"),
        pytest.param((BASE + 0x4000 + 136, BASE + SIZE + 4096), id="pool outside memory"),
        pytest.param((BASE + 0x4200 + 136, BASE + 0x4000 + 136), id="endless list of pools"),
    ],
)
def test_damaged_list_ends_only_the_sample(
    memory: Memory, watching: subprocess.Popen[str], damage: tuple[int, int]
) -> None:
    intact = bytes(memory.data)
    memory.set(*damage)
    memory.write()
    while "incomplete" not in memory.series.read_text():
        assert watching.poll() is None
    memory.data[:] = intact
    memory.count(BASE + 0x4400, [8, 8])
    memory.write()
    assert ["kcryptd-253:0-1", "1", "1"] in [row[:3] for row in lines(memory, watching)]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (
            lambda memory: memory.layout.write_text("stat.started 0\n"),
            "offsets of this kernel's structures are incomplete",
        ),
        (lambda memory: memory.layout.unlink(), "no offsets"),
        (lambda memory: memory.kallsyms.write_text("0000000000000000 d workqueues\n"), "kptr_restrict"),
        (lambda memory: memory.kcore.write_bytes(b"\x7fELF"), "no readable /proc/kcore"),
        (lambda memory: memory.kallsyms.write_text("ffffffff82000000 d workqueues\n"), "does not have the list"),
    ],
)
def test_wqmon_reports_why_it_cannot_start(program: Path, memory: Memory, damage, reason: str) -> None:  # type: ignore[no-untyped-def]
    damage(memory)
    done = subprocess.run(memory.command(program), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert reason in done.stderr


def test_stat_missing_in_kernel_is_not_zero(program: Path, memory: Memory) -> None:
    older = {key: value for key, value in LAYOUT.items() if key not in ("stat.repatriated", "stat.rescued")}
    memory.layout.write_text("".join(f"{key} {value}\n" for key, value in older.items()))
    process = subprocess.Popen(memory.command(program), stdout=subprocess.PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "watching\n"
    memory.count(BASE + 0x4400, [9, 9])
    memory.write()
    assert ["kcryptd-253:0-1", "2", "2", "0", "0", "0", "-", "0", "-", "0", "0"] in lines(memory, process)
