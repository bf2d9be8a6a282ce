"""Commands on a device over one SSH master connection. A labgrid driver, bound to a NetworkService.

labgrid's own SSHDriver polls for the connection, splits commands at blanks, cannot stream into a command, and takes
up to two minutes to let go of a dead device; see docs/decisions.
"""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import attr
from labgrid import target_factory
from labgrid.driver.common import Driver

from ..measure.text import decoded
from .console import Watch

ALIVE_INTERVAL_S = 10
ALIVE_COUNT = 4
"""The connection is given up when the device's sshd has not answered for interval x count seconds."""
_CONNECTED = b"connected\n"


STDOUT_LIMIT = 32 << 20
STDERR_LIMIT = 1 << 20
"""Bytes that a command may print; beyond that it is killed: a device must not fill its worker's memory."""
_PIECE = 1 << 16


@dataclass(frozen=True)
class Answer:
    status: int
    """255 is SSH's own: the transport broke (or the command really ended with 255, which ours never do)."""
    stdout: bytes
    stderr: bytes
    excess: str | None = None
    """Set when the command was killed because it printed too much; in words."""

    @property
    def text(self) -> str:
        return decoded(self.stdout)

    @property
    def complaint(self) -> str:
        return decoded(self.stderr)

    @property
    def transport_lost(self) -> bool:
        return self.status == 255


class Command:
    """A running command; `done` turns true, and the watch rings, when it has ended."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes | None, watch: Watch) -> None:
        self._process = process
        self._stdin = stdin
        self._watch = watch
        self._killed = False
        self.answer: Answer | None = None
        """None until it has ended by itself."""
        self._thread = threading.Thread(target=self._collect, name="ssh command", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        return self.answer is not None

    def _collect(self) -> None:
        answer = _talk(self._process, self._stdin)
        if not self._killed:
            self.answer = answer
        self._watch.ring()

    def kill(self) -> None:
        """Ends the local end; what runs on the device stays."""
        self._killed = True
        self._process.kill()
        self._thread.join(timeout=5)


def _talk(process: subprocess.Popen[bytes], stdin: bytes | None) -> Answer:
    """`Popen.communicate` with bounds. Leaves the pipes closed; does not wait for whoever else may hold them."""
    assert process.stdout and process.stderr  # noqa: S101 - both are pipes
    said = {process.stdout: bytearray(), process.stderr: bytearray()}
    limits = {process.stdout: STDOUT_LIMIT, process.stderr: STDERR_LIMIT}
    names = {process.stdout: "standard output", process.stderr: "standard error"}
    excess: str | None = None
    with selectors.DefaultSelector() as ready:
        for output in said:
            ready.register(output, selectors.EVENT_READ)
        left = memoryview(stdin or b"")
        if process.stdin:
            os.set_blocking(process.stdin.fileno(), False)
            ready.register(process.stdin, selectors.EVENT_WRITE)
        while ready.get_map() and not excess:
            for key, _ in ready.select():
                pipe: Any = key.fileobj
                if pipe is process.stdin:
                    left = _written(key.fd, left)
                    ended = not left
                else:
                    data = os.read(key.fd, _PIECE)
                    ended = not data
                    kept = limits[pipe] - len(said[pipe])
                    said[pipe] += data[:kept]
                    if len(data) > kept:
                        excess = f"more than {limits[pipe] >> 20} MiB on {names[pipe]}"
                if ended:
                    ready.unregister(pipe)
                    pipe.close()
    if excess:
        process.kill()
        process.stdout.close()
        process.stderr.close()
    if process.stdin:
        process.stdin.close()
    return Answer(process.wait(), bytes(said[process.stdout]), bytes(said[process.stderr]), excess)


def _written(pipe: int, data: memoryview) -> memoryview:
    """What is left of `data`; nothing when the other end takes no more."""
    try:
        return data[os.write(pipe, data[:_PIECE]) :]
    except BlockingIOError:
        return data
    except BrokenPipeError:
        return data[:0]


@target_factory.reg_driver
@attr.s(eq=False)
class DeviceSSHDriver(Driver):  # type: ignore[misc]
    """`connect` makes the master connection, `start` begins a command over it, `close` drops it without waiting."""

    bindings = {"networkservice": "NetworkService"}
    keyfile: str = attr.ib(default="", validator=attr.validators.instance_of(str))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._master: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self._error = b""

    def on_deactivate(self) -> None:
        self.close()

    def _options(self) -> list[str]:
        service: Any = self.networkservice
        options = {
            "BatchMode": "yes",
            "IdentitiesOnly": "yes",
            # A device's host key is made anew at every boot; the lab's network is closed.
            "StrictHostKeyChecking": "no",
            "UserKnownHostsFile": "/dev/null",
            "LogLevel": "ERROR",
            "ControlPath": f"{self._folder}/control",
            "Port": str(service.port),
            "User": service.username,
        }
        return ["-x", "-F", "none", *(part for name, value in options.items() for part in ("-o", f"{name}={value}"))]

    def connect(self, watch: Watch, stopped: Callable[[], bool], timeout_s: float) -> str | None:
        """Connects; None when connected, else why not. A refused connection is tried again until the time is over."""
        deadline = time.monotonic() + timeout_s
        while True:
            reason = self._connect_once(watch, stopped, max(1.0, deadline - time.monotonic()))
            if reason is None or stopped() or time.monotonic() >= deadline - 0.5:
                return reason
            # Refused or reset: the device's network is coming up, or going down. Nothing announces either.
            watch.wait_for(stopped, min(0.5, deadline - time.monotonic()))

    def _connect_once(self, watch: Watch, stopped: Callable[[], bool], timeout_s: float) -> str | None:
        self.close()
        self._folder = Path(tempfile.mkdtemp(prefix="wqlab-ssh-"))
        command = [
            "ssh",
            *self._options(),
            "-MN",
            *("-i", self.keyfile),
            *("-o", f"ConnectTimeout={max(1, round(timeout_s))}"),
            *("-o", f"ServerAliveInterval={ALIVE_INTERVAL_S}", "-o", f"ServerAliveCountMax={ALIVE_COUNT}"),
            # Runs here, after authentication, when the master already listens: the event that it is connected.
            *("-o", "PermitLocalCommand=yes", "-o", "LocalCommand=echo connected"),
            self.networkservice.address,
        ]
        self._error = b""
        self._master = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        said: list[bytes] = []

        def listen(process: subprocess.Popen[bytes]) -> None:
            assert process.stdout and process.stderr  # noqa: S101 - both are pipes
            said.append(process.stdout.readline())
            watch.ring()
            if said[0] != _CONNECTED:
                self._error = process.stderr.read(STDERR_LIMIT)
                said.append(b"ended")
                watch.ring()

        threading.Thread(target=listen, args=(self._master,), name="ssh master", daemon=True).start()
        watch.wait_for(lambda: said == [_CONNECTED] or len(said) > 1 or stopped(), timeout_s + 1)
        if said == [_CONNECTED]:
            return None
        self.close()
        return self._error.decode(errors="replace").strip()[-500:] or f"no SSH answer in {timeout_s:.0f} s"

    @property
    def connected(self) -> bool:
        return self._master is not None and self._master.poll() is None

    def start(self, command: str, watch: Watch, stdin: bytes | None = None) -> Command:
        """Begins a command for the device's shell."""
        process = subprocess.Popen(
            ["ssh", *self._options(), self.networkservice.address, command],
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        return Command(process, stdin, watch)

    def close(self) -> None:
        """Never waits for the device: it may be dead."""
        if self._master:
            self._master.kill()
            self._master.wait()
            self._master = None
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
