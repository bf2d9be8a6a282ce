"""Attempts of a hostile command to use disk or memory that nothing counts, and to outlive its sandbox."""

from __future__ import annotations

import io
import os
import select
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from wqlab_worker import watch
from wqlab_worker.sandbox import GIB, MIB, Finished, Limits, Sandbox, Stop, limit_error
from wqlab_worker.volume import file_limit, open_volume
from wqlab_worker.watch import disk_usage

LIMITS = Limits(
    wall_s=3600, disk_bytes=32 * MIB, file_bytes=4 * GIB, memory_bytes=512 * MIB, processes=64, tmp_bytes=8 * MIB
)
FILL = """
import os, sys, time
written = 0
def fill(descriptor, limit=256):
    # Report each MiB, so that the test can count what was really stored, and keep the file open.
    global written
    while written < limit:
        try:
            written += os.write(descriptor, bytes(1 << 20)) / (1 << 20)
        except OSError as error:
            print(error, flush=True)
            break
        print("stored", written, flush=True)
    time.sleep(600)
"""


def attack(out: Path, code: str, limits: Limits = LIMITS) -> tuple[Finished, str]:
    log = io.BytesIO()
    (out / "attack.py").write_text(FILL + code)
    finished = Sandbox(writable={"/out": out}, limits=limits).run(["/usr/bin/python3", "/out/attack.py"], log=log)
    return finished, log.getvalue().decode()


def stored_mib(output: str) -> float:
    return max((float(line.split()[1]) for line in output.splitlines() if line.startswith("stored")), default=0.0)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    "code",
    [
        "f = os.open('/out/f', os.O_CREAT | os.O_RDWR); os.unlink('/out/f'); fill(f)",
        "os.mkdir('/out/d'); f = os.open('/out/d/f', 65); os.chmod('/out/d', 0); fill(f)",
        "f = os.open('/out/f', 65); os.chmod('/out', 0); fill(f)",
        "fill(os.open('/out', os.O_TMPFILE | os.O_RDWR))",
        "time.sleep = lambda s: None\n[fill(os.open(f'/out/{n}', 65), written + 1) for n in range(99)]",
        "os.mkdir('/out/ccache'); fill(os.open('/out/ccache/f', 65))",
    ],
    ids=["unlinked", "unreadable folder", "unreadable output", "nameless", "many files", "compiler cache"],
)
def test_stored_bytes_are_bounded_by_the_kernel(out: Path, code: str) -> None:
    finished, output = attack(out, code)
    assert finished.stopped is Stop.DISK, output
    assert 0 < stored_mib(output) <= LIMITS.disk_bytes / MIB
    failure = limit_error(finished.stopped, "the build").failure
    assert (failure.kind.value, failure.summary) == ("user", "the build exceeded the limit of disk")
    assert disk_usage(out) < MIB


def test_unlinked_file_in_tmp_is_bounded(out: Path) -> None:
    finished, output = attack(out, "f = os.open('/tmp/f', 66); os.unlink('/tmp/f'); fill(f)")
    assert finished.stopped is Stop.TMP, output
    assert 0 < stored_mib(output) <= LIMITS.tmp_bytes / MIB


@pytest.mark.parametrize(
    "code",
    [
        "fill(os.memfd_create('m'), 2000)",
        "fill(os.open('/dev/shm/f', 65), 2000)",
        "import mmap\nfor n in range(64): m = mmap.mmap(-1, 64 << 20); m.write(bytes(64 << 20)); print('stored', 64)",
        "import mmap\nm = mmap.mmap(os.open('/dev/zero', 2), 64 << 20); m.write(bytes(64 << 20)); print('stored', 64)",
        "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\n"
        "assert c.shmget(0, 64 << 20, 0o1600) >= 0, os.strerror(ctypes.get_errno())\nprint('stored', 64)",
        "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\n"
        "assert c.syscall(425, 8, bytes(120)) >= 0, os.strerror(ctypes.get_errno())\nprint('stored', 64)",
    ],
    ids=["memfd", "/dev/shm", "shared mapping", "mapping of /dev/zero", "shared memory segment", "io_uring"],
)
def test_memory_outside_processes_is_refused(out: Path, code: str) -> None:
    finished, output = attack(out, code)
    assert finished.exit_code == 1
    assert finished.stopped is None
    assert stored_mib(output) == 0
    assert any(text in output for text in ("Function not implemented", "Read-only file system", "No such device"))


def test_memory_of_many_processes_is_bounded(out: Path) -> None:
    code = "[os.fork() for n in range(4)]; b = bytearray(80 << 20); print('stored 80', flush=True); time.sleep(600)"
    finished, output = attack(out, code)
    assert finished.stopped is Stop.MEMORY, output


def test_memory_of_one_process_is_refused_by_the_kernel(out: Path) -> None:
    finished, output = attack(out, "b = bytearray(2 << 30); print('stored 2048')")
    assert finished.exit_code == 1
    assert "MemoryError" in output


def test_written_files_count_as_memory(out: Path) -> None:
    limits = replace(LIMITS, memory_bytes=64 * MIB, disk_bytes=GIB)
    code = "os.write(os.open('/out/f', 65), bytes(48 << 20)); b = b'x' * (40 << 20); time.sleep(600)"
    finished, output = attack(out, code, limits)
    assert finished.stopped is Stop.MEMORY, output


def test_fork_bomb_ends_by_the_limit_of_processes(out: Path) -> None:
    finished, _ = attack(
        out, "while True:\n    try:\n        os.fork()\n    except OSError:\n        time.sleep(0.01)\n"
    )
    assert finished.stopped is Stop.PROCESSES


def test_threads_count_as_processes(out: Path) -> None:
    code = (
        "import threading; threading.stack_size(65536)\n"
        "for n in range(99): threading.Thread(target=time.sleep, args=(600,)).start()"
    )
    finished, output = attack(out, code)
    assert finished.stopped is Stop.PROCESSES, output


@pytest.mark.parametrize("hide", ["", "os.chmod('/out/d', 0)"])
def test_number_of_files_is_bounded(out: Path, hide: str) -> None:
    code = (
        "os.mkdir('/out/d'); d = os.open('/out/d', os.O_DIRECTORY)\n" + hide + "\nn = 0\ntry:\n    while n < 50000:\n"
        "        os.close(os.open(str(n), 65, dir_fd=d)); n += 1\nexcept OSError as error: print(error)\n"
        "print('stored', n, flush=True); time.sleep(600)"
    )
    if hide:
        # Without search permission the folder is still reached through the working folder of the process.
        code = code.replace(hide, "os.fchmod(d, 0o300)")
    finished, output = attack(out, code)
    assert finished.stopped is Stop.FILES, output
    assert 0 < stored_mib(output) <= file_limit(LIMITS.disk_bytes)


def test_sparse_files_take_no_disk_outside(out: Path) -> None:
    code = "for n in range(50): os.truncate(os.open(f'/out/{n}', 65), 3 << 30)"
    finished, _ = attack(out, code)
    assert finished.stopped is Stop.DISK
    assert disk_usage(out) <= LIMITS.disk_bytes
    assert sum(path.stat().st_size for path in out.iterdir()) <= LIMITS.disk_bytes


def test_hard_links_do_not_multiply_outside(out: Path) -> None:
    code = "f = os.open('/out/f', 65); os.write(f, bytes(4 << 20))\nfor n in range(100): os.link('/out/f', f'/out/{n}')"
    finished, _ = attack(out, code)
    assert finished.stopped is Stop.DISK
    assert disk_usage(out) <= LIMITS.disk_bytes


def test_devices_pipes_and_links_are_not_copied_as_files(out: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the lab")
    finished, _ = attack(
        out, f"os.mkfifo('/out/pipe'); os.symlink('{secret}', '/out/link'); os.symlink('/etc', '/out/folder')"
    )
    assert finished.stopped is None
    assert sorted(path.name for path in out.iterdir()) == ["attack.py", "folder", "link"]
    assert (out / "link").readlink() == secret


def test_daemon_and_its_unlinked_file_are_gone_at_the_end(out: Path) -> None:
    mark = f"survivor-{os.getpid()}"
    code = (
        f"if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        f"        os.execv('/usr/bin/python3', ['{mark}', '-c', 'import time; time.sleep(600)'])\ntime.sleep(0.5)"
    )
    with open_volume(LIMITS) as volume:
        place = volume.folder("out")
        (place / "attack.py").write_text(FILL + code)
        sandbox = Sandbox(writable={"/out": place}, limits=LIMITS, volume=volume)
        assert sandbox.run(["/usr/bin/python3", "/out/attack.py"], log=io.BytesIO()).exit_code == 0
        found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        assert not [line for line in found.splitlines() if line.startswith(mark)]
        holder = volume.holder
    assert not Path(f"/proc/{holder}/root").exists()


def test_volume_ends_with_its_worker(tmp_path: Path) -> None:
    code = (
        "import time\nfrom wqlab_worker.limits import Limits\nfrom wqlab_worker.volume import open_volume\n"
        "with open_volume(Limits(disk_bytes=1 << 20, tmp_bytes=1 << 20)) as v:\n"
        "    print(v.holder, flush=True)\n    time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout
        holder = int(worker.stdout.readline())
        descriptor = os.pidfd_open(holder)
        worker.kill()
    assert select.select([descriptor], [], [])[0]
    os.close(descriptor)


def test_machine_without_memory_blames_only_who_holds_it(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = replace(LIMITS, memory_bytes=1200 * MIB)

    def run_out(code: str) -> Stop | None:
        """Let the machine seem to run out of memory when the command says so."""
        ready = threading.Event()
        monkeypatch.setattr(watch, "memory_reserve", lambda: sys.maxsize if ready.is_set() else 0)
        (out / "attack.py").write_text(code + "; print('ready', flush=True); import time; time.sleep(600)")
        sandbox = Sandbox(writable={"/out": out}, limits=limits)
        command = ["/usr/bin/python3", "/out/attack.py"]
        return sandbox.run(command, log=io.BytesIO(), on_line=lambda line: ready.set()).stopped

    assert run_out("b = b'x' * (900 << 20)") is Stop.MEMORY
    stopped = run_out("b = b'x'")
    assert stopped is Stop.MACHINE
    assert limit_error(stopped, "the build").failure.kind.value == "infrastructure"


def test_other_socket_families_do_not_exist(out: Path) -> None:
    """AF_VSOCK reaches the hypervisor of the host, whatever the network namespace."""
    _, output = attack(
        out,
        "import socket\n"
        "made = set()\n"
        "for family in range(1, 46):\n"
        "    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):\n"
        "        try:\n"
        "            socket.socket(family, kind).close()\n"
        "            made.add(family)\n"
        "        except OSError:\n"
        "            pass\n"
        "print('made', *sorted(made))\n",
    )
    assert output.startswith("made 1 2 ")
    assert set(output.split()[1:]) <= {"1", "2", "10", "16"}
