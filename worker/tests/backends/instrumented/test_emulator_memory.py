"""The memory that an emulator occupies."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from wqlab_bench.instrument import qemu_arguments
from wqlab_worker.backends.instrumented.emulator import (
    HOST_MIB,
    MEMORY_FACTOR,
    Ended,
    bounds,
    occupied_bytes,
)
from wqlab_worker.backends.instrumented.instrumented_device import emulator_failure

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
    most_mib = MEMORY_FACTOR * (256 + HOST_MIB) + qemu_arguments.TRANSLATED_MIB
    reserve = "import mmap, sys; mmap.mmap(-1, int(sys.argv[1]) << 20, flags=mmap.MAP_PRIVATE)"
    for mib, status in ((most_mib - 256, 0), (most_mib + 1, 1)):
        done = subprocess.run(
            [*bounds(256), sys.executable, "-c", reserve, str(mib)], check=False, capture_output=True, text=True
        )
        assert done.returncode == status, done.stderr
    assert "Cannot allocate memory" in done.stderr


@pytest.mark.parametrize(
    ("status", "counts"),
    [(-signal.SIGABRT, True), (1, True), (-signal.SIGKILL, False), (128 + signal.SIGKILL, False)],
    ids=["aborted", "error", "killed", "killed below bubblewrap"],
)
def test_an_emulator_that_its_guest_ends_excuses_no_kernel(status: int, counts: bool) -> None:
    """A guest can make the emulator abort, by its memory for example; only this machine kills it."""
    failure = emulator_failure(Ended(Path("output"), status, "cannot allocate", 1.0, timed_out=False))
    assert failure is not None and failure.failure.counts_against_arm is counts


def test_an_emulator_that_ends_as_it_should_is_no_failure() -> None:
    assert emulator_failure(Ended(Path("output"), 0, "", 1.0, timed_out=False)) is None
