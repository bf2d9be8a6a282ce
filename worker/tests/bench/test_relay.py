from __future__ import annotations

import asyncio

from wqlab_bench.relay import relay

from .conftest import free_port

OTHER = "127.0.0.2"


def test_both_directions_are_relayed_up_to_their_ends() -> None:
    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        writer.close()

    async def scenario() -> bytes:
        port = free_port()
        async with await asyncio.start_server(shout, "127.0.0.1", port), await relay(OTHER, port):
            reader, writer = await asyncio.open_connection(OTHER, port)
            writer.write(b"hello" * 100_000)
            writer.write_eof()
            answer = await reader.read()
            writer.close()
            return answer

    assert asyncio.run(scenario()) == b"HELLO" * 100_000


def test_connection_ends_while_the_device_is_off() -> None:
    async def scenario() -> bytes:
        port = free_port()
        async with await relay(OTHER, port):
            reader, writer = await asyncio.open_connection(OTHER, port)
            answer = await reader.read()
            writer.close()
            return answer

    assert asyncio.run(scenario()) == b""
