"""Configure `ipmi_sim` of OpenIPMI as the BMC of a machine: IPMI 2.0 over LAN, power, serial over LAN.

`chassis` starts it, and QEMU at power on. QEMU's KCS interface and serial port are connected to it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from . import chassis, faults

USER, PASSWORD = "lab", "rehearsal"
CIPHER_SUITE = 3
"""HMAC-SHA1, AES-128. ipmi_sim lacks suite 17, ipmitool's default, which costs ipmitool 10 s."""
_LEVELS = ("callback", "user", "operator", "admin")
_METHODS = "none md2 md5 straight"

CONTROLLER = """\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
"""
"""ipmi_sim's commands for one management controller at address 0x20 with an event log."""


@dataclass(frozen=True)
class BmcPorts:
    """Ports on the loopback."""

    ipmi: int
    """UDP, RMCP+."""
    kcs: int
    """TCP, where QEMU's system interface connects."""
    serial: int
    """TCP, where QEMU offers its serial port."""


def write(folder: Path, name: str, ports: BmcPorts, start: Path) -> list[str]:
    """Write the configuration of the BMC `name` to `folder` and return its command. `start` is run at power on.

    The machine's folder, with its faults, is the one above `folder`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "state").mkdir(exist_ok=True)
    (folder / "controller.emu").write_text(CONTROLLER)
    (folder / chassis.CONFIGURATION).write_text(lan_configuration(name, ports, chassis.write_program(folder)))
    module = [sys.executable, "-m", chassis.__name__]
    return [*module, str(folder), str(start), str(faults.file_of(folder.parent))]


def lan_configuration(name: str, ports: BmcPorts, control: Path) -> str:
    """Return the text of ipmi_sim's configuration. `control` is the program that switches the machine."""
    methods = "\n".join(f"    allowed_auths_{level} {_METHODS}" for level in _LEVELS)
    return f"""\
name "{name}"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {ports.ipmi}
    priv_limit admin
{methods}
    guid a123456789abcdefa123456789abcdef
  endlan
  serial 15 127.0.0.1 {ports.kcs} codec VM
  chassis_control "{control}"
  sol "tcp:127.0.0.1:{ports.serial}" 115200 history=4000 historyfru=10
  user 2 true "{USER}" "{PASSWORD}" admin 10 {_METHODS}
"""


def qemu_arguments(ports: BmcPorts, uart: int) -> list[str]:
    """Return the options that connect QEMU to the BMC: its system interface, and the serial port number `uart`."""
    return [
        "-chardev", f"socket,id=ipmi,host=127.0.0.1,port={ports.kcs},reconnect=2",
        "-device", "ipmi-bmc-extern,id=bmc,chardev=ipmi", "-device", "isa-ipmi-kcs,bmc=bmc",
        "-chardev", f"socket,id=sol,host=127.0.0.1,port={ports.serial},server=on,wait=off",
        *(["-serial", "null"] * uart), "-serial", "chardev:sol",
    ]  # fmt: skip
