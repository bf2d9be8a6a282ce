"""Runs a program of the machine for what it prints."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path


def output(command: Sequence[str], error: type[Exception], directory: Path | None = None, advice: str = "") -> str:
    """Standard output. Raises `error` with the command and its last words.

    `advice`: what to add where the program is missing.
    """
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory, env=environment)
    except FileNotFoundError as missing:
        raise error(f"{command[0]} is not installed{advice}") from missing
    if result.returncode:
        raise error(f"{' '.join(command)}: {(result.stderr or result.stdout).strip()[-2000:]}")
    return result.stdout
