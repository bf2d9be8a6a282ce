"""What a console says about the console itself, the network and the boot."""

from __future__ import annotations

import random

import pytest

from wqlab_worker.backends import diagnose_console

ADDRESS = "192.0.2.11"
KERNEL = b"[    0.000000] Linux version 7.1.0\r\n"


@pytest.mark.parametrize(
    ("end", "says"),
    [
        (b">>Start PXE over IPv4.\r\n  PXE-E18: Server response timeout.\r\n", "no usable answer from a DHCP server"),
        (b"  PXE-E16: No valid offer received.\r\n", "no usable answer from a DHCP server"),
        (b"error: timeout reading `/golden/kernel'.\r\n", "transfer by TFTP broke off"),
        (b"error: you need to load the kernel first.\r\nPress any key to continue...\r\n", "golden files"),
        (b"\x1b[H  Booting `golden'\r\n\r\n", "still loading"),
        (b"Filename 'fit.itb'.\r\nLoading: ##########\t ####", "still loading"),
        (b"http://192.0.2.1/golden/rootfs.cpio...  12%", "still loading"),
        (b"GNU GRUB  version 2.06\r\n\r\ngrub> ", "waits at its prompt"),
        (b"BdsDxe: No bootable option or device was found.\r\n", "nothing to boot"),
        (b"UEFI Interactive Shell v2.2\r\nShell> ", "nothing to boot"),
        (b"\r\nDebian GNU/Linux 12 build7 ttyS1\r\n\r\nbuild7 login: ", "another system asks for a login"),
    ],
)
def test_the_end_of_a_failed_boot_is_explained(end: bytes, says: str) -> None:
    hint = diagnose_console.boot_hint(b"BdsDxe: loading Boot0001\r\n" + end)
    assert hint is not None and says in hint.text and hint.advice


def test_the_last_cause_counts() -> None:
    """The firmware first found no server, then booted the disk."""
    hint = diagnose_console.boot_hint(b"  PXE-E18: Server response timeout.\r\nbuild7 login: ")
    assert hint is not None and "login" in hint.text


def test_an_ordinary_console_has_no_cause() -> None:
    assert diagnose_console.boot_hint(KERNEL + b"[    1.2] e1000e: eth0 NIC Link is Up 1000 Mbps\r\n") is None
    assert diagnose_console.boot_hint(b"") is None


def test_random_bytes_are_garbled_and_a_few_lost_ones_are_not() -> None:
    noise = random.Random(1)
    assert diagnose_console.is_garbled(noise.randbytes(4000))
    text = KERNEL * 100
    assert not diagnose_console.is_garbled(text)
    assert not diagnose_console.is_garbled(bytes(byte for byte in text if noise.random() > 0.3))
    assert not diagnose_console.is_garbled(b"\x1b[2J\x1b[01;01H\x1b[0m" * 100), "firmware draws"
    assert not diagnose_console.is_garbled("└─┘".encode() * 100)


@pytest.mark.parametrize(
    ("lines", "report", "advice"),
    [
        (b"network: eth0: no address: no DHCP server answered\r\n", "no DHCP server answered", "edge port"),
        (b"network: eth0: no address: no link\r\n", "eth0: no address: no link", "cable"),
        (
            b"network: no Ethernet interface found in 30 s: not plugged in, or this kernel lacks its driver\r\n",
            "no Ethernet interface",
            "does not survive kexec",
        ),
        (
            b"network: eth0: 192.0.2.77/24, router 192.0.2.1, from 192.0.2.1\r\n",
            "192.0.2.77/24",
            "The lab connects to 192.0.2.11",
        ),
        (b"network: eth0: 192.0.2.11/24, from 192.0.2.1\r\n", "192.0.2.11/24", "the worker's host reaches"),
    ],
)
def test_the_network_of_a_system_without_ssh_is_reported(lines: bytes, report: str, advice: str) -> None:
    before = KERNEL + b"network: eth0: 192.0.2.99/24, from 192.0.2.1\r\n"
    found = diagnose_console.network_report(before + KERNEL + lines)
    assert report in found and "192.0.2.99" not in found, "the golden system's lines say nothing about the variant"
    assert advice in diagnose_console.network_advice(found, ADDRESS)


def test_corrected_hardware_errors_are_counted() -> None:
    line = b"[   42.000000] mce: [Hardware Error]: Machine check events logged\r\n"
    assert diagnose_console.hardware_errors(KERNEL) == {}
    assert "2 lines on the console" in diagnose_console.hardware_errors(KERNEL + 2 * line)["hardware errors"]
