"""Receive a machine's netconsole and offer it as a TCP console, which labgrid reads like that of a console server.

    wqlab-netconsole --udp 192.0.2.1:6666 --from 192.0.2.12 --tcp 127.0.0.1:7003

One program serves one machine. Any number of clients read; what they write is dropped, because netconsole has no input.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import signal
import socket
import sys
import time
from collections.abc import Sequence

from .netconsole import WAIT_S, Console

log = logging.getLogger(__name__)

_UNREAD_LIMIT = 4 << 20
"""Most bytes kept for a client that does not read; then it is disconnected."""
_RECEIVE_BUFFER = 4 << 20
"""Bytes for datagrams that have not been read: a booting kernel sends its whole log at once."""
_SO_RCVBUFFORCE = 33


class Receiver:
    """Receive the machine's datagrams and send the console's text to all clients. Datagrams of other senders than
    `source` are ignored, unless it is None."""

    def __init__(self, source: str | None) -> None:
        self._source = source
        self._console = Console()
        self._clients: set[asyncio.StreamWriter] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._refused: set[str] = set()

    def read(self, udp: socket.socket) -> None:
        """Read all datagrams that have come."""
        with contextlib.suppress(BlockingIOError):
            while True:
                data, (sender, _) = udp.recvfrom(65536)
                self._receive(data, sender)

    def _receive(self, data: bytes, sender: str) -> None:
        if self._source is not None and sender != self._source:
            if sender not in self._refused and len(self._refused) < 100:
                self._refused.add(sender)
                log.warning("datagrams from %s are dropped: the machine is %s", sender, self._source)
            return
        self._show(self._console.receive(data, time.monotonic()))

    async def serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        with contextlib.suppress(OSError):
            while await reader.read(4096):
                pass
        self._clients.discard(writer)
        writer.close()

    def _show(self, text: bytes) -> None:
        for client in list(self._clients) if text else ():
            if client.transport.get_write_buffer_size() > _UNREAD_LIMIT:
                self._clients.discard(client)
                client.transport.abort()
            else:
                client.write(text)
        if self._timer is None and self._console.waiting:
            self._timer = asyncio.get_running_loop().call_later(WAIT_S, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self._show(self._console.expire(time.monotonic()))


async def serve(udp: socket.socket, tcp: socket.socket, source: str | None) -> None:
    """Serve until SIGTERM or SIGINT. `udp` is bound; `tcp` listens."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    receiver = Receiver(source)
    udp.setblocking(False)
    loop.add_reader(udp, receiver.read, udp)
    server = await asyncio.start_server(receiver.serve_client, sock=tcp)
    await ended.wait()
    server.close()


def _enlarge_buffer(udp: socket.socket) -> None:
    try:
        udp.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER)
    except PermissionError:
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
    # The kernel counts its own data too, and reports twice what may be asked for.
    if (allowed := udp.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2) < _RECEIVE_BUFFER:
        log.warning(
            "this host allows a buffer of %d bytes, so a busy host may lose messages of a boot: "
            "sysctl net.core.rmem_max=%d",
            allowed,
            _RECEIVE_BUFFER,
        )


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not ADDRESS:PORT, such as 192.0.2.1:6666")
    return host, int(port)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("wqlab-netconsole", description="Offer a machine's netconsole as a TCP console.")
    parser.add_argument("--udp", type=_address, required=True, metavar="ADDRESS:PORT", help="where the kernel sends")
    parser.add_argument("--tcp", type=_address, required=True, metavar="ADDRESS:PORT", help="where labgrid reads")
    parser.add_argument(
        "--from", dest="source", metavar="ADDRESS", help="IP address of the machine; others are dropped"
    )
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    _enlarge_buffer(udp)
    try:
        udp.bind(given.udp)
        tcp = socket.create_server(given.tcp)
    except OSError as error:
        parser.exit(1, f"wqlab-netconsole: {given.udp[0]}:{given.udp[1]}, {given.tcp[0]}:{given.tcp[1]}: {error}\n")
    asyncio.run(serve(udp, tcp, given.source))


if __name__ == "__main__":
    main()
