"""The memory that an emulator occupies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from wqlab_worker.backends.instrumented.emulator import HOST_MIB, MEMORY_FACTOR, RESERVED_MIB, bounds, occupied_bytes

MIB = 1 << 20


@pytest.mark.parametrize("wrapper", [[], ["sh", "-c", '"$@"; true', "sh"]], ids=["itself", "below bubblewrap"])
def test_occupied_memory_is_that_of_the_emulator(wrapper: list[str], tmp_path: Path) -> None:
    held = "import sys; held = b'x' * (200 << 20); print('ready', flush=True); sys.stdin.read()"
    command = [*wrapper, "python3", "-c", held]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        assert 200 * MIB < occupied_bytes(process.pid) < 400 * MIB
        process.communicate()
    assert occupied_bytes(process.pid) == 0


def test_the_kernel_refuses_an_emulator_more_memory_than_any_boot_needs() -> None:
    """Between two measurements, too; nothing is touched here, so that the machine needs no memory for the test."""
    most_mib = MEMORY_FACTOR * (256 + HOST_MIB) + RESERVED_MIB
    reserve = "import mmap, sys; mmap.mmap(-1, int(sys.argv[1]) << 20, flags=mmap.MAP_PRIVATE)"
    for mib, status in ((most_mib - 256, 0), (most_mib + 1, 1)):
        done = subprocess.run(
            [*bounds(256), sys.executable, "-c", reserve, str(mib)], check=False, capture_output=True, text=True
        )
        assert done.returncode == status, done.stderr
    assert "Cannot allocate memory" in done.stderr
