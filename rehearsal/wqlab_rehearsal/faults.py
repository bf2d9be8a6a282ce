"""Faults of real machines that a rehearsal machine can have, and the file that switches them.

    wqlab-rehearsal fault FOLDER NAME...

FOLDER is the machine's folder in the rehearsal's folder; without names the machine has no fault. The programs of the
machine read the file as they work: `links` (BMC, PDU and console), `chassis` and `pdu` (what a BMC or a PDU does not
switch), `network` (switch, DHCP, TFTP). The other faults change the command that starts QEMU at the next power on
(`machine_faults`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

_FILE = "faults"

LINK_FAULTS: Mapping[str, str] = {
    "bmc-late": "the BMC or PDU answers after 20 s",
    "bmc-silent": "the BMC or PDU does not answer",
    "bmc-reboots": "the BMC does not answer for 60 s and loses its sessions, from now on",
    "bmc-refuses-off": "the BMC refuses to switch off what is off",
    "bmc-ignores": "the BMC acknowledges on and off, and does nothing",
    "pdu-ignores": "the PDU acknowledges on and off, and its relay does not move",
    "console-mute": "nothing comes from the console",
    "console-speed": "the console server reads at half the machine's speed",
    "console-garbled": "one in three bytes of the console has wrong bits",
    "console-drops": "serial over LAN loses bytes when the machine prints fast",
    "console-closed": "the console server refuses connections and ends those it has",
}
NETWORK_FAULTS: Mapping[str, str] = {
    "dhcp-late": "the DHCP server answers an operating system after 45 s; firmware at once",
    "dhcp-second": "a second DHCP server offers other addresses, and an operating system hears it first",
    "dhcp-address": "the DHCP server gives the machine another address",
    "tftp-slow": "each TFTP block takes 30 ms",
    "tftp-cut": "TFTP ends after 3000 blocks",
    "spanning-tree": "the switch forwards nothing for 20 s after an operating system asks for its address",
}
EVENT_FAULTS: Mapping[str, str] = {
    "kexec-hangs": "the golden system stops while it shuts its devices down for kexec",
    "link-lost-at-kexec": "the network card has no link once kexec has started the new kernel",
    "memory-error": "a processor reports a corrected memory error once the variant is up",
    "memory-error-fatal": "a processor reports an uncorrected memory error once the variant is up",
}
MACHINE_FAULTS: Mapping[str, str] = {
    "boots-disk": "the firmware boots a disk instead of the network",
    "disk-missing": "the scratch disk is missing",
    "disk-renamed": "the scratch disk has another serial number",
    "disk-read-only": "the scratch disk cannot be written",
    "disk-full": "each write to the scratch disk fails: no space left",
    "clock-1970": "the clock says 1970 at power on",
    "smt-off": "one thread per core: SMT is off in the firmware",
    "hot-at-first": "a temperature sensor shows 85 °C for the first 90 s of each kernel, then 45 °C",
    "hot": "a temperature sensor shows 85 °C and never less",
}
FAULTS: Mapping[str, str] = {**LINK_FAULTS, **NETWORK_FAULTS, **EVENT_FAULTS, **MACHINE_FAULTS}


class FaultError(Exception):
    """A fault cannot be set; the message says what to do."""


def file_of(folder: Path) -> Path:
    """Return the file with the faults of the machine whose folder this is."""
    return folder / _FILE


def read(file: Path) -> frozenset[str]:
    """Return the names of the faults that the machine has now."""
    try:
        return frozenset(file.read_text().split())
    except FileNotFoundError:
        return frozenset()


def write(folder: Path, names: Sequence[str]) -> None:
    """Give the machine these faults and no others. Raises FaultError."""
    if unknown := sorted(set(names) - set(FAULTS)):
        raise FaultError(f"no fault {', '.join(unknown)}; there are: {', '.join(FAULTS)}")
    new = folder / f"{_FILE}.new"
    new.write_text("".join(f"{name}\n" for name in names))
    new.replace(file_of(folder))
