"""Run a command of submitted code in a sandbox without network or secrets, with bounded resources.

bubblewrap unshares all namespaces. The command sees the system's /usr (toolchain), the paths that the caller binds and
a bounded /tmp, but no home, no sockets and no other process of the machine. Disk, memory, processes, log and time are
measured from outside, so the command cannot lift a limit. When `run` returns, every process of the sandbox is dead:
they share a PID namespace whose first process has ended.
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
"""Path inside the sandbox where `interpreter` binds the Python environment."""
LINE_LIMIT = 4096
BLOCK = 4096
DEPTH_LIMIT = 15
"""Levels of folders below a writable folder; with names of at most 255 bytes, paths then stay within PATH_MAX."""
_REPORT_READY = 'echo started >&"$0"; eval "exec $0>&-"; exec "$@"'
"""Shell script that reports on the descriptor in $0 that the sandbox is set up, then executes the command."""


_PASSWD = b"build:x:1000:1000::/tmp:/bin/sh\n"
"""Content of /etc/passwd; some programs refuse to run for a user without a name."""


class Stop(StrEnum):
    """The limit that a killed command exceeded."""

    TIME = "time"
    DISK = "disk"
    MEMORY = "memory"
    PROCESSES = "processes"


def _physical_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Limits:
    """Limits on the resources of one command."""

    wall_s: float = 3600.0
    disk_bytes: int = 8 * GIB
    """Total size of the writable folders."""
    file_bytes: int = 4 * GIB
    memory_bytes: int = field(default_factory=lambda: max(2 * GIB, _physical_memory() * 3 // 4))
    """Total resident memory of all processes."""
    processes: int = 512
    log_bytes: int = 64 * MIB
    """Further output is discarded."""
    tmp_bytes: int = GIB


@dataclass(frozen=True)
class Finished:
    """Result of a command."""

    exit_code: int
    """128 + signal number if a signal ended the command."""
    stopped: Stop | None
    duration_s: float
    log_truncated: bool
    out_of_memory_kills: int
    """Processes of the whole machine that its kernel killed for lack of memory during the command."""


@dataclass(frozen=True)
class Sandbox:
    """The files that a command sees, as path inside -> path on this machine, and its limits.

    Read-only paths may lie inside writable ones.
    """

    read_only: Mapping[str, Path] = field(default_factory=dict)
    writable: Mapping[str, Path] = field(default_factory=dict)
    """Writable folders; their size counts towards `limits.disk_bytes`."""
    shared: Mapping[str, Path] = field(default_factory=dict)
    """Writable folders whose size does not count; only for trusted commands."""
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
        """Run `command`, wait for its end and copy its output (stdout and stderr together) to `log`.

        `on_line` is called with each line of output, `on_tick` about once a second. If one of them raises, all
        processes in the sandbox are killed and the exception is propagated. Raises InfrastructureError if the sandbox
        cannot be set up.
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
                        *("bash", "-c", _REPORT_READY, str(ready_write), *command),
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
                    output = process.communicate()[0].decode(errors="replace").strip()
                    raise InfrastructureError(
                        f"the sandbox does not start: {output}",
                        advice="Install bubblewrap and allow unprivileged user namespaces"
                        " (sysctl kernel.unprivileged_userns_clone=1, no AppArmor restriction).",
                    )
                monitor = _Monitor(self, process, started["child-pid"], log=log, on_line=on_line, on_tick=on_tick)
                return monitor.wait()

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
        # / and /dev are bubblewrap's own tmpfs mounts, whose size is not bounded.
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
        # Set inside the new user namespace, where the kernel counts only processes of the sandbox.
        yield from ("--", "prlimit", f"--nproc={limits.processes}", f"--fsize={limits.file_bytes}", "--core=0", "--")


class _Monitor:
    """Read the output of a running sandbox and kill it if it exceeds a limit."""

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

    def wait(self) -> Finished:
        kills = _out_of_memory_kills()
        stopped: Stop | None = None
        try:
            stopped = self._read_output()
        finally:
            self._kill()
        status = self.process.wait()
        self._add_output(b"\n" if self.partial else b"")
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
        next_check = self.started + WATCH_INTERVAL_S
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            selector.register(self.first_process, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select(max(0.0, next_check - time.monotonic()))}
                if output.fileno() in ready:
                    chunk = os.read(output.fileno(), MIB)
                    if chunk:
                        self._add_output(chunk)
                    else:
                        selector.unregister(output)
                elif self.first_process in ready:
                    return None
                if time.monotonic() >= next_check:
                    self.on_tick()
                    if stop := self._exceeded_limit():
                        return stop
                    next_check = time.monotonic() + WATCH_INTERVAL_S

    def _add_output(self, chunk: bytes) -> None:
        room = self.sandbox.limits.log_bytes - self.logged
        self.log.write(chunk[:room])
        self.logged += min(len(chunk), room)
        self.truncated |= len(chunk) > room
        *lines, self.partial = (self.partial + chunk).split(b"\n")
        self.partial = self.partial[:LINE_LIMIT]
        for line in lines:
            self.on_line(line[:LINE_LIMIT].decode(errors="replace"))

    def _exceeded_limit(self) -> Stop | None:
        limits = self.sandbox.limits
        if time.monotonic() - self.started > limits.wall_s:
            return Stop.TIME
        if sum(disk_usage(folder) for folder in self.sandbox.writable.values()) > limits.disk_bytes:
            return Stop.DISK
        processes, resident = _count_descendants(self.root)
        if resident > limits.memory_bytes:
            return Stop.MEMORY
        # RLIMIT_NPROC is the main limit, but the kernel does not enforce it for uid 0.
        return Stop.PROCESSES if processes > limits.processes + 8 else None

    def _kill(self) -> None:
        """Kill the first process of the PID namespace, and with it all others, and wait until they are reaped."""
        if self.first_process is None:
            return
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.first_process, signal.SIGKILL)
        with selectors.DefaultSelector() as selector:
            selector.register(self.first_process, selectors.EVENT_READ)
            selector.select()
        os.close(self.first_process)


def interpreter() -> dict[str, Path]:
    """Return the read-only binds for this Python and its installed packages."""
    binds = {TOOLS: Path(sys.prefix)}
    real = Path(sys.base_prefix).resolve()
    if not real.is_relative_to("/usr"):
        binds[str(real)] = real
    return binds


def _memory_file(content: bytes) -> BinaryIO:
    file = os.fdopen(os.memfd_create("wqlab"), "w+b")
    file.write(content)
    file.seek(0)
    return file


def disk_usage(folder: Path) -> int:
    """Return the bytes allocated under `folder`, without following links.

    Each entry counts at least one block, because inodes are limited too. Files that disappear during the count are
    ignored. A tree deeper than DEPTH_LIMIT counts as sys.maxsize.
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


def _count_descendants(root: int) -> tuple[int, int]:
    """Return the number of `root` and its descendants, and their resident memory in bytes."""
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
    """Return how many processes the machine's kernel has killed for lack of memory since it booted."""
    for line in Path("/proc/vmstat").read_text().splitlines():
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    return 0
