"""Run a program of the machine and return its output."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path


def output(command: Sequence[str], error: type[Exception], directory: Path | None = None, advice: str = "") -> str:
    """Run `command` and return its standard output.

    Raises `error` with the command and the end of its output if it fails, and with `advice` if the program is missing.
    """
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory, env=environment)
    except FileNotFoundError as missing:
        raise error(f"{command[0]} is not installed{advice}") from missing
    if result.returncode:
        raise error(f"{' '.join(command)}: {(result.stderr or result.stdout).strip()[-2000:]}")
    return result.stdout
