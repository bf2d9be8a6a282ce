"""Report which limits of the sandbox the kernel enforces on this machine, and which are only watched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import structlog

from . import cgroup, seccomp
from .failures import InfrastructureError
from .limits import MIB, Limits
from .volume import WATCHED, is_watched, open_volume

log = structlog.get_logger()


@dataclass(frozen=True)
class Protection:
    """How submitted code is bounded on this machine."""

    files: Literal["kernel", "watched", "refused"]
    """Size and number of files: by a volume; measured once a second; or jobs fail, because neither is allowed."""
    files_reason: str
    memory: Literal["cgroup", "processes"]
    """Total memory: by a cgroup; or by each process's limit, a filter of system calls, and a measurement a second."""
    memory_reason: str
    filtered: bool
    """True if the filter of system calls supports this machine's architecture."""


def find_protection() -> Protection:
    """Find out what this machine and its settings allow, by a small volume and the cgroup of this process."""
    files: Literal["kernel", "watched", "refused"] = "kernel"
    files_reason = "everything that a command writes is in a volume of a fixed size"
    if is_watched():
        files, files_reason = "watched", f"{WATCHED} is set"
    else:
        try:
            with open_volume(Limits(disk_bytes=MIB, tmp_bytes=MIB)):
                pass
        except InfrastructureError as error:
            files, files_reason = "refused", error.failure.summary
    memory: Literal["cgroup", "processes"] = "cgroup"
    memory_reason = ""
    try:
        memory_reason = f"cgroups in {cgroup.delegated()}"
    except OSError as error:
        memory, memory_reason = "processes", str(error)
    return Protection(files, files_reason, memory, memory_reason, seccomp.program() is not None)


def start() -> Protection:
    """Divide the cgroup of this worker if that is allowed, and log what bounds submitted code on this machine."""
    try:
        cgroup.prepare()
    except OSError as error:
        log.info("no cgroup bounds the memory of commands", reason=str(error))
    found = find_protection()
    level = log.info if found.files == "kernel" and found.filtered else log.warning
    level(
        "limits of the sandbox",
        files=found.files,
        files_reason=found.files_reason,
        memory=found.memory,
        memory_reason=found.memory_reason,
        filtered=found.filtered,
    )
    return found
