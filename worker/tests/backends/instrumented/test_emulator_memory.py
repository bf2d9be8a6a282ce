"""The memory that an emulator occupies."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from wqlab_worker.backends.instrumented.emulator import occupied_bytes

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
