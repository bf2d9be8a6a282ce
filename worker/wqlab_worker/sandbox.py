"""Run a command of submitted code in a sandbox without network or secrets, with bounded resources.

bubblewrap unshares all namespaces. The command sees the system's /usr (toolchain), the paths that the caller binds and
a bounded /tmp, but no home, no sockets and no other process of the machine. Whatever it writes is in a volume, whose
size the kernel bounds (see `volume`). A cgroup bounds memory and processes where one is delegated (see `cgroup`).
Otherwise the kernel bounds processes and each process's memory, a filter refuses memory outside processes (see
`seccomp`), and the total is measured from outside. When `run` returns, every process of the sandbox is dead: they share
a PID namespace whose first process has ended.
"""

from __future__ import annotations

import json
import os
import secrets
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from . import seccomp, watch
from .cgroup import Group, open_group
from .failures import InfrastructureError, JobError, UserError
from .limits import GIB, MIB, Limits, Stop
from .volume import TooLarge, Volume, copy_files, open_volume_unless_watched
from .workspace import remove_tree

__all__ = ["GIB", "MIB", "TOOLS", "Finished", "Limits", "Sandbox", "Stop", "interpreter", "limit_error"]

WATCH_INTERVAL_S = 1.0
POLL_INTERVAL_S = 0.1
"""Interval between looks at what the kernel counts, which take microseconds."""
TOOLS = "/tools"
"""Path inside the sandbox where `interpreter` binds the Python environment."""
LINE_LIMIT = 4096
_REPORT_READY = 'echo started >&"$0"; eval "exec $0>&-"; exec "$@"'
"""Shell script that reports on the descriptor in $0 that the sandbox is set up, then executes the command."""
_ADVICE = (
    "Install bubblewrap and allow unprivileged user namespaces"
    " (sysctl kernel.unprivileged_userns_clone=1, no AppArmor restriction)."
)


_PASSWD = b"build:x:1000:1000::/tmp:/bin/sh\n"
"""Content of /etc/passwd; some programs refuse to run for a user without a name."""


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
class _Bounds:
    """Where one command writes, and what bounds it."""

    volume: Volume | None
    group: Group | None
    places: Mapping[str, Path]
    """Path inside -> folder of this machine for each writable folder."""


@dataclass(frozen=True)
class Sandbox:
    """The files that a command sees, as path inside -> path on this machine, and its limits.

    Read-only paths may lie inside writable ones.
    """

    read_only: Mapping[str, Path] = field(default_factory=dict)
    writable: Mapping[str, Path] = field(default_factory=dict)
    """Writable folders, in all of at most `limits.disk_bytes`.

    Each is a folder of `volume`, or else it is copied into a volume before the command and back after it.
    """
    shared: Mapping[str, Path] = field(default_factory=dict)
    """Writable folders whose size is not bounded; only for trusted commands."""
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    nice: int = 10
    volume: Volume | None = None
    """An open volume, for several commands that work on the same large folders. None: a new one for each command."""

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
        processes in the sandbox are killed and the exception is propagated. Nothing is copied back from a command that
        exceeded a limit. Raises InfrastructureError if the sandbox cannot be set up.
        """
        with ExitStack() as stack:
            group = stack.enter_context(open_group(self.limits))
            volume = self.volume or stack.enter_context(open_volume_unless_watched(self.limits))
            try:
                places = dict(self.writable) if volume is None else self._copy_in(volume)
            except TooLarge:
                return Finished(1, Stop.DISK, 0.0, log_truncated=False, out_of_memory_kills=0)
            monitor = self._start(command, _Bounds(volume, group, places), working_directory, stack)
            finished = monitor.wait(log, on_line, on_tick)
            if finished.stopped is None:
                try:
                    self._copy_out(places)
                except TooLarge:
                    self._remove_copies(places)
                    return replace(finished, stopped=Stop.DISK)
            return finished

    def _copy_in(self, volume: Volume) -> dict[str, Path]:
        """Return path inside -> folder of the volume for each writable folder.

        Raises TooLarge if what an earlier command or a fetch has left there is larger than the volume.
        """
        places = {}
        for inside, outside in self.writable.items():
            if outside.is_relative_to(volume.path):
                places[inside] = outside
                continue
            places[inside] = volume.folder(secrets.token_hex(8))
            try:
                copy_files(outside, places[inside], self.limits.disk_bytes)
            except OSError as error:
                raise InfrastructureError(f"cannot copy {outside} into the sandbox: {error}") from error
        return places

    def _copy_out(self, places: Mapping[str, Path]) -> None:
        """Replace the content of the writable folders that were copied. Raises TooLarge."""
        self._remove_copies(places)
        left = self.limits.disk_bytes
        for inside, outside in self.writable.items():
            if places[inside] != outside:
                places[inside].chmod(0o700)  # the command may have made it unreadable
                left = copy_files(places[inside], outside, left)

    def _remove_copies(self, places: Mapping[str, Path]) -> None:
        """Empty the writable folders that were copied."""
        for inside, outside in self.writable.items():
            if places[inside] != outside:
                for entry in list(outside.iterdir()):
                    remove_tree(entry)

    def _start(
        self,
        command: Sequence[str],
        bounds: _Bounds,
        working_directory: str,
        stack: ExitStack,
    ) -> _Monitor:
        filter_program = seccomp.program()
        info_read, info_write = os.pipe()
        ready_read, ready_write = os.pipe()
        info = stack.enter_context(os.fdopen(info_read, "rb"))
        ready = stack.enter_context(os.fdopen(ready_read, "rb"))
        passwd = stack.enter_context(_memory_file(_PASSWD))
        program = stack.enter_context(_memory_file(filter_program or b""))
        try:
            process = subprocess.Popen(
                [
                    *("nice", f"-n{self.nice}", "choom", "-n500", "--"),
                    *(bounds.group.enter() if bounds.group else []),
                    *(bounds.volume.enter() if bounds.volume else []),
                    *self._bwrap(info_write, passwd.fileno(), working_directory, bounds),
                    *(["--seccomp", str(program.fileno())] if filter_program else []),
                    *self._rlimits(),
                    *("bash", "-c", _REPORT_READY, str(ready_write), *command),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[info_write, ready_write, passwd.fileno(), program.fileno()],
                env={"PATH": "/usr/bin:/bin"},
            )
        except OSError as error:
            raise InfrastructureError(f"cannot start the sandbox: {error}") from error
        finally:
            os.close(info_write)
            os.close(ready_write)
        stack.enter_context(process)
        started = json.loads(info.read() or b"{}")
        if "child-pid" not in started or not ready.read(1):
            output = process.communicate()[0].decode(errors="replace").strip()
            raise InfrastructureError(f"the sandbox does not start: {output}", advice=_ADVICE)
        return _Monitor(self, process, started["child-pid"], bounds)

    def _bwrap(
        self,
        info_descriptor: int,
        passwd_descriptor: int,
        working_directory: str,
        bounds: _Bounds,
    ) -> Iterator[str]:
        volume = bounds.volume

        def path(outside: Path) -> str:
            outside = outside.absolute()
            return volume.inside(outside) if volume else str(outside)

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
        # /dev/full reads as zeros, too, but cannot be mapped as shared memory, which no limit would count.
        yield from ("--proc", "/proc", "--dev", "/dev", "--dev-bind", "/dev/full", "/dev/zero")
        if volume:
            yield from ("--bind", volume.scratch, "/tmp")  # noqa: S108
        else:
            yield from ("--size", str(self.limits.tmp_bytes), "--tmpfs", "/tmp")  # noqa: S108
        for inside, outside in (*bounds.places.items(), *self.shared.items()):
            yield from ("--bind", path(outside), inside)
        for inside, outside in self.read_only.items():
            yield from ("--ro-bind", path(outside), inside)
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

    def _rlimits(self) -> Iterator[str]:
        limits = self.limits
        # Set inside the new user namespace, where the kernel counts only processes of the sandbox.
        yield from ("--", "prlimit", f"--nproc={limits.processes}", f"--fsize={limits.file_bytes}", "--core=0")
        # Programs reserve more addresses than they use memory.
        yield from (f"--as={2 * limits.memory_bytes}", "--memlock=65536", "--msgqueue=0", "--nofile=1024", "--")


def limit_error(stopped: Stop, action: str, excerpt: str = "") -> JobError:
    """Return the failure of an action on submitted code that exceeded a limit.

    `action` is the start of the sentence, such as "applying the series".
    """
    if stopped is Stop.MACHINE:
        return InfrastructureError(f"{action} failed because the machine ran out of memory", excerpt=excerpt)
    return UserError(f"{action} exceeded the limit of {stopped.value}", excerpt=excerpt)


class _Monitor:
    """Read the output of a running sandbox and kill it if it exceeds a limit."""

    def __init__(
        self,
        sandbox: Sandbox,
        process: subprocess.Popen[bytes],
        first_process: int,
        bounds: _Bounds,
    ) -> None:
        self.sandbox = sandbox
        self.process = process
        self.volume = bounds.volume
        self.group = bounds.group
        self.most_held = 0
        """The most memory, in bytes, that the command was seen to hold."""
        self.logged = 0
        self.truncated = False
        self.partial = b""
        self.started = time.monotonic()
        self.first_process: int | None
        try:
            self.first_process = os.pidfd_open(first_process)
        except ProcessLookupError:
            self.first_process = None

    def wait(self, log: BinaryIO, on_line: Callable[[str], None], on_tick: Callable[[], None]) -> Finished:
        """Wait for the end of the sandbox and kill what is left of it."""
        self.log, self.on_line, self.on_tick = log, on_line, on_tick
        kills = watch.out_of_memory_kills()
        stopped: Stop | None = None
        try:
            stopped = self._read_output()
        finally:
            occupied = watch.occupied_memory()
            self._kill()
        self.most_held = max(self.most_held, occupied - watch.occupied_memory())
        kills = watch.out_of_memory_kills() - kills
        status = self.process.wait()
        if status != 0 and stopped is None:
            # The command may end by itself when the kernel refuses it more.
            stopped = self._used_up() or (Stop.MACHINE if kills else None)
        if stopped is Stop.MACHINE and self.most_held > self.sandbox.limits.memory_bytes // 2:
            stopped = Stop.MEMORY
        self._add_output(b"\n" if self.partial else b"")
        return Finished(
            exit_code=status if status >= 0 else 128 - status,
            stopped=stopped,
            duration_s=time.monotonic() - self.started,
            log_truncated=self.truncated,
            out_of_memory_kills=kills,
        )

    def _read_output(self) -> Stop | None:
        output = self.process.stdout
        if output is None or self.first_process is None:
            return None
        os.set_blocking(output.fileno(), False)
        next_check = self.started + WATCH_INTERVAL_S
        next_poll = self.started + POLL_INTERVAL_S
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            selector.register(self.first_process, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select(max(0.0, next_poll - time.monotonic()))}
                if output.fileno() in ready:
                    chunk = os.read(output.fileno(), MIB)
                    if chunk:
                        self._add_output(chunk)
                    else:
                        selector.unregister(output)
                elif self.first_process in ready:
                    return None
                if time.monotonic() >= next_poll:
                    if stop := self._used_up():
                        return stop
                    next_poll = time.monotonic() + POLL_INTERVAL_S
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

    def _used_up(self) -> Stop | None:
        """Return the limit at which the kernel has refused more, or soon will; None if there is none."""
        stopped = (self.volume and self.volume.exceeded()) or (self.group and self.group.exceeded())
        return stopped or (Stop.MACHINE if watch.available_memory() < watch.memory_reserve() else None)

    def _exceeded_limit(self) -> Stop | None:
        """Return the limit that is exceeded by what this machine measures; None if there is none."""
        limits = self.sandbox.limits
        if time.monotonic() - self.started > limits.wall_s:
            return Stop.TIME
        written = 0
        if self.volume:
            written = self.volume.used_bytes()
        elif sum(watch.disk_usage(folder) for folder in self.sandbox.writable.values()) > limits.disk_bytes:
            return Stop.DISK
        usage = watch.usage_of(self.process.pid)
        self.most_held = max(self.most_held, usage.resident_bytes + written)
        if usage.resident_bytes + written > limits.memory_bytes:
            return Stop.MEMORY
        return Stop.PROCESSES if usage.tasks >= limits.processes else None

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
