"""A serial console server: one authoritative log, any number of TCP clients, across any number of power cycles."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

OLDER_LOGS = 20
"""Logs of earlier power-ons that are kept as <log>.1 (the newest) and so on."""

CLIENT_BACKLOG = 8 << 20
"""Bytes a client may lag behind before it is cut off: a closed connection tells it, a silent gap would not."""


class Console:
    """What the device says goes to the log first, then to whoever is connected; what clients say goes to the device.

    The log is never lossy and never waits for a client. New clients see what comes from then on, nothing is replayed.
    """

    def __init__(self, log: Path, on_input: Callable[[bytes], None]) -> None:
        self.log = log
        self._on_input = on_input
        self._clients: set[asyncio.StreamWriter] = set()
        self._file: BinaryIO | None = None
        self._server: asyncio.Server | None = None

    async def listen(self, port: int) -> None:
        """Accepts clients on 127.0.0.1. Raises OSError if the port is taken."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)

    @property
    def clients(self) -> int:
        return len(self._clients)

    def begin(self) -> None:
        """Starts the log of a power-on; the earlier ones move one number up."""
        self._close_log()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        older = [self.log, *(self.log.with_name(f"{self.log.name}.{n}") for n in range(1, OLDER_LOGS + 1))]
        for target, source in zip(reversed(older[1:]), reversed(older[:-1]), strict=True):
            if source.exists():
                source.replace(target)
        self._file = self.log.open("ab", buffering=0)

    def write(self, data: bytes) -> None:
        """The device's output: logged whole, then offered to every client."""
        if self._file is None:
            self._file = self.log.open("ab", buffering=0)
        self._file.write(data)
        for client in list(self._clients):
            if client.transport.get_write_buffer_size() + len(data) > CLIENT_BACKLOG:
                self._clients.discard(client)
                client.transport.abort()
            else:
                client.write(data)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for client in list(self._clients):
            client.close()
        self._clients.clear()
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
