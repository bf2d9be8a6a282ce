"""Devices with a small program in place of QEMU, and clients of their consoles."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from wqlab_bench.capacity import Slots
from wqlab_bench.emulated_device import EmulatedDevice

FAKE_QEMU = [sys.executable, str(Path(__file__).parent / "fake_qemu.py")]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Client:
    """A console client that keeps all received output."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    seen: bytes = b""
    _searched: int = field(default=0)

    @classmethod
    async def connect(cls, port: int) -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def until(self, text: bytes) -> None:
        """Read until `text` appears after the match of the last call. Raises EOFError."""
        while (place := self.seen.find(text, self._searched)) < 0:
            data = await self.reader.read(65536)
            if not data:
                raise EOFError(self.seen[-200:])
            self.seen += data
        self._searched = place + len(text)

    async def drain(self) -> None:
        """Read until no output arrives for a moment."""
        with contextlib.suppress(TimeoutError):
            while not self.reader.at_eof():
                async with asyncio.timeout(0.3):
                    self.seen += await self.reader.read(65536)

    async def stays_silent(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return not await self.reader.read(1)
        except TimeoutError:
            return True

    def send(self, text: bytes) -> None:
        self.writer.write(text)


@pytest.fixture
def make_device(tmp_path: Path) -> Callable[..., EmulatedDevice]:
    def make(name: str = "device", slots: Slots | None = None, *arguments: str) -> EmulatedDevice:
        return EmulatedDevice(name, [*FAKE_QEMU, *arguments], tmp_path / f"{name}.log", slots or Slots(1, wait_s=0.2))

    return make
