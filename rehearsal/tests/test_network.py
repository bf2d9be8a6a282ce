"""The network of a rehearsal machine, with a program in place of QEMU that plugs a card in and asks by DHCP."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from wqlab_rehearsal import netboot, network
from wqlab_rehearsal.machines import Card

from .conftest import free_port

CARD = Card("e1000e", "52:54:00:00:00:01")
MAC = bytes.fromhex(CARD.mac.replace(":", ""))
BROADCAST = b"\xff" * 6
DISCOVER = 1
UEFI_X64 = 7


class PluggedCard:
    """A test's network card: it connects to the switch's Unix socket, as QEMU's `-netdev stream` does."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        while self._socket.connect_ex(str(path)):
            time.sleep(0.05)  # the program tells no one when it listens

    def send(self, frame: bytes) -> None:
        self._socket.settimeout(None)
        self._socket.sendall(struct.pack(">I", len(frame)) + frame)

    def receive(self) -> bytes:
        """Return the next frame. Raises TimeoutError after a second without one."""
        self._socket.settimeout(1)
        (length,) = struct.unpack(">I", self._exactly(4))
        return self._exactly(length)

    def _exactly(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            data += self._socket.recv(length - len(data))
        return data

    def close(self) -> None:
        self._socket.close()


def discover() -> bytes:
    """Return the Ethernet frame of a DHCP request of UEFI firmware, which asks for an address and a boot file."""
    options = b"\x63\x82\x53\x63" + bytes([53, 1, DISCOVER, 93, 2, 0, UEFI_X64, 55, 3, 1, 66, 67, 255])
    bootp = struct.pack(">BBBBIHH16x16s64x128x", 1, 1, 6, 0, 0x1234, 0, 0x8000, MAC) + options
    return broadcast(bytes(4), 68, b"\xff" * 4, 67, bootp)


def broadcast(source: bytes, source_port: int, target: bytes, target_port: int, data: bytes) -> bytes:
    """Return an Ethernet frame with a UDP datagram, to all stations."""
    udp = struct.pack(">HHHH", source_port, target_port, 8 + len(data), 0) + data
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, source, target)
    header = header[:10] + struct.pack(">H", checksum(header)) + header[12:]
    return BROADCAST + MAC + b"\x08\x00" + header + udp


def ask(card: PluggedCard) -> bytes:
    """Ask until a DHCP server answers, as firmware does; return the IPv4 packet with its offer."""
    while True:
        card.send(discover())
        with suppress(TimeoutError):
            while True:
                frame = card.receive()
                if frame[12:14] == b"\x08\x00" and frame[34:38] == struct.pack(">HH", 67, 68):
                    return frame[14:]


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def udp_checksum(packet: bytes) -> int:
    """Return the checksum over pseudo header and UDP of an IPv4 packet: 0 if it is right."""
    udp = packet[20:]
    data = packet[12:20] + struct.pack(">HH", 17, len(udp)) + udp
    return checksum(data + b"\0" * (len(data) % 2))


@pytest.mark.integration
def test_the_log_of_a_boot_arrives_whole(
    run: Callable[[Sequence[str]], subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """A kernel with netconsole sends its whole log at once, to the lab's address in a frame to all stations."""
    dnsmasq = tmp_path / "dnsmasq.conf"
    dnsmasq.write_text(netboot.dnsmasq_configuration(tmp_path, tmp_path / "leases", "board-1", [CARD], netboot.UEFI))
    card = tmp_path / "card0"
    source, target = (socket.inet_aton(each) for each in (netboot.MACHINE_ADDRESS, netboot.GATEWAY))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        receiver.settimeout(120)
        configuration = network.Configuration(
            sockets=[card], dnsmasq=dnsmasq, ssh_port=free_port(), netconsole_port=receiver.getsockname()[1]
        )
        (tmp_path / "network.json").write_text(configuration.model_dump_json())
        run([sys.executable, "-m", "wqlab_rehearsal.network", str(tmp_path / "network.json")])
        plugged = PluggedCard(card)
        received: list[bytes] = []
        reader = Thread(target=lambda: received.extend(receiver.recv(2048) for _ in range(1000)), daemon=True)
        reader.start()
        for number in range(1000):
            plugged.send(broadcast(source, 6665, target, 6666, b"6,%d,0,-;a message of the usual length\n" % number))
        reader.join()
        plugged.close()
    assert [data.split(b",")[1] for data in received] == [b"%d" % number for number in range(1000)]


@pytest.mark.integration
def test_a_card_gets_its_fixed_address_and_the_boot_file(
    run: Callable[[Sequence[str]], subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    dnsmasq = tmp_path / "dnsmasq.conf"
    dnsmasq.write_text(netboot.dnsmasq_configuration(tmp_path, tmp_path / "leases", "board-1", [CARD], netboot.UEFI))
    card, ssh_port = tmp_path / "card0", free_port()
    configuration = network.Configuration(sockets=[card], dnsmasq=dnsmasq, ssh_port=ssh_port)
    (tmp_path / "network.json").write_text(configuration.model_dump_json())
    run([sys.executable, "-m", "wqlab_rehearsal.network", str(tmp_path / "network.json")])
    plugged = PluggedCard(card)
    packet = ask(plugged)
    bootp = packet[28:]
    assert bootp[16:20] == socket.inet_aton(netboot.MACHINE_ADDRESS)
    assert b"grub/x86_64-efi/core.efi" in bootp
    assert udp_checksum(packet) == 0, "no card completes the checksum later"
    with socket.create_connection(("127.0.0.1", ssh_port)) as lab:
        assert lab.recv(1) == b"", "no machine answers at its SSH port"
    plugged.close()
