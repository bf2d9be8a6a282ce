"""Bound the memory and processes of a command by a cgroup (version 2), where the lab's user has been given one.

The worker may divide the cgroup it was started in if its user can write there, as after `Delegate=yes` in a systemd
unit. Processes and controllers must not share a cgroup, so `prepare` first moves the processes of the cgroup to a
child of it.
"""

from __future__ import annotations

import secrets
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from .limits import Limits, Stop

log = structlog.get_logger()

WORKERS = "wqlab-workers"
"""Name of the child cgroup to which the processes of a delegated cgroup move."""
_NEEDED = {"memory", "pids"}
_MOVE_ATTEMPTS = 5
_REMOVE_S = 5.0
_ENTER = 'echo 0 > "$0/cgroup.procs" && exec "$@"'


@dataclass(frozen=True)
class Group:
    """A cgroup for one command."""

    folder: Path

    def enter(self) -> list[str]:
        """Return the start of a command line that runs its rest in this cgroup."""
        return ["sh", "-c", _ENTER, str(self.folder)]

    def exceeded(self) -> Stop | None:
        """Return the limit for which the kernel killed or refused processes; None if there is none."""
        if _event(self.folder / "memory.events", "oom_kill"):
            return Stop.MEMORY
        return Stop.PROCESSES if _event(self.folder / "pids.events", "max") else None


def own() -> Path:
    """Return the folder of this process's cgroup. Raises OSError if there is no hierarchy of version 2."""
    relative = next(
        (line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")), None
    )
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, kind = line.partition(" - ")
        if relative is not None and kind.startswith("cgroup2 "):
            return Path(mount.split()[4], relative.lstrip("/"))
    raise OSError("no cgroup hierarchy of version 2 is mounted")


def delegated() -> Path:
    """Return the cgroup in which this process may make cgroups for commands. Raises OSError, with the reason."""
    folder = own()
    if folder.name != WORKERS:
        raise OSError(f"the worker has not divided {folder}")
    enabled = set((folder.parent / "cgroup.subtree_control").read_text().split())
    if not enabled >= _NEEDED:
        raise OSError(f"{folder.parent} does not control {' and '.join(sorted(_NEEDED - enabled))}")
    return folder.parent


def prepare() -> None:
    """Divide the cgroup of this process, so that `delegated` succeeds. Raises OSError, with the reason.

    Call it before the process starts others that run commands.
    """
    folder = own()
    if folder.name == WORKERS:
        return
    available = set((folder / "cgroup.controllers").read_text().split())
    if not available >= _NEEDED:
        raise OSError(f"{folder} has no controller for {' and '.join(sorted(_NEEDED - available))}")
    child = folder / WORKERS
    child.mkdir(exist_ok=True)
    for attempt in range(_MOVE_ATTEMPTS):
        for process in (folder / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                (child / "cgroup.procs").write_text(process)
        try:
            (folder / "cgroup.subtree_control").write_text("+memory +pids")
        except OSError:
            # A process that started meanwhile is still in the folder.
            if attempt + 1 == _MOVE_ATTEMPTS:
                raise
        else:
            return


@contextmanager
def open_group(limits: Limits) -> Iterator[Group | None]:
    """Make a cgroup with the limits on memory and processes, or yield None if no cgroup is delegated.

    At the end of the context all processes in the cgroup are killed and it is removed.
    """
    try:
        folder = delegated() / f"wqlab-{secrets.token_hex(6)}"
        folder.mkdir()
    except OSError:
        yield None
        return
    try:
        (folder / "memory.max").write_text(str(limits.memory_bytes))
        (folder / "memory.oom.group").write_text("1")
        with suppress(FileNotFoundError):  # absent in a kernel without swap
            (folder / "memory.swap.max").write_text("0")
        # bubblewrap and the programs around it are processes of the cgroup, too.
        (folder / "pids.max").write_text(str(limits.processes + 8))
        yield Group(folder)
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Kill all processes of a cgroup, wait until they have left it, and remove it."""
    with suppress(FileNotFoundError):  # absent before Linux 5.14; the PID namespace has killed them already
        (folder / "cgroup.kill").write_text("1")
    try:
        with (folder / "cgroup.events").open() as events:
            changed = select.poll()
            changed.register(events, select.POLLPRI)
            deadline = time.monotonic() + _REMOVE_S
            while "populated 1" in events.read() and (left := deadline - time.monotonic()) > 0:
                changed.poll(left * 1000)
                events.seek(0)
        folder.rmdir()
    except OSError as error:
        log.warning("a cgroup cannot be removed", folder=str(folder), error=str(error))


def _event(file: Path, name: str) -> int:
    with suppress(OSError, ValueError):
        return int(dict(line.split() for line in file.read_text().splitlines()).get(name, 0))
    return 0
