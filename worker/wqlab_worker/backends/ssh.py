"""Run commands on a device over one SSH master connection."""

from __future__ import annotations

import os
import selectors
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..measure.device_text import decode_output
from .console_tap import Wakeup

ALIVE_INTERVAL_S = 10
ALIVE_COUNT = 4
"""The connection ends when the device's sshd has not answered for interval x count seconds."""
_CONNECTED = b"connected\n"
STDOUT_LIMIT = 32 << 20
STDERR_LIMIT = 1 << 20
"""Most bytes that a command may print; then it is killed, so that a device cannot fill the worker's memory."""
_PIECE = 1 << 16
HOST_KEY_REFUSED = "Host key verification failed"
"""SSH's message if the server's key is unknown, or another than before."""


@dataclass(frozen=True)
class CommandResult:
    """Exit status and output of a command that ended."""

    status: int
    """255 is SSH's own: the connection broke (no command of the lab ends with 255)."""
    stdout: bytes
    stderr: bytes
    output_excess: str | None = None
    """Reason why the command was killed, if it printed too much; otherwise None."""

    @property
    def text(self) -> str:
        return decode_output(self.stdout)

    @property
    def stderr_text(self) -> str:
        return decode_output(self.stderr)

    @property
    def transport_lost(self) -> bool:
        return self.status == 255


class Command:
    """A running command. When it ends, `done` becomes true and `wakeup` is notified."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes | None, wakeup: Wakeup) -> None:
        self._process = process
        self._stdin = stdin
        self._wakeup = wakeup
        self._killed = False
        self.answer: CommandResult | None = None
        """None until the command has ended by itself."""
        self._thread = threading.Thread(target=self._collect, name="ssh command", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        return self.answer is not None

    def _collect(self) -> None:
        answer = _communicate(self._process, self._stdin)
        if not self._killed:
            self.answer = answer
        self._wakeup.notify()

    def kill(self) -> None:
        """Kill the local ssh process; the command on the device keeps running."""
        self._killed = True
        self._process.kill()
        self._thread.join(timeout=5)


def _communicate(process: subprocess.Popen[bytes], stdin: bytes | None) -> CommandResult:
    """Like `Popen.communicate`, but with output limits, and without waiting for other processes that hold the pipes."""
    assert process.stdout and process.stderr  # noqa: S101 - both are pipes
    output = {process.stdout: bytearray(), process.stderr: bytearray()}
    limits = {process.stdout: STDOUT_LIMIT, process.stderr: STDERR_LIMIT}
    names = {process.stdout: "standard output", process.stderr: "standard error"}
    output_excess: str | None = None
    with selectors.DefaultSelector() as ready:
        for stream in output:
            ready.register(stream, selectors.EVENT_READ)
        left = memoryview(stdin or b"")
        if process.stdin:
            os.set_blocking(process.stdin.fileno(), False)
            ready.register(process.stdin, selectors.EVENT_WRITE)
        while ready.get_map() and not output_excess:
            for key, _ in ready.select():
                pipe: Any = key.fileobj
                if pipe is process.stdin:
                    left = _write_some(key.fd, left)
                    ended = not left
                else:
                    data = os.read(key.fd, _PIECE)
                    ended = not data
                    kept = limits[pipe] - len(output[pipe])
                    output[pipe] += data[:kept]
                    if len(data) > kept:
                        output_excess = f"more than {limits[pipe] >> 20} MiB on {names[pipe]}"
                if ended:
                    ready.unregister(pipe)
                    pipe.close()
    if output_excess:
        process.kill()
        process.stdout.close()
        process.stderr.close()
    if process.stdin:
        process.stdin.close()
    return CommandResult(process.wait(), bytes(output[process.stdout]), bytes(output[process.stderr]), output_excess)


def _write_some(pipe: int, data: memoryview) -> memoryview:
    """Write a part of `data`; return the rest, or nothing if the other end has closed."""
    try:
        return data[os.write(pipe, data[:_PIECE]) :]
    except BlockingIOError:
        return data
    except BrokenPipeError:
        return data[:0]


@dataclass(frozen=True)
class SshServer:
    """Address of an SSH server, and the key with which it lets the lab in."""

    address: str
    port: int
    username: str
    keyfile: str
    """Private key; empty: as the user's own configuration says."""
    user_config: bool = False
    """True: the user's SSH configuration applies too, such as a jump host; `port` 0 leaves that to it."""
    new_host_key: bool = True
    """True for a system of the lab, which generates a host key in each boot. False: the host key must be known."""


class SshConnection:
    """SSH connection: `connect` opens the master connection, `start` runs a command over it, `close` drops it at once.

    A subclass tells the server by `server`.
    """

    _master: subprocess.Popen[bytes] | None = None
    _folder: Path | None = None
    _error = b""

    def server(self) -> SshServer:
        """Return the server of the device."""
        raise NotImplementedError

    @property
    def address(self) -> str:
        """Address of the device, as the lab connects to it."""
        return self.server().address

    def _options(self) -> list[str]:
        server = self.server()
        options = {
            "BatchMode": "yes",
            "LogLevel": "ERROR",
            "ClearAllForwardings": "yes",
            "ControlPath": f"{self._folder}/control",
            "ControlPersist": "no",
            "User": server.username,
        }
        if server.port:
            options["Port"] = str(server.port)
        if server.keyfile:
            options |= {"IdentitiesOnly": "yes", "IdentityAgent": "none"}
        if server.new_host_key:
            options |= {"StrictHostKeyChecking": "no", "UserKnownHostsFile": "/dev/null"}
        # Forward nothing of this host to the device: no agent, no Kerberos ticket, no display, no port.
        words = ["-a", "-k", "-x", *(() if server.user_config else ("-F", "none"))]
        return [*words, *(part for name, value in options.items() for part in ("-o", f"{name}={value}"))]

    def connect(self, wakeup: Wakeup, stopped: Callable[[], bool], timeout_s: float) -> str | None:
        """Connect; return None on success, else the reason. A refused connection is tried again until the timeout, a
        refused key of either side is not."""
        deadline = time.monotonic() + timeout_s
        while True:
            reason = self._connect_once(wakeup, stopped, max(1.0, deadline - time.monotonic()))
            if reason is None or is_refused(reason) or stopped() or time.monotonic() >= deadline - 0.5:
                return reason
            # Refused or reset: the device's network is coming up or going down, and no event reports either.
            wakeup.wait_for(stopped, min(0.5, deadline - time.monotonic()))

    def _connect_once(self, wakeup: Wakeup, stopped: Callable[[], bool], timeout_s: float) -> str | None:
        self.close()
        self._folder = Path(tempfile.mkdtemp(prefix="wqlab-ssh-"))
        command = [
            "ssh",
            *self._options(),
            "-MN",
            *(("-i", key) if (key := self.server().keyfile) else ()),
            *("-o", f"ConnectTimeout={max(1, round(timeout_s))}"),
            *("-o", f"ServerAliveInterval={ALIVE_INTERVAL_S}", "-o", f"ServerAliveCountMax={ALIVE_COUNT}"),
            # Runs on this host once the master is authenticated and listens: the event that it is connected.
            *("-o", "PermitLocalCommand=yes", "-o", "LocalCommand=echo connected"),
            self.address,
        ]
        self._error = b""
        self._master = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        lines: list[bytes] = []

        def listen(process: subprocess.Popen[bytes]) -> None:
            assert process.stdout and process.stderr  # noqa: S101 - both are pipes
            lines.append(process.stdout.readline())
            wakeup.notify()
            if lines[0] != _CONNECTED:
                self._error = process.stderr.read(STDERR_LIMIT)
                lines.append(b"ended")
                wakeup.notify()

        threading.Thread(target=listen, args=(self._master,), name="ssh master", daemon=True).start()
        wakeup.wait_for(lambda: lines == [_CONNECTED] or len(lines) > 1 or stopped(), timeout_s + 1)
        if lines == [_CONNECTED]:
            return None
        self.close()
        return self._error.decode(errors="replace").strip()[-500:] or f"no SSH answer in {timeout_s:.0f} s"

    def greets(self, timeout_s: float) -> bool:
        """Return True if an SSH server answers at the device's address, whether it lets the lab in or not."""
        server = self.server()
        try:
            with socket.create_connection((server.address, server.port), timeout_s) as connection:
                # A forwarded port accepts for a machine that is off; only a server sends its greeting.
                connection.settimeout(timeout_s)
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    @property
    def connected(self) -> bool:
        return self._master is not None and self._master.poll() is None

    def start(self, command: str, wakeup: Wakeup, stdin: bytes | None = None) -> Command:
        """Start a command in the device's shell."""
        process = subprocess.Popen(
            ["ssh", *self._options(), self.address, command],
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        return Command(process, stdin, wakeup)

    def stream(self, command: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        """Start a command whose output the caller reads as it comes. The caller kills the process."""
        return subprocess.Popen(
            ["ssh", *self._options(), self.address, command],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def close(self) -> None:
        """Close the connection without waiting for the device, which may be dead."""
        if self._master:
            self._master.kill()
            self._master.wait()
            self._master = None
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def is_key_refused(reason: str) -> bool:
    """Return True if `reason`, the error of ssh(1), says that the server refused the key.

    The server's refusal lists its methods in brackets. Without them, connect(2) failed, for example by a firewall.
    """
    return "Permission denied (" in reason or "Too many authentication failures" in reason


def is_refused(reason: str) -> bool:
    """Return True if `reason`, the error of ssh(1), says that server or client refused the other's key."""
    return is_key_refused(reason) or HOST_KEY_REFUSED in reason


class FixedSsh(SshConnection):
    """SSH connection to one server."""

    def __init__(self, server: SshServer) -> None:
        self._server = server

    def server(self) -> SshServer:
        return self._server


def public_key_blob(public_key_file: Path) -> str:
    """Return the base64 field of an OpenSSH public key file. Raises ValueError unless it is an ed25519 key."""
    kind, _, rest = public_key_file.read_text().strip().partition(" ")
    if kind != "ssh-ed25519":
        raise ValueError(f"{public_key_file} holds a {kind} key; devices take ssh-ed25519")
    return rest.split(" ")[0]
