"""A delegated cgroup bounds the memory and processes of a command. Skipped where no cgroup is delegated."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from wqlab_worker import cgroup, watch
from wqlab_worker.sandbox import MIB, Finished, Limits, Sandbox, Stop

LIMITS = Limits(
    wall_s=3600, disk_bytes=512 * MIB, memory_bytes=256 * MIB, processes=64, tmp_bytes=8 * MIB, log_bytes=MIB
)


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the cgroup in which commands get theirs, with the watch over their use switched off."""
    try:
        cgroup.prepare()
    except OSError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(watch, "usage_of", lambda root: watch.Usage(0, 0))
    return cgroup.delegated()


def run(code: str) -> tuple[Finished, str]:
    log = io.BytesIO()
    finished = Sandbox(limits=LIMITS).run(["/usr/bin/python3", "-c", code], log=log)
    return finished, log.getvalue().decode()


def test_kernel_ends_command_that_uses_too_much_memory(group: Path) -> None:
    finished, output = run("import os, time; os.fork(); os.fork(); b = b'x' * (100 << 20); time.sleep(600)")
    assert finished.stopped is Stop.MEMORY, output
    assert not list(group.glob("wqlab-*/memory.max"))[1:]


def test_files_in_volume_count_as_memory(group: Path) -> None:
    finished, output = run("import time; open('/tmp/f', 'wb').write(bytes(6 << 20)); b = bytearray(10); print(len(b))")
    assert (finished.stopped, finished.exit_code, output) == (None, 0, "10\n")


def test_cgroups_of_commands_are_removed(group: Path) -> None:
    run("print()")
    assert [entry.name for entry in group.iterdir() if entry.is_dir()] == [cgroup.WORKERS]


def test_reason_is_given_where_no_cgroup_is_delegated() -> None:
    script = "from wqlab_worker import cgroup\ntry: print(cgroup.delegated())\nexcept OSError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip()
