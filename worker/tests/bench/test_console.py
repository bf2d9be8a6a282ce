from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from wqlab_bench import console as console_module
from wqlab_bench.console import Console

from .conftest import Client, free_port


async def eventually(true: Callable[[], bool]) -> None:
    """Run the event loop until the condition is true."""
    while not true():  # noqa: ASYNC110
        await asyncio.sleep(0)


def test_clients_get_only_output_after_connecting(tmp_path: Path) -> None:
    async def scenario() -> None:
        typed: list[bytes] = []
        console, port = Console(tmp_path / "device.log", typed.append), free_port()
        await console.listen(port)
        console.start_log()
        console.write(b"before\n")
        first, second = await Client.connect(port), await Client.connect(port)
        await eventually(lambda: console.clients == 2)
        console.write(b"hello\n")
        await first.until(b"hello\n")
        await second.until(b"hello\n")
        assert first.seen == second.seen == b"hello\n"
        first.send(b"ls\n")
        second.send(b"\x03")
        await eventually(lambda: len(b"".join(typed)) == 4)
        assert sorted(typed) == [b"\x03", b"ls\n"]
        assert console.log.read_bytes() == b"before\nhello\n"
        await console.close()

    asyncio.run(scenario())


def test_clients_get_the_output_that_the_log_cannot_take(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk."""

    async def scenario() -> None:
        console, port = Console(tmp_path / "device.log", lambda _: None), free_port()
        await console.listen(port)
        client = await Client.connect(port)
        await eventually(lambda: console.clients == 1)
        console.start_log()
        console.write(b"begin\n")
        size, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8, most))
        try:
            console.write(b"lost\n")
            console.write(b"lost too\n")
            console.start_log()
            console.write(b"second power-on\n")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
        console.write(b"end\n")
        await client.until(b"end\n")
        assert client.seen == b"begin\nlost\nlost too\nsecond power-on\nend\n"
        assert console.log.with_name("device.log.1").read_bytes() == b"begin\nlo"
        assert console.log.read_bytes() == b"second p" + console_module.GAP + b"end\n"
        await console.close()

    asyncio.run(scenario())


def test_slow_client_is_disconnected_and_log_stays_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_module, "CLIENT_BACKLOG", 1 << 20)

    async def scenario() -> None:
        console, port = Console(tmp_path / "device.log", lambda _: None), free_port()
        await console.listen(port)
        console.start_log()
        slow, quick = await Client.connect(port), await Client.connect(port)
        slow.reader._limit = 1  # the client stops reading from its socket, whose buffer fills
        await eventually(lambda: console.clients == 2)
        output = b""
        for number in range(400):
            block = f"{number:06}".encode() * 5000
            console.write(block)
            output += block
            await quick.until(block)
            if console.clients == 1:
                break
        assert console.clients == 1, "the slow client is still served"
        assert console.log.read_bytes() == output
        assert quick.seen == output
        await console.close()

    asyncio.run(scenario())


def test_each_power_on_starts_a_log_and_oldest_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_module, "OLDER_LOGS", 2)

    async def scenario() -> None:
        console = Console(tmp_path / "device.log", lambda _: None)
        for number in range(4):
            console.start_log()
            console.write(b"boot %d" % number)
        await console.close()

    asyncio.run(scenario())
    kept = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert kept == {"device.log": "boot 3", "device.log.1": "boot 2", "device.log.2": "boot 1"}


def test_output_over_the_limit_is_left_out_until_the_next_power_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console_module, "OUTPUT_LIMIT", 1 << 20)

    async def scenario() -> None:
        console, port = Console(tmp_path / "device.log", lambda _: None), free_port()
        await console.listen(port)
        console.start_log()
        client = await Client.connect(port)
        await eventually(lambda: console.clients == 1)
        for _ in range(40):
            console.write(b"a guest that prints without end\n" * 2048)
        await client.until(b"console output after 1 MiB is left out\n")
        assert await client.stays_silent(0.2)
        assert console.log.stat().st_size == len(client.seen) < (1 << 20) + 100
        console.start_log()
        console.write(b"next boot\n")
        await client.until(b"next boot\n")
        await console.close()

    asyncio.run(scenario())
