"""Say from a boot's console what is wrong with the console, the network or the boot of a device. Pure functions.

The texts are those of UEFI firmware (EDK II), GRUB, iPXE, the golden system and Linux.
"""

from __future__ import annotations

from dataclasses import dataclass

from wqlab_contracts.consoles.console_lines import read_line
from wqlab_contracts.consoles.hardware_evidence import hardware_error_lines
from wqlab_contracts.linear_patterns import LinearPattern

from ..measure.device_text import printable

EXCERPT_LINES = 30
GARBLED_SHARE = 0.15
"""A console is garbled if more than this share of its bytes is no text. Firmware draws with a few such bytes."""
_SHORTEST_SAMPLE = 200
"""Bytes below which nothing is said about garbled text."""
SPEED_ADVICE = (
    "Check the speed of the console: `console_speed` of the device type, the exporter's `speed`, the console server's "
    "port and the firmware's serial redirection must be equal. Then the cable: ground, level (RS-232 or 3.3 V), length."
)
MUTE_ADVICE = (
    "Open it with `labgrid-client -p PLACE console` and switch the device on. Check that cable and console server port "
    "belong to this device, that `console_device` names the port that is wired, and that no one else holds the console "
    "(a BMC has one session of serial over LAN: `ipmitool sol deactivate` ends another)."
)
_NETWORK_LINE = LinearPattern(r"network: [^\r\n]{1,200}")
_DRAWN_BLANKS = LinearPattern(r" {8,}")
"""A boot menu clears the screen with blanks."""
_ANSI = LinearPattern(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong, as the end of a sentence, and what to do."""

    text: str
    advice: str


_NO_NETWORK_BOOT = (
    "Check the network: cable and switch port (an edge port, portfast: spanning tree holds a port for 30 s), one DHCP "
    "server that names the boot file, TFTP server with the golden files, and the firmware's boot order."
)
_BOOT_HINTS: tuple[tuple[LinearPattern, Diagnosis], ...] = (
    (
        LinearPattern(r"PXE-E(?:16|51|53|18|55)|No offer received|Server response timeout|No DHCP offers"),
        Diagnosis("the firmware got no usable answer from a DHCP server", _NO_NETWORK_BOOT),
    ),
    (
        LinearPattern(r"PXE-E61|Media test failure|Link (?:status )?(?:is )?down|No media"),
        Diagnosis("the firmware's network card has no link", _NO_NETWORK_BOOT),
    ),
    (
        LinearPattern(r"PXE-E(?:23|32|35|36|38|3B|99)|PXE-T0[0-4]|TFTP (?:open timeout|error)|error: timeout reading"),
        Diagnosis("the transfer by TFTP broke off or found no file", _NO_NETWORK_BOOT),
    ),
    (
        LinearPattern(r"error: (?:couldn't (?:load|send network packet)|you need to load the kernel|file `[^']*' not)"),
        Diagnosis("the boot loader could not read the golden files", _NO_NETWORK_BOOT),
    ),
    (
        LinearPattern(r"Booting `[^'\n]{0,80}'$|Loading: [#T \t]{0,80}$|[^\s%]{1,200}\.\.\. +\d{1,3}%$"),
        Diagnosis(
            "the boot loader was still loading the golden files",
            "TFTP sends one small block at a time, so a slow or lossy network takes minutes. Check the speed and "
            "duplex of the switch port, and the load of the TFTP server; or let iPXE load by HTTP, or raise "
            "`golden_timeout_s`.",
        ),
    ),
    (
        LinearPattern(r"grub(?: rescue)?>$"),
        Diagnosis("the boot loader waits at its prompt", _NO_NETWORK_BOOT),
    ),
    (
        LinearPattern(r"No bootable (?:device|option)|Boot failed: not a bootable|Shell>$|UEFI Interactive Shell"),
        Diagnosis("the firmware found nothing to boot", _NO_NETWORK_BOOT),
    ),
    (
        LinearPattern(r"Press F1"),
        Diagnosis("the firmware waits for a key", "Switch off `wait for F1 if error` in the firmware."),
    ),
    (
        LinearPattern(r"VFS: Unable to mount root|No working init found|Attempted to kill init"),
        Diagnosis("the golden kernel found no root filesystem", "Check `initrd` and the golden system's files."),
    ),
    (
        LinearPattern(r"(?m)^[\w.-]{1,64} login: *$"),
        Diagnosis(
            "another system asks for a login: the device booted from a disk, or from another server",
            "Put network boot first in the firmware's boot order, and take the disk out of it. Only one DHCP server "
            "may name a boot file.",
        ),
    ),
)


def text_of(data: bytes) -> str:
    """Return console bytes as text without terminal sequences."""
    return printable(_ANSI.sub("", data.decode("utf-8", "replace").replace("\r", "")))


def last_lines(data: bytes) -> str:
    """Return the last lines of a console that are not empty."""
    lines = [_DRAWN_BLANKS.sub("  ", line).rstrip() for line in text_of(data).split("\n")]
    return "\n".join([line for line in lines if line][-EXCERPT_LINES:])


def is_garbled(data: bytes) -> bool:
    """Return True if so many bytes are no text that speed, cable or level of a serial line must be wrong."""
    if len(data) < _SHORTEST_SAMPLE:
        return False
    text = data.decode("utf-8", "replace")
    bad = sum(character == "\ufffd" or (character < " " and character not in "\r\n\t\b\x1b") for character in text)
    return bad > GARBLED_SHARE * len(text)


def boot_hint(data: bytes) -> Diagnosis | None:
    """Return what stopped a boot, from the last lines that firmware, boot loader or kernel printed; None if unknown."""
    if is_garbled(data):
        return Diagnosis("what came is not text", SPEED_ADVICE)
    end = last_lines(data)
    found = [(matches[-1], hint) for pattern, hint in _BOOT_HINTS if (matches := _ends(pattern, end))]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _ends(pattern: LinearPattern, text: str) -> list[int]:
    """Return the end of each match."""
    return [match.end() for match in pattern.finditer(text)]


def network_report(data: bytes) -> str:
    """Return what the device's last system printed about its network; empty if it printed nothing."""
    after = data[max(0, data.rfind(b"Linux version")) :]
    return "; ".join(dict.fromkeys(match[0].strip() for match in _NETWORK_LINE.finditer(text_of(after))))


def hardware_errors(data: bytes) -> dict[str, str]:
    """Return the fact that the kernel printed hardware errors of this boot; empty if it printed none.

    Firmware keeps errors of the boot before, which the kernel prints too (BERT): they are not counted.
    """
    lines = hardware_error_lines(map(read_line, text_of(data).split("\n")))
    if not lines:
        return {}
    return {"hardware errors": f"{len(lines)} lines on the console, the first: {lines[0].strip()[:200]}"}


def network_advice(report: str, address: str) -> str:
    """Return advice for a device that is up and does not answer by SSH at `address`."""
    if "no Ethernet interface" in report:
        return (
            "The card is not there, or the kernel lacks its driver or firmware. If the golden system has it, the card "
            "does not survive kexec: set it down before, unload its driver, or give the device another card."
        )
    if "no link" in report:
        return (
            "If the lab uses the interface that has no link: check its cable and switch port, and that the card comes "
            "up again after kexec."
        )
    if "no DHCP server answered" in report and "from " not in report:
        return (
            "The system asks for 30 s. Make the switch port an edge port (portfast), and check that the DHCP server "
            "answers at once and knows this card's MAC address."
        )
    if "from " in report and address not in report.replace("/", " ").split():
        return (
            f"The lab connects to {address} (the exporter's NetworkService). If that is not an address of this line, "
            "reserve it for the card's MAC address, and look for a second DHCP server: the line names the one that "
            "answered."
        )
    return "Check that the worker's host reaches this address, and that the device has the lab's key (`wqlab.ssh=`)."
