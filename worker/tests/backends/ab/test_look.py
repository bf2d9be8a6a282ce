"""The description of a machine, the reasons to refuse it, and the warnings to its user."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from wqlab_worker.backends.ab.look import COMMAND, LookError, Watchdog, parse, refusals, warnings

SERVER = """\
Welcome to the machine
user=0
arch=x86_64
release=6.1.0-50-amd64
system=Debian GNU/Linux 12 (bookworm)
init=systemd
memory_kib=16000000
shm_kib=8000000
boot_id=aaaa
kexec=yes
secure_boot=0
lockdown=[none] integrity confidentiality
kexec_disabled=0
watchdog=watchdog0 iTCO-wdt iTCO_wdt
client=192.0.2.1
address=192.0.2.5
card=enp0s2
prefix=24
mac=52:54:00:12:34:56
router=192.0.2.254
physical=yes
driver=e1000e
driver_module=e1000e
"""
IMAGE_KIB = 400_000


def changed(name: str, *values: str) -> str:
    """Return the answer with other values of a name; without values, none."""
    lines = [line for line in SERVER.splitlines() if not line.startswith(f"{name}=")]
    return "\n".join([*lines, *(f"{name}={value}" for value in values)]) + "\n"


def test_a_plain_server_can_be_used_and_keeps_its_address() -> None:
    look = parse(SERVER)
    assert refusals(look, IMAGE_KIB) == []
    assert warnings(look) == []
    assert look.address_argument == "wqlab.ip=192.0.2.5/24,52:54:00:12:34:56,192.0.2.254"
    assert look.first_modules == [
        "e1000e", "lpc_ich", "i2c_i801", "iTCO_wdt", "sp5100_tco", "i6300esb", "efi_pstore",
    ]  # fmt: skip
    assert look.watchdogs == [Watchdog("watchdog0", "iTCO_wdt", "iTCO_wdt")]


def test_usb_controller_is_loaded_before_the_card_that_it_has() -> None:
    look = parse(changed("driver_module", "r8152", "xhci_pci"))
    assert look.first_modules[:2] == ["xhci_pci", "r8152"]


def test_a_machine_without_router_has_its_address_alone() -> None:
    assert parse(changed("router", "")).address_argument == "wqlab.ip=192.0.2.5/24,52:54:00:12:34:56"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (changed("user", "1000"), "not root's"),
        (changed("arch", "aarch64"), "aarch64"),
        (changed("secure_boot", "1"), "secure boot"),
        (changed("lockdown", "none [integrity] confidentiality"), "locked down"),
        (changed("kexec_disabled", "1"), "switched off"),
        (changed("kexec"), "has no kexec"),
        (changed("card", ""), "on none of its cards"),
        (changed("physical"), "bridge, bond or VLAN"),
        (changed("master", "br0"), "on br0"),
        (changed("wireless", "yes"), "wireless"),
        (changed("memory_kib", "1000000"), "976 MiB of memory"),
        (changed("shm_kib", "100000"), "/dev/shm has 97 MiB free"),
        (changed("noexec", "yes"), "are not run"),
    ],
)
def test_refusals_name_reason_and_remedy(answer: str, reason: str) -> None:
    [(found, fix)] = refusals(parse(answer), IMAGE_KIB)
    assert reason in found and fix


def test_secure_boot_names_the_lockdown_that_it_causes_only_once() -> None:
    answer = changed("secure_boot", "1").replace("[none] integrity", "none [integrity]")
    assert len(refusals(parse(answer), IMAGE_KIB)) == 1


@pytest.mark.parametrize(
    ("answer", "warning"),
    [
        (changed("login", "jane on pts/0 2026-11-30 09:12"), "logged in: jane on pts/0"),
        (changed("guest", "qemu-system-x86"), "a virtual machine runs there (qemu-system-x86)"),
        (changed("supply", "Battery Discharging", "Mains 0"), "on its battery"),
        (changed("watchdog"), "no hardware watchdog"),
        (changed("watchdog", "watchdog0 softdog Software Watchdog"), "no hardware watchdog"),
        (changed("virtual", "QEMU"), "virtual machine"),
    ],
)
def test_warnings_name_what_can_go_wrong(answer: str, warning: str) -> None:
    [found] = warnings(parse(answer))
    assert warning in found


def test_laptop_on_mains_power_gives_no_warning() -> None:
    assert warnings(parse(changed("supply", "Battery Charging", "Mains 1"))) == []


@pytest.mark.parametrize("answer", ["", "This account is currently not available.\n", changed("boot_id")])
def test_an_answer_of_another_program_is_refused(answer: str) -> None:
    with pytest.raises(LookError, match="did not tell its"):
        parse(answer)


def test_script_prints_lines_that_can_be_parsed(tmp_path: Path) -> None:
    """Every line has the form that `parse` reads, whatever this host has."""
    done = subprocess.run(
        ["sh", "-s"],
        input=COMMAND,
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"], "SSH_CONNECTION": "127.0.0.1 40000 127.0.0.1 22"},
    )
    look = parse(done.stdout)
    assert (look.one("user"), look.one("arch")) == (str(os.getuid()), os.uname().machine)
    assert (look.one("card"), look.one("prefix")) == ("lo", "8")
    assert "boot_id" in look.values
