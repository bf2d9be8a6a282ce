"""The lines between the lab and a rehearsal machine's equipment, which can have faults.

    python -m wqlab_rehearsal.links CONFIGURATION.json

The lab's addresses are those of this program. It passes datagrams to the BMC or PDU and a TCP connection to the console
server, as they are unless a fault is set (`faults`). Faults that depend on what the machine does, such as a card that
loses its link at kexec, begin when their text is on the console.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal, cast

from pydantic import BaseModel

from . import noise
from .current_faults import HOST, LATE_S, CurrentFaults

KEXEC_BEGINS = b"wqlab: kexec -e"
NEW_KERNEL = b"Starting new kernel"
VARIANT_READY = b"wqlab-ready token="


class Line(BaseModel):
    """Two ports on the loopback: the lab's, and the one of the equipment behind it."""

    listen: int
    to: int


class Configuration(BaseModel):
    """What the program reads from its file."""

    faults: Path
    power: Line
    power_protocol: Literal["udp", "tcp"] = "udp"
    console: Line
    """TCP."""
    monitor: Path
    """QEMU's QMP socket."""


class PowerLine(asyncio.DatagramProtocol):
    """Pass datagrams between each client and the BMC or PDU."""

    def __init__(self, to: int, current: CurrentFaults) -> None:
        self._to = to
        self._current = current
        self._servers: dict[tuple[str, int], asyncio.Task[asyncio.DatagramTransport]] = {}
        self._passing: set[asyncio.Task[None]] = set()
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, client: tuple[str, int]) -> None:
        if "bmc-silent" not in self._current.names and not self._current.rebooting:
            passing = asyncio.ensure_future(self._pass_on(data, client))
            self._passing.add(passing)
            passing.add_done_callback(self._passing.discard)

    async def _pass_on(self, data: bytes, client: tuple[str, int]) -> None:
        if client not in self._servers:
            self._servers[client] = asyncio.ensure_future(self._connect(client))
        (await self._servers[client]).sendto(data)

    async def _connect(self, client: tuple[str, int]) -> asyncio.DatagramTransport:
        server, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: Answers(lambda answer: self._answer(answer, client)), remote_addr=(HOST, self._to)
        )
        return server

    def _answer(self, data: bytes, client: tuple[str, int]) -> None:
        if "bmc-silent" in self._current.names or self._current.rebooting or self._transport is None:
            return
        delay_s = LATE_S if "bmc-late" in self._current.names else 0
        asyncio.get_running_loop().call_later(delay_s, self._transport.sendto, data, client)


class Answers(asyncio.DatagramProtocol):
    """Give each datagram of a server to `answer`."""

    def __init__(self, answer: Callable[[bytes], None]) -> None:
        self._give = answer

    def datagram_received(self, data: bytes, _: object) -> None:
        self._give(data)


class ConsoleLine:
    """Forward the console's TCP connections, and damage the machine's bytes as the current faults say."""

    def __init__(self, to: int, current: CurrentFaults, events: Events) -> None:
        self._to = to
        self._current = current
        self._events = events
        self._open: set[asyncio.StreamWriter] = set()
        current.on_change.append(self._cut)

    def _closed(self) -> bool:
        return "console-closed" in self._current.names or self._current.rebooting

    def _cut(self) -> None:
        if self._closed():
            for writer in self._open:
                writer.transport.abort()

    async def plug(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._closed():
            writer.transport.abort()
            return
        try:
            from_server, to_server = await asyncio.open_connection(HOST, self._to)
        except OSError:
            writer.close()
            return
        self._open |= {writer, to_server}
        try:
            await asyncio.gather(_copy(reader, to_server), self._from_machine(from_server, writer))
        finally:
            self._open -= {writer, to_server}

    async def _from_machine(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        damage = noise.Damage()
        with contextlib.suppress(OSError):
            while data := await reader.read(4096):
                await self._events.see(data)
                if seen := damage.apply(data, self._current.names):
                    writer.write(seen)
                    await writer.drain()
        writer.close()


class Events:
    """Begin faults when the console shows that the machine has come to their place."""

    def __init__(self, current: CurrentFaults, monitor: Path) -> None:
        self._current = current
        self._monitor = monitor
        self._tail = b""

    async def see(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-4096:]
        *lines, self._tail = self._tail.split(b"\n")
        for line in lines:
            await self._line(line, self._current.names)

    async def _line(self, line: bytes, names: frozenset[str]) -> None:
        if KEXEC_BEGINS in line and "kexec-hangs" in names:
            await self._execute("stop")
        elif NEW_KERNEL in line and "link-lost-at-kexec" in names:
            await self._execute("set_link", name="net0", up=False)
        elif VARIANT_READY in line and b"token=- " not in line:
            # A memory read error of channel 0 at 0x1234000 (Intel SDM 3B, machine-check architecture).
            if "memory-error" in names:
                await self._monitor_command("mce 0 9 0x9c00004000000090 0x0 0x1234000 0x8c")
            if "memory-error-fatal" in names:
                await self._monitor_command("mce -b 0 9 0xbe00000000000090 0x5 0x1234000 0x8c")

    async def _monitor_command(self, line: str) -> None:
        await self._execute("human-monitor-command", **{"command-line": line})

    async def _execute(self, command: str, **arguments: object) -> None:
        """Execute a command of QMP. A machine that has just been switched off has no monitor."""
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_unix_connection(self._monitor)
            await reader.readline()
            for words in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": arguments}):
                writer.write(json.dumps(words).encode() + b"\n")
                print(command, (await reader.readline()).decode().strip(), flush=True)
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(4096):
            writer.write(data)
            await writer.drain()
    writer.close()


async def serve(configuration: Configuration) -> None:
    """Pass everything on until SIGTERM or SIGINT."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    current = CurrentFaults(configuration.faults)
    power = configuration.power
    tasks = [asyncio.ensure_future(current.follow())]
    if configuration.power_protocol == "tcp":
        # It reads this module's faults.
        from .power_stream import PowerStream

        tasks.append(asyncio.ensure_future(PowerStream(power.listen, power.to, current).serve()))
    else:
        await loop.create_datagram_endpoint(lambda: PowerLine(power.to, current), local_addr=(HOST, power.listen))
    console = ConsoleLine(configuration.console.to, current, Events(current, configuration.monitor))
    await asyncio.start_server(console.plug, HOST, configuration.console.listen)
    await ended.wait()
    for task in tasks:
        task.cancel()


def main() -> None:
    asyncio.run(serve(Configuration.model_validate_json(Path(sys.argv[1]).read_bytes())))


if __name__ == "__main__":
    main()
