"""Relay TCP connections from an address of this machine to the same port on its loopback."""

from __future__ import annotations

import asyncio
import contextlib

LOOPBACK = "127.0.0.1"
_CHUNK = 1 << 16


async def relay(address: str, port: int) -> asyncio.Server:
    """Accept connections on `address` and connect each with the loopback. Raises OSError if the port is in use.

    QEMU's user network shows a guest the address of a client that is not on the loopback, and guests have no route for
    their answer.
    """
    return await asyncio.start_server(lambda *client: _connect(port, *client), address, port)


async def _connect(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.closing(writer), contextlib.suppress(OSError):
        inner_reader, inner_writer = await asyncio.open_connection(LOOPBACK, port)
        with contextlib.closing(inner_writer):
            await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Write what is read, up to its end, which the other side then sees. Raises OSError if a connection breaks."""
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    writer.write_eof()
