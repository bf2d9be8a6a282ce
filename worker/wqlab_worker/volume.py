"""Folders in memory whose size and number of files the kernel bounds, for everything that submitted code writes.

A volume is two tmpfs mounts in a user and mount namespace of its own, so the lab's user needs no privileges. Unlinked
files, unreadable folders and sparse files cannot take more than its size, and nothing of it remains when the worker
dies. This machine reaches its files under /proc/PID/root, where PID is the process that holds the namespace.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .failures import InfrastructureError
from .limits import BLOCK, DEPTH_LIMIT, Limits, Stop, physical_memory

INSIDE = "/sys"
"""Where the volume is mounted in its namespace: a folder that every machine has and no command in a sandbox needs."""
_SCRATCH = "scratch"
_BYTES_PER_FILE = 16 << 10
_FILES_AT_LEAST = 2048
_CHUNK = 1 << 20
WATCHED = "WQLAB_SANDBOX_WATCHED"
"""Environment variable with which an operator accepts writable folders on disk, whose size is only watched."""
_ADVICE = (
    "Allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, no AppArmor restriction)."
    " If only watched limits are acceptable here, set WQLAB_SANDBOX_WATCHED=1."
)
_HOLD = """\
set -e
mount -t tmpfs -o "size=$1,nr_inodes=$2,mode=0700" wqlab /sys
mkdir /sys/scratch
echo mounted
exec cat >/dev/null
"""
_ENTER = """\
umount /sys/scratch 2>/dev/null
mount -t tmpfs -o "size=$1,nr_inodes=$2,mode=1777" wqlab /sys/scratch || exit
shift 2
exec "$@"
"""


class TooLarge(Exception):
    """The files of a volume are too many, too large or nested too deeply to be copied out of it."""


@dataclass(frozen=True)
class Volume:
    """A volume; see `open_volume`."""

    holder: int
    """Process ID of the process that holds the namespace."""
    limits: Limits

    @property
    def path(self) -> Path:
        """The volume's folder, as this machine reaches it."""
        return Path(f"/proc/{self.holder}/root{INSIDE}")

    def folder(self, name: str) -> Path:
        """Make and return a folder of the volume, which a sandbox with this volume may bind."""
        made = self.path / name
        made.mkdir()
        return made

    def inside(self, outside: Path) -> str:
        """Return the path in the volume's namespace of one of its files, or of another file of this machine."""
        if outside.is_relative_to(self.path):
            return str(INSIDE / outside.relative_to(self.path))
        return str(outside)

    @property
    def scratch(self) -> str:
        """Path in the namespace of the folder that is empty for each command, of `limits.tmp_bytes`."""
        return f"{INSIDE}/{_SCRATCH}"

    def enter(self) -> list[str]:
        """Return the start of a command line that runs its rest in the namespace, with an empty `scratch`."""
        size, files = self.limits.tmp_bytes, file_limit(self.limits.tmp_bytes)
        return [
            *("nsenter", f"--target={self.holder}", "--user", "--preserve-credentials", "--mount", "--"),
            *("sh", "-c", _ENTER, "sh", str(size), str(files)),
        ]

    def exceeded(self) -> Stop | None:
        """Return the limit that is used up; None if there is room."""
        for path, full in ((self.path, Stop.DISK), (self.path / _SCRATCH, Stop.TMP)):
            with suppress(OSError):
                status = os.statvfs(path)
                if status.f_bavail == 0:
                    return full
                if status.f_ffree == 0:
                    return Stop.FILES
        return None

    def used_bytes(self) -> int:
        """Return the memory that the volume takes, including files that are open but have no name."""
        total = 0
        for path in (self.path, self.path / _SCRATCH):
            with suppress(OSError):
                status = os.statvfs(path)
                total += (status.f_blocks - status.f_bfree) * status.f_frsize
        return total


def is_watched() -> bool:
    """Return True if the operator accepts that disk use is only watched, and not bounded by the kernel."""
    return os.environ.get(WATCHED, "") not in {"", "0"}


def file_limit(size: int) -> int:
    """Return how many files and folders a volume of `size` bytes may hold."""
    return max(_FILES_AT_LEAST, size // _BYTES_PER_FILE)


@contextmanager
def open_volume(limits: Limits) -> Iterator[Volume]:
    """Make a volume of `limits.disk_bytes`; it disappears at the end of the context or of this process.

    Raises InfrastructureError if the machine has too little memory for it or does not allow the mount.
    """
    needed, physical = limits.disk_bytes + limits.tmp_bytes, physical_memory()
    if needed > physical * 3 // 4:
        raise InfrastructureError(
            f"the sandbox needs up to {needed >> 20} MiB of memory for files; this machine has {physical >> 20} MiB",
            advice="Use a machine with more memory, or set WQLAB_SANDBOX_WATCHED=1 to accept limits that are only"
            " watched.",
        )
    command = ["unshare", "--user", "--map-root-user", "--mount", "--", "sh", "-c", _HOLD, "sh"]
    try:
        holder = subprocess.Popen(
            [*command, str(limits.disk_bytes), str(file_limit(limits.disk_bytes))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
        )
    except OSError as error:
        raise InfrastructureError(f"cannot start unshare: {error}", advice="Install util-linux.") from error
    with holder:
        # The holder ends when the write end of its standard input closes, also by the death of this process.
        if holder.stdout is None or holder.stdout.readline() != b"mounted\n":
            errors = holder.communicate()[1].decode(errors="replace").strip()
            raise InfrastructureError(f"the kernel cannot bound the sandbox's files: {errors}", advice=_ADVICE)
        try:
            yield Volume(holder.pid, limits)
        finally:
            holder.kill()


@contextmanager
def open_volume_unless_watched(limits: Limits) -> Iterator[Volume | None]:
    """Make a volume for several commands; None if the operator accepts watched limits. Raises InfrastructureError."""
    if is_watched():
        yield None
    else:
        with open_volume(limits) as volume:
            yield volume


def copy_files(source: Path, target: Path, limit: int) -> int:
    """Copy files, folders and symbolic links from one existing folder to another, without following any link.

    Other kinds of file are left out, and so are folders and files without read permission. Permissions of the owner are
    widened so that the copy can be read and removed. Returns what is left of `limit`. Raises TooLarge if the copy
    would take more than `limit` bytes, each entry counting at least one block, or has more than DEPTH_LIMIT levels.
    """
    descriptor = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    copy = _Copy(limit)
    copy.folder(descriptor, target, 0)
    return copy.left


class _Copy:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit

    def folder(self, descriptor: int, target: Path, depth: int) -> None:
        """Copy the folder that is open as `descriptor`, and close it."""
        try:
            if depth > DEPTH_LIMIT:
                raise TooLarge(f"folders are nested more than {DEPTH_LIMIT} levels deep")
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    self.spend(BLOCK)
                    with suppress(PermissionError):
                        self.entry(entry.name, descriptor, target / entry.name, depth)
        finally:
            os.close(descriptor)

    def entry(self, name: str, folder: int, target: Path, depth: int) -> None:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            target.symlink_to(os.readlink(name, dir_fd=folder))
        elif stat.S_ISDIR(found.st_mode):
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            target.mkdir(exist_ok=True)
            self.folder(inner, target, depth + 1)
        elif stat.S_ISREG(found.st_mode):
            opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
            with os.fdopen(opened, "rb") as source, target.open("xb") as copy:
                self.spend(os.fstat(opened).st_size)
                shutil.copyfileobj(source, copy, _CHUNK)
                os.fchmod(copy.fileno(), stat.S_IMODE(found.st_mode) & 0o777 | stat.S_IRUSR | stat.S_IWUSR)
            os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))

    def spend(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise TooLarge(f"the files take more than {self.limit} bytes")
