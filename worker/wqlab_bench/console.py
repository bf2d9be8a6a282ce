"""Serve a serial console over TCP to any number of clients and log it, across power cycles."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

OLDER_LOGS = 20
"""Number of logs of earlier power-ons, kept as <log>.1 (the newest) and so on."""

OUTPUT_LIMIT = 32 << 20
"""Bytes of output of one power-on; the rest is left out. A line at 115200 baud carries so much in 48 minutes."""

CLIENT_BACKLOG = 8 << 20
"""Unread bytes after which a client is disconnected, because it would not notice a gap in the output."""

GAP = b"\nwqlab-bench: console output is missing here, because the log could not be written\n"

log = logging.getLogger(__name__)


class Console:
    """The console of one device: output goes to the log and then to all clients, input from clients goes to the device.

    The log is complete up to OUTPUT_LIMIT, or says where its disk was full, and never waits for a client. A new client
    gets only later output.
    """

    def __init__(self, log: Path, on_input: Callable[[bytes], None]) -> None:
        self.log = log
        self._on_input = on_input
        self._clients: set[asyncio.StreamWriter] = set()
        self._file: BinaryIO | None = None
        self._left = OUTPUT_LIMIT
        self._has_gap = False
        """Output was lost at the end of the log."""
        self._server: asyncio.Server | None = None

    async def listen(self, port: int, address: str = "127.0.0.1") -> None:
        """Listen for clients on `address` and `port`. Raises OSError if the port is in use."""
        self._server = await asyncio.start_server(self._serve, address, port)

    @property
    def clients(self) -> int:
        return len(self._clients)

    def start_log(self) -> None:
        """Start the log of a power-on and rename the earlier logs to the next number."""
        self._close_log()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        older = [self.log, *(self.log.with_name(f"{self.log.name}.{n}") for n in range(1, OLDER_LOGS + 1))]
        for target, source in zip(reversed(older[1:]), reversed(older[:-1]), strict=True):
            if source.exists():
                source.replace(target)
        self._left = OUTPUT_LIMIT
        self._has_gap = False
        self._write_log(b"")

    def write(self, data: bytes) -> None:
        """Log output of the device and send it to all clients, up to OUTPUT_LIMIT bytes since `start_log`."""
        if self._left <= 0:
            return
        if len(data) >= self._left:
            note = f"\nwqlab-bench: console output after {OUTPUT_LIMIT >> 20} MiB is left out\n"
            data = data[: self._left] + note.encode()
        self._left -= len(data)
        self._write_log(data)
        for client in list(self._clients):
            if client.transport.get_write_buffer_size() + len(data) > CLIENT_BACKLOG:
                self._clients.discard(client)
                client.transport.abort()
            else:
                client.write(data)

    def _write_log(self, data: bytes) -> None:
        """Append to the log. Without the log the console goes on: its silence would look like a hang of the guest."""
        try:
            if self._file is None:
                self._file = self.log.open("ab", buffering=0)
            whole = GAP + data if self._has_gap else data
            written = self._file.write(whole)
        except OSError as error:
            if not self._has_gap:
                log.error("%s has a gap: %s", self.log, error)
            self._has_gap = True
        else:
            # A disk that becomes full takes a part, and refuses the next write.
            self._has_gap = written < len(whole)

    def disconnect(self) -> None:
        """Close the connections of all clients after what was written. They can connect again."""
        for client in list(self._clients):
            client.close()
        self._clients.clear()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self.disconnect()
        self._close_log()

    def _close_log(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        try:
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(4096):
                    self._on_input(data)
        finally:
            self._clients.discard(writer)
            writer.close()
