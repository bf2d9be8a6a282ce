"""Attempts of a hostile command to reach, change or use more than the sandbox allows."""

from __future__ import annotations

import io
import os
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from wqlab_worker.failures import InfrastructureError
from wqlab_worker.sandbox import MIB, Finished, Limits, Sandbox, Stop
from wqlab_worker.workspace import remove_tree

LIMITS = Limits(wall_s=3600, disk_bytes=64 * MIB, file_bytes=256 * MIB, processes=64, log_bytes=MIB, tmp_bytes=8 * MIB)


class Box:
    def __init__(self, folder: Path) -> None:
        self.out = folder / "out"
        self.out.mkdir()

    def run(self, script: str, limits: Limits = LIMITS) -> tuple[Finished, str]:
        log = io.BytesIO()
        sandbox = Sandbox(writable={"/out": self.out}, limits=limits)
        finished = sandbox.run(["sh", "-c", script], log=log)
        return finished, log.getvalue().decode()


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_output_and_exit_code_are_returned(box: Box) -> None:
    finished, output = box.run("echo to stdout; echo to stderr >&2; exit 7")
    assert output == "to stdout\nto stderr\n"
    assert (finished.exit_code, finished.stopped) == (7, None)


def test_environment_and_files_of_worker_are_hidden(box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tmp_path / "worker-token"
    token.write_text("secret-of-the-lab")
    monkeypatch.setenv("WQLAB_WORKER_TOKEN", "secret-of-the-lab")
    _, output = box.run(
        f"env; cat {token}; cat /proc/*/environ /proc/*/cmdline; ls /home /root /var /run {tmp_path}; cat /etc/shadow"
    )
    assert "secret-of-the-lab" not in output
    _, listing = box.run("ls -A /; ls -A /etc")
    usual = {"bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "out", "proc", "sbin", "tmp", "usr"}
    assert set(listing.split()) <= usual | {"alternatives", "ld.so.cache", "passwd"}


def test_network_is_unreachable(box: Box) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0wqlab-test-{os.getpid()}")
        abstract.listen()
        port = server.getsockname()[1]
        attempt = (
            "import socket\n"
            f"for family, address in ((socket.AF_INET, ('127.0.0.1', {port})), (socket.AF_INET, ('1.1.1.1', 443)),"
            f" (socket.AF_UNIX, '\\0wqlab-test-{os.getpid()}')):\n"
            "    try:\n"
            "        socket.socket(family).connect(address)\n"
            "        print('reached', address)\n"
            "    except OSError as error:\n"
            "        print('refused', error.errno)\n"
        )
        (box.out / "attempt.py").write_text(attempt)
        _, output = box.run("/usr/bin/python3 /out/attempt.py")
    assert output.count("refused") == 3
    assert "reached" not in output


def test_only_bound_folders_are_writable(box: Box, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_text("as it was")
    log = io.BytesIO()
    Sandbox(read_only={"/src": source}, writable={"/out": box.out}, limits=LIMITS).run(
        [
            "sh", "-c",
            "for place in / /usr /usr/bin /etc /dev /dev/shm /src /src/file /out /tmp; do"
            " if (echo x > $place/x || echo x > $place) 2>/dev/null; then echo $place; fi; done;"
            " mount -o remount,rw /src; chmod 777 /src/file; mv /src/file /src/other",
        ],
        log=log,
    )  # fmt: skip
    assert [line for line in log.getvalue().decode().splitlines() if line.startswith("/") and ":" not in line] == [
        "/out",
        "/tmp",
    ]
    assert (source / "file").read_text() == "as it was"


def test_command_has_no_capabilities_and_cannot_unshare(box: Box) -> None:
    _, output = box.run("grep CapEff /proc/self/status; unshare --user true && echo unshared; id -u")
    assert "CapEff:\t0000000000000000" in output
    assert "unshared" not in output
    assert output.rstrip().endswith("1000")


def test_daemons_are_killed_at_the_end(box: Box) -> None:
    beat = box.out / "beat"
    box.run(
        "setsid sh -c 'while :; do date +%s%N > /out/beat; done' </dev/null >/dev/null 2>&1 &"
        " until test -s /out/beat; do :; done"
    )
    # Every process of the namespace is dead when run() returns, so nothing can write any more.
    before = beat.stat().st_mtime_ns
    os.sync()
    assert beat.stat().st_mtime_ns == before
    assert not [
        line
        for line in subprocess.run(
            ["ps", "-eo", "args"], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        if "/out/beat" in line and "pytest" not in line
    ]


def test_fork_bomb_is_limited(box: Box) -> None:
    finished, output = box.run("b() { b | b & b; }; b; sleep 2", replace(LIMITS, wall_s=8))
    assert finished.stopped in (None, Stop.TIME, Stop.PROCESSES)
    assert finished.stopped is not None or "fork" in output.lower()


def test_disk_usage_is_limited(box: Box) -> None:
    finished, _ = box.run("while :; do head -c 4M /dev/zero >> /out/many; done")
    assert finished.stopped is Stop.DISK
    finished, output = box.run("head -c 32M /dev/zero > /tmp/full")
    assert finished.exit_code != 0
    assert "No space left" in output


def test_too_deep_tree_exceeds_limit_of_files(box: Box) -> None:
    deep = "import os\nos.chdir('/out')\nwhile True:\n    os.mkdir('d'); os.chdir('d')\n"
    finished, _ = box.run(f'/usr/bin/python3 -c "{deep}"; sleep 20')
    assert finished.stopped is Stop.FILES
    remove_tree(box.out)
    assert not box.out.exists()


def test_file_size_is_limited(box: Box) -> None:
    finished, _ = box.run("head -c 16M /dev/zero > /out/one", replace(LIMITS, file_bytes=MIB))
    assert finished.exit_code != 0
    assert (box.out / "one").stat().st_size <= MIB


def test_memory_is_limited(box: Box) -> None:
    hog = "import time; m = bytearray(300 << 20); time.sleep(600)"
    finished, _ = box.run(f'/usr/bin/python3 -c "{hog}"', replace(LIMITS, memory_bytes=200 * MIB))
    assert finished.stopped is Stop.MEMORY


def test_time_is_limited(box: Box) -> None:
    finished, output = box.run("trap '' TERM INT; echo started; while :; do sleep 1; done", replace(LIMITS, wall_s=5))
    assert finished.stopped is Stop.TIME
    assert output == "started\n"


def test_log_is_limited(box: Box) -> None:
    finished, output = box.run("yes | head -c 4M", replace(LIMITS, log_bytes=1000))
    assert finished.log_truncated
    assert len(output) == 1000


def test_exception_in_on_line_kills_the_command(box: Box) -> None:
    def refuse(line: str) -> None:
        raise KeyboardInterrupt(line)

    with pytest.raises(KeyboardInterrupt, match="first"):
        Sandbox(limits=LIMITS).run(["sh", "-c", "echo first; sleep 600"], log=io.BytesIO(), on_line=refuse)


def test_on_tick_is_called_without_output() -> None:
    ticks: list[int] = []

    def tick() -> None:
        ticks.append(1)
        if len(ticks) == 2:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        Sandbox(limits=LIMITS).run(["sleep", "600"], log=io.BytesIO(), on_tick=tick)


def test_sandbox_setup_error_is_an_infrastructure_error(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="does not start"):
        Sandbox(read_only={"/src": tmp_path / "missing"}, limits=LIMITS).run(["true"], log=io.BytesIO())


def test_folder_that_is_too_large_for_the_volume_is_stopped_for_disk(tmp_path: Path) -> None:
    """A fetched branch may be larger than the volume: the series is at fault, not the lab."""
    folder = tmp_path / "fetched"
    folder.mkdir()
    with (folder / "pack").open("wb") as pack:
        pack.truncate(2 * MIB)
    sandbox = Sandbox(writable={"/work": folder}, limits=replace(LIMITS, disk_bytes=MIB))
    finished = sandbox.run(["true"], log=io.BytesIO())
    assert (finished.stopped, finished.exit_code) == (Stop.DISK, 1)
