"""Daemons of rehearsal machines, as `wqlab-lab rehearse` starts them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from wqlab_bench import ports

ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"}


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition of a program that tells no one when it is ready."""
    while not condition():
        time.sleep(0.05)


def free_port() -> int:
    return ports.free_port(set())


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[[Sequence[str]], subprocess.Popen[bytes]]]:
    """Start a program, whose messages go to a file, and end it after the test."""
    with ExitStack() as stack:

        def start(command: Sequence[str]) -> subprocess.Popen[bytes]:
            log = stack.enter_context((tmp_path / f"{Path(command[0]).name}.log").open("wb"))
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=ENVIRONMENT)
            stack.callback(_end, process)
            return process

        yield start


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.fixture
def power_on(tmp_path: Path) -> Path:
    """A script in place of a machine: it notes its process id and runs until it is killed."""
    script = tmp_path / "power-on"
    words = "echo warning; echo warning >&2"  # emulators do, and no daemon may take it for an answer
    script.write_text(f"#!/bin/sh\n{words}\necho $$ > {tmp_path}/machine.pid\nexec sleep 600\n")
    script.chmod(0o755)
    return script


def is_on(folder: Path) -> bool:
    """Return True if the machine of `power_on` runs."""
    file = folder / "machine.pid"
    text = file.read_text().strip() if file.exists() else ""
    if not text:
        return False
    try:
        return "Z" not in Path(f"/proc/{text}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
