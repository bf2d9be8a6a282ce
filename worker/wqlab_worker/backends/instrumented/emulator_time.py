"""Tell an emulator that hangs from one to which a busy host gives no time: by CPU time, not by the clock."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ASLEEP_S = 60.0
"""Seconds after which an emulator without a runnable thread is taken to wait for ever."""
_RUNNABLE = ("R", "D")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class HangWatch:
    """Decides whether a process and its descendants have had enough time.

    `limit_s`: CPU time that they may use, in seconds.
    """

    def __init__(self, process: int, limit_s: float) -> None:
        self._process = process
        self._limit_s = limit_s
        self._used_s = 0.0
        self._awake_at = time.monotonic()

    def expired(self) -> bool:
        """Return True if the CPU time is used up, or no thread was runnable for ASLEEP_S.

        Call it often: a process counts as awake whenever its CPU time has grown since the last call.
        """
        used_s, runnable = _look(self._process)
        if runnable or used_s > self._used_s:
            self._awake_at = time.monotonic()
        self._used_s = max(self._used_s, used_s)
        return self._used_s > self._limit_s or time.monotonic() - self._awake_at > ASLEEP_S


def _look(root: int) -> tuple[float, bool]:
    """Return the CPU time in seconds of a process and its descendants, and whether a thread of them is runnable."""
    used_s, runnable = 0.0, False
    for process in _family(Path(f"/proc/{root}")):
        with suppress(OSError):  # it has ended
            used_s += sum(map(int, _fields(process / "stat")[11:13])) * _TICK_S
        for thread in process.glob("task/*/stat"):
            with suppress(OSError):
                runnable = runnable or _fields(thread)[0] in _RUNNABLE
    return used_s, runnable


def _family(process: Path) -> Iterator[Path]:
    """Yield the folders in /proc of a process and its descendants."""
    yield process
    for children in process.glob("task/*/children"):
        with suppress(OSError):
            for child in children.read_text().split():
                yield from _family(process.parent / child)


def _fields(stat: Path) -> list[str]:
    """Return the fields of a stat file from the state on (proc(5), field 3)."""
    return stat.read_text().rsplit(")", 1)[1].split()
