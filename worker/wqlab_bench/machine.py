"""Run a QEMU process, with its console and monitor on private socket pairs, until it exits or is killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import confinement

_CONSOLE_CHUNK = 65536
_STDERR_KEPT = 4000
_START_TIMEOUT_S = 30.0


class MachineError(Exception):
    """QEMU did not start or refused a command; the message has its output."""


class Machine:
    """A QEMU process with a serial console.

    The kernel kills it when this process ends for whatever reason (PR_SET_PDEATHSIG). After `kill()` it is dead.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._process: asyncio.subprocess.Process | None = None
        self._console: asyncio.StreamWriter | None = None
        self._monitor: _Monitor | None = None
        self._ended: asyncio.Task[None] | None = None
        self._killed = False
        self._stderr = b""

    async def start(self, on_output: Callable[[bytes], None], on_exit: Callable[[int, str], None]) -> None:
        """Start QEMU and wait until its monitor answers. Raises MachineError.

        `on_output` is called with each chunk of console output. `on_exit` is called with the exit status (negative: the
        signal) and the end of stderr if the process ends without `kill()`.
        """
        console, console_end = socket.socketpair()
        monitor, monitor_end = socket.socketpair()
        ends = (console_end.fileno(), monitor_end.fileno())
        command = [
            "setpriv", "--pdeathsig", "KILL", *self._command,
            "-chardev", f"socket,id=console,fd={ends[0]}", "-serial", "chardev:console",
            "-chardev", f"socket,id=monitor,fd={ends[1]}", "-mon", "chardev=monitor,mode=control",
        ]  # fmt: skip
        try:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE, pass_fds=ends, start_new_session=True,
                env=confinement.environment(),
            )  # fmt: skip
        except OSError as error:
            console.close()
            monitor.close()
            raise MachineError(f"cannot start {self._command[0]}: {error}") from error
        finally:
            console_end.close()
            monitor_end.close()
        reader, self._console = await asyncio.open_connection(sock=console)
        self._monitor = _Monitor(*await asyncio.open_connection(sock=monitor))
        self._ended = asyncio.create_task(self._run(self._process, reader, on_output, on_exit))
        try:
            await asyncio.wait_for(self._monitor.negotiate(), _START_TIMEOUT_S)
        except (MachineError, TimeoutError) as error:
            await self.kill()
            raise MachineError(f"QEMU did not start: {self.error_output or error}") from error

    @property
    def error_output(self) -> str:
        """The end of QEMU's stderr."""
        return self._stderr.decode(errors="replace").strip()

    async def command(self, execute: str, /, **arguments: Any) -> Any:
        """Execute a QMP command and return its result. Raises MachineError."""
        if self._monitor is None:
            raise MachineError("QEMU is not running")
        return await self._monitor.command(execute, arguments)

    def type(self, data: bytes) -> None:
        """Send bytes to the serial console; bytes that the guest does not read are lost, as on a real line."""
        if self._console is not None and not self._console.is_closing():
            self._console.write(data)

    async def kill(self) -> None:
        """Kill the process without a shutdown of the guest. Console output written before is still delivered."""
        self._killed = True
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(guest_of(self._process.pid), signal.SIGKILL)
        if self._ended is not None:
            await self._ended

    async def _run(
        self,
        process: asyncio.subprocess.Process,
        console: asyncio.StreamReader,
        on_output: Callable[[bytes], None],
        on_exit: Callable[[int, str], None],
    ) -> None:
        """Pass on output from the start of the process until its end and its last byte."""
        await asyncio.gather(_pump(console, on_output), self._keep(process.stderr))
        status = await process.wait()
        for stream in (self._console, self._monitor and self._monitor.writer):
            if stream:
                stream.close()
        self._console = self._monitor = None
        if not self._killed:
            on_exit(status, self.error_output)

    async def _keep(self, stderr: asyncio.StreamReader | None) -> None:
        while stderr and (data := await stderr.read(4096)):
            self._stderr = (self._stderr + data)[-_STDERR_KEPT:]


def guest_of(pid: int) -> int:
    """Return the process of QEMU: the only child of bubblewrap, which ends after it, or `pid` itself."""
    with contextlib.suppress(OSError):
        if children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            return int(children[0])
    return pid


class _Monitor:
    """Client of QEMU's machine protocol (QMP): one command at a time; events are ignored."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._lock = asyncio.Lock()

    async def negotiate(self) -> None:
        await self._message()
        await self.command("qmp_capabilities", {})

    async def command(self, name: str, arguments: dict[str, Any]) -> Any:
        async with self._lock:
            self.writer.write(json.dumps({"execute": name, "arguments": arguments}).encode() + b"\n")
            while True:
                message = await self._message()
                if "error" in message:
                    raise MachineError(f"QEMU refuses {name}: {message['error'].get('desc')}")
                if "return" in message:
                    return message["return"]

    async def _message(self) -> dict[str, Any]:
        try:
            line = await self._reader.readline()
        except OSError as error:
            raise MachineError(f"the connection to QEMU's monitor is closed: {error}") from error
        if not line:
            raise MachineError("the connection to QEMU's monitor is closed")
        message: dict[str, Any] = json.loads(line)
        return message


async def _pump(reader: asyncio.StreamReader, on_output: Callable[[bytes], None]) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(_CONSOLE_CHUNK):
            on_output(data)
