"""Write addresses.env of rehearsal machines: what a maintainer of the real machine would write, with other values."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wqlab_contracts.addresses_file import FILE

from . import bmc, netboot, redfish
from .machines import RehearsalMachine

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Ports:
    """Ports of one machine on the loopback."""

    console: int
    ssh: int
    power: int
    """UDP: of the BMC or of the PDU. TCP: of servod."""
    kcs: int
    serial: int
    netconsole: int = 0
    """UDP: of the receiver of netconsole."""
    power_behind: int = 0
    """Port of the BMC, PDU or servod itself. The lab uses `power`, which `links` forwards to it."""
    console_behind: int = 0
    """TCP port of the console server itself. The lab uses `console`, which `links` forwards to it."""


def values(machine: RehearsalMachine, ports: Ports, lab: str, folder: Path) -> dict[str, str]:
    """Return name -> value. `folder` has the file with the BMC's password."""
    found = {
        "LAB": lab,
        "SCRATCH": machine.disks[0].link,
        "CONSOLE_HOST": HOST,
        "CONSOLE_PORT": str(ports.console),
        "SSH_HOST": HOST,
        "SSH_PORT": str(ports.ssh),
    }
    if machine.power == "ipmi":
        found |= {
            "BMC": HOST,
            "BMC_PORT": str(ports.power),
            "BMC_USER": bmc.USER,
            "BMC_PASSWORD_FILE": str(password_file(folder)),
            "BMC_CIPHER": str(bmc.CIPHER_SUITE),
        }
    elif machine.power == "redfish":
        found |= {
            "BMC": f"https://{HOST}:{ports.power}",
            "BMC_USER": redfish.USER,
            "BMC_PASSWORD_FILE": str(password_file(folder)),
            "BMC_CERTIFICATE": str(redfish.certificate(folder / "bmc")),
        }
    elif machine.power == "servo":
        found |= {"SERVOD_HOST": HOST, "SERVOD_PORT": str(ports.power)}
    else:
        found |= {"PDU": f"{HOST}:{ports.power}"}
    if machine.uart is None:
        found |= {"ADDRESS": netboot.MACHINE_ADDRESS, "NETCONSOLE_HOST": netboot.GATEWAY}
    type_prefix = machine.prefix.rsplit("_", 1)[0]
    return {
        f"{type_prefix}_REHEARSAL": "true",
        **{f"{machine.prefix}_{name}": value for name, value in found.items()},
        **machine.values,
    }


def password_file(folder: Path) -> Path:
    return folder / "bmc-password"


def write(folder: Path, addresses: Mapping[str, str]) -> None:
    lines = [f"{name}={shlex.quote(value) if value else ''}\n" for name, value in addresses.items()]
    (folder / FILE).write_text("".join(lines))
