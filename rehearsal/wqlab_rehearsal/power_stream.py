"""The line between the lab and servod, which can have the faults of a BMC: late, silent, gone for a while."""

from __future__ import annotations

import asyncio
import contextlib

from .current_faults import HOST, LATE_S, POLL_S, CurrentFaults


class PowerStream:
    """Forward TCP connections to servod as the current faults say."""

    def __init__(self, listen: int, to: int, current: CurrentFaults) -> None:
        self._listen = listen
        self._to = to
        self._current = current

    async def serve(self) -> None:
        """Listen, except while servod restarts: connections are refused then."""
        server: asyncio.Server | None = None
        try:
            while True:
                if self._current.rebooting and server is not None:
                    server.close()
                    server = None
                elif not self._current.rebooting and server is None:
                    server = await asyncio.start_server(self._pass_on, HOST, self._listen)
                await asyncio.sleep(POLL_S)
        finally:
            if server is not None:
                server.close()

    async def _pass_on(self, client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        try:
            servod, to_servod = await asyncio.open_connection(HOST, self._to)
        except OSError:
            answer.transport.abort()
            return
        try:
            await asyncio.gather(_copy(client, to_servod), self._answer(servod, answer))
        finally:
            to_servod.close()
            answer.close()

    async def _answer(self, servod: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await servod.read(65536):
                if "bmc-silent" in self._current.names:
                    continue
                if "bmc-late" in self._current.names:
                    await asyncio.sleep(LATE_S)
                answer.write(data)
                await answer.drain()
        while "bmc-silent" in self._current.names:  # noqa: ASYNC110 - the faults are a file, which sends no event
            await asyncio.sleep(POLL_S)
        answer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()
