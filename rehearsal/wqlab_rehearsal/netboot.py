"""Make the TFTP folder of a machine and dnsmasq's configuration: GRUB, the golden kernel and its root filesystem."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wqlab_host import tool

from .machines import Card

GATEWAY, MACHINE_ADDRESS = "192.0.2.1", "192.0.2.11"
"""Addresses of the DHCP server and of the machine's first card on a network of its own (RFC 5737)."""
INTERFACE = "lab0"
UEFI, BIOS = "x86_64-efi", "i386-pc"
_LOADER = {UEFI: "grub/x86_64-efi/core.efi", BIOS: "grub/i386-pc/core.0"}


class NetbootError(Exception):
    """The boot loader cannot be installed; the message has the output of the failed command."""


@dataclass(frozen=True)
class Served:
    """What a machine boots from the network."""

    kernel: Path
    rootfs: Path
    command_line: str


def write_files(root: Path, served: Served, firmware: str) -> None:
    """Fill the TFTP folder `root`. `firmware` is GRUB's name of the platform. Raises NetbootError."""
    shutil.rmtree(root, ignore_errors=True)
    (root / "golden").mkdir(parents=True)
    tool.output(
        ["grub-mknetdir", f"--net-directory={root}", "--subdir=grub", "-d", f"/usr/lib/grub/{firmware}"], NetbootError
    )
    shutil.copyfile(served.kernel, root / "golden" / "kernel")
    # TFTP has one small block on the way at a time: compressed, the image takes a third of the time.
    target = root / "golden" / "rootfs.cpio"
    tool.output(["zstd", "--quiet", "--force", "-19", str(served.rootfs), "-o", str(target)], NetbootError)
    (root / "grub" / "grub.cfg").write_text(menu(served.command_line))


def menu(command_line: str) -> str:
    """Return the text of grub.cfg: one entry, which starts at once."""
    return f"""\
set timeout=0
menuentry golden {{
    linux /golden/kernel {command_line}
    initrd /golden/rootfs.cpio
}}
"""


def dnsmasq_configuration(root: Path, leases: Path, device: str, cards: Sequence[Card], firmware: str) -> str:
    """Return dnsmasq's configuration, as in docs/hardware: a fixed address for the first card, and TFTP."""
    return f"""\
port=0
interface={INTERFACE}
bind-interfaces
dhcp-authoritative
no-ping
dhcp-range=192.0.2.100,192.0.2.150,1h
dhcp-host={cards[0].mac},{device},{MACHINE_ADDRESS}
dhcp-leasefile={leases}
enable-tftp
tftp-root={root}
dhcp-match=set:efi64,option:client-arch,7
dhcp-match=set:efi64,option:client-arch,9
dhcp-boot={_LOADER[firmware] if firmware == BIOS else f"tag:efi64,{_LOADER[firmware]}"}
log-facility=-
"""
