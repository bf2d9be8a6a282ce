"""Find processes: the descendants of one, and what is left of a lab."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def descendants(root: int) -> list[int]:
    """Return the descendants of a process, parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found[1:]


def family_of_lab(state: Path) -> dict[int, str]:
    """Return process id -> start time of the lab's processes and their descendants.

    An emulator has neither environment nor files of the lab, so it is known only by its parent.
    """
    members = {int(line.split()[0]) for line in processes_of_lab(state)}
    for process in list(members):
        members.update(descendants(process))
    return {process: started for process in members if (started := _start_time(process))}


def survivors(family: dict[int, str]) -> list[int]:
    """Return the processes of `family_of_lab` that still run."""
    return [process for process, started in family.items() if _start_time(process) == started]


def _start_time(process: int) -> str:
    """Return when a process started, in clock ticks since boot; empty if it does not run."""
    try:
        state, *fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return ""
    return "" if state in "ZX" else fields[18]


def processes_of_lab(state: Path) -> list[str]:
    """Return `id command` of each process that has the lab's state folder in its environment, arguments or files.

    The test's own children are not part of the lab.
    """
    ours = {os.getpid(), *descendants(os.getpid())}
    mark = bytes(state)
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        if int(entry.name) in ours:
            continue
        command = _read(entry / "cmdline")
        if mark in command or mark in _read(entry / "environ") or any(mark in bytes(file) for file in _files(entry)):
            words = command.decode(errors="replace").split("\0")
            found.append(" ".join([entry.name, *words]).strip())
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _files(process: Path) -> list[Path]:
    """Return the working directory and the open files of a process of this user."""
    found = []
    with suppress(OSError):
        for link in (process / "cwd", *(process / "fd").iterdir()):
            with suppress(OSError):
                found.append(link.readlink())
    return found
