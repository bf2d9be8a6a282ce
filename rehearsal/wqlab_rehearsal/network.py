"""The network of one rehearsal machine: a switch, DHCP and TFTP by dnsmasq, in a network namespace of its own.

    python -m wqlab_rehearsal.network CONFIGURATION.json

A machine's cards plug into Unix stream sockets (QEMU's `-netdev stream`). The namespace has one more port, with the
address of the lab's side. The lab reaches the machine's SSH port through a TCP port on the host's loopback, as through
a router. Nothing in the namespace reaches any other network. It needs user namespaces and no privileges.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import logging
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from .current_faults import CurrentFaults
from .netboot import GATEWAY, INTERFACE, MACHINE_ADDRESS
from .network_faults import BadNetwork, DhcpServers

log = logging.getLogger(__name__)

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_ETH_P_ALL = 0x0003
_SIOCETHTOOL = 0x8946
_CHECKSUMS, _SEGMENTS = 0x17, (0x1F, 0x24, 0x19)
"""ETHTOOL_STXCSUM; ETHTOOL_STSO, ETHTOOL_SGSO and ETHTOOL_SSG of linux/ethtool.h."""
_PORT = "port0"
"""Other end of the lab's interface, from which frames are taken to the machine's cards."""
_FRAME_LIMIT = 65536
NETCONSOLE_PORT = 6666
"""UDP port of the lab's side to which machines send netconsole."""


class Configuration(BaseModel):
    """What the program reads from its file."""

    sockets: list[Path]
    """Socket of each card."""
    dnsmasq: Path
    """Configuration file of dnsmasq."""
    ssh_port: int
    """TCP port on the host's loopback that leads to the machine's SSH port."""
    faults: Path | None = None
    """File with the faults of this network (`faults`)."""
    netconsole_port: int | None = None
    """UDP port on the host's loopback to which what the machine sends to NETCONSOLE_PORT is passed."""


class Switch:
    """Pass each frame to all other ports. Two cards and a server need no table of addresses."""

    def __init__(self, lab: socket.socket, bad_network: BadNetwork) -> None:
        self._lab = lab
        self._bad_network = bad_network
        self._cards: set[asyncio.StreamWriter] = set()

    async def run_lab_port(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            frame = await loop.sock_recv(self._lab, _FRAME_LIMIT)
            delay_s = self._bad_network.delay_s(frame, from_machine=False)
            if delay_s == 0:
                self._forward(frame, None)
            elif delay_s is not None:
                loop.call_later(delay_s, self._forward, frame, None)

    async def plug(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one card. QEMU sends the length of each frame in four bytes before it."""
        self._cards.add(writer)
        try:
            while True:
                (length,) = struct.unpack(">I", await reader.readexactly(4))
                frame = await reader.readexactly(length)
                if self._bad_network.delay_s(frame, from_machine=True) is None:
                    continue
                self._forward(frame, writer)
                with contextlib.suppress(OSError):
                    self._lab.send(frame)
                # A kernel sends its whole log at once: let its receiver read before its buffer is full.
                await asyncio.sleep(0)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._cards.discard(writer)
            writer.close()

    def _forward(self, frame: bytes, source: asyncio.StreamWriter | None) -> None:
        data = struct.pack(">I", len(frame)) + frame
        for card in self._cards:
            if card is not source and not card.is_closing():
                card.write(data)


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    configuration = Configuration.model_validate_json(Path(sys.argv[1]).read_bytes())
    # A socket belongs to the namespace in which it was made: this one stays reachable for the lab.
    listener = socket.create_server(("127.0.0.1", configuration.ssh_port))
    outside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    outside.setblocking(False)
    for path in configuration.sockets:
        path.unlink(missing_ok=True)
    _enter_namespace()
    lab = _make_interface()
    servers = DhcpServers(configuration.dnsmasq)
    try:
        asyncio.run(_serve(configuration, listener, outside, lab, servers))
    finally:
        servers.kill()


def _enter_namespace() -> None:
    """Move this process to a new network namespace, in which it may configure interfaces. Raises OSError."""
    user, group = os.getuid(), os.getgid()
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUSER | _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)}: this host allows no user namespaces")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def _make_interface() -> socket.socket:
    """Create the lab's interface with its address, and return a socket for the frames on its other end."""
    for command in (
        f"ip link add {INTERFACE} type veth peer name {_PORT}",
        f"ip address add {GATEWAY}/24 dev {INTERFACE}",
        f"ip link set {INTERFACE} up",
        f"ip link set {_PORT} up",
        "ip link set lo up",
    ):
        subprocess.run(command.split(), check=True)
    # A network card would compute checksums and segment; this link has no card, so the kernel must do it.
    for option in (_CHECKSUMS, *_SEGMENTS):
        with contextlib.suppress(OSError):
            _set_offload(INTERFACE, option)
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
    port.bind((_PORT, 0))
    port.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    # Frames that this program sends on the port are not seen again.
    with contextlib.suppress(OSError):
        port.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
    port.setblocking(False)
    return port


def _set_offload(interface: str, option: int) -> None:
    value = ctypes.create_string_buffer(struct.pack("II", option, 0))
    request = struct.pack("16sP", interface.encode(), ctypes.addressof(value)).ljust(40, b"\0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCETHTOOL, request)


class _Netconsole(asyncio.DatagramProtocol):
    """Passes datagrams on to the receiver on the host, as a router would."""

    def __init__(self, outside: socket.socket, port: int) -> None:
        self._outside = outside
        self._receiver = ("127.0.0.1", port)

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        with contextlib.suppress(OSError):
            self._outside.sendto(data, self._receiver)


async def _serve(
    configuration: Configuration,
    listener: socket.socket,
    outside: socket.socket,
    lab: socket.socket,
    servers: DhcpServers,
) -> None:
    current = CurrentFaults(configuration.faults) if configuration.faults else None
    switch = Switch(lab, BadNetwork(current))
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    for path in configuration.sockets:
        await asyncio.start_unix_server(switch.plug, path)
    await asyncio.start_server(_pass_to_machine, sock=listener)
    servers.start(current.names if current else frozenset())
    if current:
        current.on_change.append(lambda: servers.start(current.names))
    if (port := configuration.netconsole_port) is not None:
        inside = (GATEWAY, NETCONSOLE_PORT)
        await loop.create_datagram_endpoint(lambda: _Netconsole(outside, port), local_addr=inside)
    tasks = {asyncio.ensure_future(each) for each in (ended.wait(), switch.run_lab_port(), servers.ended())}
    if current:
        tasks.add(asyncio.ensure_future(current.follow()))
    log.info("cards plug into %s; SSH by 127.0.0.1:%d", configuration.sockets[0].parent, configuration.ssh_port)
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    if not ended.is_set():
        log.error("a part of this network has ended")
    for task in tasks:
        task.cancel()


async def _pass_to_machine(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass a connection on to the machine; close it if the machine does not answer."""
    try:
        machine_reader, machine = await asyncio.wait_for(asyncio.open_connection(MACHINE_ADDRESS, 22), 10)
    except OSError:
        writer.close()
        return
    await asyncio.gather(_copy(reader, machine), _copy(machine_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


if __name__ == "__main__":
    main()
