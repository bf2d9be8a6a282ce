"""Runs one command of submitted code: no network, no secrets, nothing writable but its output, everything bounded.

bubblewrap unshares all namespaces. The command sees the system's /usr (toolchain), what the caller binds, a bounded
/tmp, and nothing else of the machine: no home, no sockets, no other process. Disk, memory, processes, log and time
are watched from outside, so that nothing the command does can lift a limit. When `run` returns, every process of the
sandbox is dead: they live in one process namespace, and its first process has ended.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from .failures import InfrastructureError

MIB = 1 << 20
GIB = 1 << 30
WATCH_INTERVAL_S = 1.0
TOOLS = "/tools"
"""Where `interpreter` puts the Python environment."""
LINE_LIMIT = 4096
BLOCK = 4096
DEPTH_LIMIT = 15
"""Folders below a writable one; names of at most 255 bytes then stay within PATH_MAX."""
_ANNOUNCE = 'echo started >&"$0"; eval "exec $0>&-"; exec "$@"'
"""Says on the descriptor in $0 that the sandbox stands, and becomes the command."""


_PASSWD = b"build:x:1000:1000::/tmp:/bin/sh\n"
"""Some programs refuse to run for a user without a name."""


class Stop(StrEnum):
    """Why a command was ended before it ended itself."""

    TIME = "time"
    DISK = "disk"
    MEMORY = "memory"
    PROCESSES = "processes"


def _physical_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Limits:
    wall_s: float = 3600.0
    disk_bytes: int = 8 * GIB
    """All that the writable folders may hold together."""
    file_bytes: int = 4 * GIB
    memory_bytes: int = field(default_factory=lambda: max(2 * GIB, _physical_memory() * 3 // 4))
    """Resident memory of all processes together."""
    processes: int = 512
    log_bytes: int = 64 * MIB
    """Output beyond this is read and dropped."""
    tmp_bytes: int = GIB


@dataclass(frozen=True)
class Finished:
    exit_code: int
    """128 + signal when a signal ended it."""
    stopped: Stop | None
    duration_s: float
    log_truncated: bool
    out_of_memory_kills: int
    """Processes that the machine's kernel killed for lack of memory meanwhile (anyone's)."""


@dataclass(frozen=True)
class Sandbox:
    """What a command may see: path inside -> path on this machine. Read-only places may lie inside writable ones."""

    read_only: Mapping[str, Path] = field(default_factory=dict)
    writable: Mapping[str, Path] = field(default_factory=dict)
    """Counted against `limits.disk_bytes`."""
    shared: Mapping[str, Path] = field(default_factory=dict)
    """Writable and not counted: only for commands that are trusted with it."""
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = Limits()
    nice: int = 10

    def run(
        self,
        command: Sequence[str],
        *,
        log: BinaryIO,
        working_directory: str = "/tmp",  # noqa: S108 - the sandbox's own
        on_line: Callable[[str], None] = lambda line: None,
        on_tick: Callable[[], None] = lambda: None,
    ) -> Finished:
        """Runs `command` and copies its output (stdout and stderr together) to `log`; `on_line` sees each line.

        Blocks. `on_tick` is called about once a second. If one of them raises, everything in the sandbox is killed
        and the exception goes on. Raises InfrastructureError when the sandbox cannot be set up.
        """
        info_read, info_write = os.pipe()
        ready_read, ready_write = os.pipe()
        with (
            os.fdopen(info_read, "rb") as info,
            os.fdopen(ready_read, "rb") as ready,
            _memory_file(_PASSWD) as passwd,
        ):
            try:
                process = subprocess.Popen(
                    [
                        *("nice", f"-n{self.nice}", "choom", "-n500", "--"),
                        *self._bwrap(info_write, passwd.fileno(), working_directory),
                        *("bash", "-c", _ANNOUNCE, str(ready_write), *command),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=[info_write, ready_write, passwd.fileno()],
                    env={"PATH": "/usr/bin:/bin"},
                )
            except OSError as error:
                raise InfrastructureError(f"cannot start the sandbox: {error}") from error
            finally:
                os.close(info_write)
                os.close(ready_write)
            with process:
                started = json.loads(info.read() or b"{}")
                if "child-pid" not in started or not ready.read(1):
                    said = process.communicate()[0].decode(errors="replace").strip()
                    raise InfrastructureError(
                        f"the sandbox does not start: {said}",
                        advice="bubblewrap must be installed and unprivileged user namespaces allowed"
                        " (sysctl kernel.unprivileged_userns_clone=1, no AppArmor restriction).",
                    )
                watch = _Watch(self, process, started["child-pid"], log=log, on_line=on_line, on_tick=on_tick)
                return watch.until_finished()

    def _bwrap(self, info_descriptor: int, passwd_descriptor: int, working_directory: str) -> Iterator[str]:
        limits = self.limits
        yield from ("bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent")
        yield from ("--new-session", "--cap-drop", "ALL", "--clearenv", "--hostname", "build")
        yield from ("--uid", "1000", "--gid", "1000", "--info-fd", str(info_descriptor))
        yield from ("--ro-bind", "/usr", "/usr")
        for link in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
            if Path("/", link).is_symlink():
                yield from ("--symlink", f"usr/{link}", f"/{link}")
        yield from ("--ro-bind-try", "/etc/alternatives", "/etc/alternatives")
        yield from ("--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache")
        yield from ("--ro-bind-data", str(passwd_descriptor), "/etc/passwd")
        yield from ("--proc", "/proc", "--dev", "/dev", "--size", str(limits.tmp_bytes), "--tmpfs", "/tmp")  # noqa: S108
        for inside, outside in (*self.writable.items(), *self.shared.items()):
            yield from ("--bind", str(outside), inside)
        for inside, outside in self.read_only.items():
            yield from ("--ro-bind", str(outside), inside)
        # bubblewrap's own / and /dev are memory that nothing else would bound.
        yield from ("--remount-ro", "/", "--remount-ro", "/dev", "--chdir", working_directory)
        environment = {
            "PATH": "/usr/bin:/usr/sbin",
            "HOME": "/tmp",  # noqa: S108
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            **self.environment,
        }
        for name, value in environment.items():
            yield from ("--setenv", name, value)
        # Set inside the new user namespace, where the kernel counts only the sandbox's own processes.
        yield from ("--", "prlimit", f"--nproc={limits.processes}", f"--fsize={limits.file_bytes}", "--core=0", "--")


class _Watch:
    """Reads a running sandbox's output and ends it when it goes over a limit."""

    def __init__(
        self,
        sandbox: Sandbox,
        process: subprocess.Popen[bytes],
        first_process: int,
        *,
        log: BinaryIO,
        on_line: Callable[[str], None],
        on_tick: Callable[[], None],
    ) -> None:
        self.sandbox = sandbox
        self.process = process
        self.root = process.pid
        self.log = log
        self.on_line = on_line
        self.on_tick = on_tick
        self.logged = 0
        self.truncated = False
        self.partial = b""
        self.started = time.monotonic()
        self.first_process: int | None
        try:
            self.first_process = os.pidfd_open(first_process)
        except ProcessLookupError:
            self.first_process = None

    def until_finished(self) -> Finished:
        kills = _out_of_memory_kills()
        stopped: Stop | None = None
        try:
            stopped = self._read_output()
        finally:
            self._end()
        status = self.process.wait()
        self._take(b"\n" if self.partial else b"")
        return Finished(
            exit_code=status if status >= 0 else 128 - status,
            stopped=stopped,
            duration_s=time.monotonic() - self.started,
            log_truncated=self.truncated,
            out_of_memory_kills=_out_of_memory_kills() - kills,
        )

    def _read_output(self) -> Stop | None:
        output = self.process.stdout
        if output is None or self.first_process is None:
            return None
        os.set_blocking(output.fileno(), False)
        next_look = self.started + WATCH_INTERVAL_S
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            selector.register(self.first_process, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select(max(0.0, next_look - time.monotonic()))}
                if output.fileno() in ready:
                    chunk = os.read(output.fileno(), MIB)
                    if chunk:
                        self._take(chunk)
                    else:
                        selector.unregister(output)
                elif self.first_process in ready:
                    return None
                if time.monotonic() >= next_look:
                    self.on_tick()
                    if stop := self._over_limit():
                        return stop
                    next_look = time.monotonic() + WATCH_INTERVAL_S

    def _take(self, chunk: bytes) -> None:
        room = self.sandbox.limits.log_bytes - self.logged
        self.log.write(chunk[:room])
        self.logged += min(len(chunk), room)
        self.truncated |= len(chunk) > room
        *lines, self.partial = (self.partial + chunk).split(b"\n")
        self.partial = self.partial[:LINE_LIMIT]
        for line in lines:
            self.on_line(line[:LINE_LIMIT].decode(errors="replace"))

    def _over_limit(self) -> Stop | None:
        limits = self.sandbox.limits
        if time.monotonic() - self.started > limits.wall_s:
            return Stop.TIME
        if sum(disk_usage(folder) for folder in self.sandbox.writable.values()) > limits.disk_bytes:
            return Stop.DISK
        processes, resident = _family(self.root)
        if resident > limits.memory_bytes:
            return Stop.MEMORY
        # The first line of defence is RLIMIT_NPROC; this one also holds where that is not enforced (uid 0).
        return Stop.PROCESSES if processes > limits.processes + 8 else None

    def _end(self) -> None:
        """Kills the namespace's first process, and with it all; returns when the kernel has reaped them."""
        if self.first_process is None:
            return
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.first_process, signal.SIGKILL)
        with selectors.DefaultSelector() as selector:
            selector.register(self.first_process, selectors.EVENT_READ)
            selector.select()
        os.close(self.first_process)


def interpreter() -> dict[str, Path]:
    """Where the sandbox finds this Python and what is installed for it."""
    bound = {TOOLS: Path(sys.prefix)}
    real = Path(sys.base_prefix).resolve()
    if not real.is_relative_to("/usr"):
        bound[str(real)] = real
    return bound


def _memory_file(content: bytes) -> BinaryIO:
    file = os.fdopen(os.memfd_create("wqlab"), "w+b")
    file.write(content)
    file.seek(0)
    return file


def disk_usage(folder: Path) -> int:
    """Bytes allocated under `folder`, following no links; at least a block per entry, since inodes run out too.

    What disappears meanwhile counts nothing. A tree deeper than any honest one counts as infinitely large.
    """
    total = 0
    pending = [(str(folder), 0)]
    while pending:
        path, depth = pending.pop()
        if depth > DEPTH_LIMIT:
            return sys.maxsize
        with suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                with suppress(OSError):
                    total += max(entry.stat(follow_symlinks=False).st_blocks * 512, BLOCK)
                    if entry.is_dir(follow_symlinks=False):
                        pending.append((entry.path, depth + 1))
    return total


def _family(root: int) -> tuple[int, int]:
    """Number of `root`'s descendants, itself included, and their resident memory in bytes."""
    parents: dict[int, int] = {}
    resident: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            parents[int(folder.name)], resident[int(folder.name)] = int(fields[1]), int(fields[21])
    family, grown = {root}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        family |= more
        grown = bool(more)
    return len(family), sum(resident.get(pid, 0) for pid in family) * os.sysconf("SC_PAGE_SIZE")


def _out_of_memory_kills() -> int:
    for line in Path("/proc/vmstat").read_text().splitlines():
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    return 0
