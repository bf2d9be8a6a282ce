"""Faults of a rehearsal machine's network: late or wrong DHCP servers, a slow or cut TFTP transfer, a switch port that
waits."""

from __future__ import annotations

import asyncio
import subprocess
import time
from ipaddress import IPv4Address
from pathlib import Path

from .current_faults import CurrentFaults
from .netboot import GATEWAY, INTERFACE, MACHINE_ADDRESS

SECOND_SERVER, OTHER_ADDRESS = "192.0.2.2", "192.0.2.77"
_SECOND_INTERFACE = "lab1"
DHCP_LATE_S, SPANNING_TREE_S = 45.0, 20.0
TFTP_BLOCK_S, TFTP_BLOCKS = 0.03, 3000
FIRST_SERVER_S = 1.0
"""Time by which the right server answers later than a second one."""
_DHCP_SERVER, _DHCP_CLIENT = 67, 68
_TFTP_DATA = b"\0\3"


class BadNetwork:
    """What the switch does to frames while the network has faults."""

    def __init__(self, current: CurrentFaults | None) -> None:
        self._current = current
        self._asked: float | None = None
        """When an operating system last began to ask for an address (monotonic seconds)."""
        self._last_request = 0.0
        self._blocks = 0
        self._next_block = 0.0
        """When a slow TFTP server has sent the blocks before (monotonic seconds)."""

    def delay_s(self, frame: bytes, *, from_machine: bool) -> float | None:
        """Return the time in seconds until the frame is forwarded; None: it is lost."""
        names = self._current.names if self._current else frozenset()
        if not names:
            return 0.0
        now = time.monotonic()
        ports = udp_ports(frame)
        if from_machine and ports == (_DHCP_CLIENT, _DHCP_SERVER):
            self._request(firmware=b"PXEClient" in frame, now=now)
        asking_s = float("inf") if self._asked is None else now - self._asked
        if "spanning-tree" in names and asking_s < SPANNING_TREE_S:
            return None
        if "dhcp-late" in names and asking_s < DHCP_LATE_S and ports in {(67, 68), (68, 67)}:
            return None
        if "dhcp-second" in names and self._asked is not None and ports == (67, 68) and _source(frame) == GATEWAY:
            return FIRST_SERVER_S
        if not from_machine and ports and frame[42:44] == _TFTP_DATA:
            self._blocks += 1
            if "tftp-cut" in names and self._blocks > TFTP_BLOCKS:
                return None
            if "tftp-slow" in names:
                self._next_block = max(now, self._next_block) + TFTP_BLOCK_S
                return self._next_block - now
        return 0.0

    def _request(self, *, firmware: bool, now: float) -> None:
        if firmware:
            self._asked, self._blocks = None, 0
        elif self._asked is None or now - self._last_request > 10:
            # Requests come every 2 s: after a pause another system asks.
            self._asked = now
        self._last_request = now


def udp_ports(frame: bytes) -> tuple[int, int] | None:
    """Return source and destination port of an Ethernet frame with UDP over IPv4 without options, else None."""
    if frame[12:14] != b"\x08\x00" or frame[14:15] != b"\x45" or frame[23:24] != b"\x11":
        return None
    return int.from_bytes(frame[34:36], "big"), int.from_bytes(frame[36:38], "big")


def _source(frame: bytes) -> str:
    return str(IPv4Address(frame[26:30]))


class DhcpServers:
    """dnsmasq, and with the fault `dhcp-second` another one on an interface of its own."""

    def __init__(self, configuration: Path) -> None:
        self._configuration = configuration
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, names: frozenset[str]) -> None:
        """Start the servers that these faults need, in place of those that run."""
        self.kill()
        file = self._configuration
        if "dhcp-address" in names:
            file = self._write("other", file.read_text().replace(MACHINE_ADDRESS, OTHER_ADDRESS))
        self._running.append(_start(file))
        if "dhcp-second" in names:
            _make_second_interface()
            self._running.append(_start(self._write("second", second_server(self._configuration.with_name("leases2")))))

    def _write(self, name: str, text: str) -> Path:
        file = self._configuration.with_name(f"dnsmasq-{name}.conf")
        file.write_text(text)
        return file

    async def ended(self) -> None:
        """Return when a server has ended by itself."""
        while all(process.poll() is None for process in self._running):  # noqa: ASYNC110 - processes send no event
            await asyncio.sleep(1)

    def kill(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()
        self._running = []


def second_server(leases: Path) -> str:
    """Return the configuration of a server that someone else started: it knows nothing of this machine."""
    return f"""\
port=0
interface={_SECOND_INTERFACE}
bind-interfaces
dhcp-authoritative
no-ping
dhcp-range={SECOND_SERVER.rpartition(".")[0]}.200,{SECOND_SERVER.rpartition(".")[0]}.220,1h
dhcp-leasefile={leases}
log-facility=-
"""


def _make_second_interface() -> None:
    """Join an interface with another address to the lab's: both are ports of the same switch."""
    if Path(f"/sys/class/net/{_SECOND_INTERFACE}").exists():
        return
    for command in (
        f"ip link add link {INTERFACE} name {_SECOND_INTERFACE} type macvlan mode bridge",
        f"ip address add {SECOND_SERVER}/24 dev {_SECOND_INTERFACE}",
        f"ip link set {_SECOND_INTERFACE} up",
    ):
        subprocess.run(command.split(), check=True)


def _start(configuration: Path) -> subprocess.Popen[bytes]:
    # --no-daemon: as the only user of this namespace there is no other to change to.
    command = ["dnsmasq", "--no-daemon", f"--conf-file={configuration}", "--pid-file="]
    return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command])
