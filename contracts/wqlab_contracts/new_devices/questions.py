"""The questions about a new machine, by column of an inventory, for the command and the web form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """One question; its answer is the cell of `column`."""

    column: str
    text: str
    default: str = ""
    power: tuple[str, ...] = ()
    """Asked only for these kinds of power; empty: always."""
    optional: bool = False
    serial: bool = False
    """Asked only about a serial port."""


_BMC = ("ipmi", "redfish")
QUESTIONS: tuple[Question, ...] = (
    Question("name", "Name of the machine"),
    Question("device_type", "Device type (machines of one type have the same CPUs and boot settings)"),
    Question("lab", "Lab", "local"),
    Question("arch", "Architecture: x86_64 or arm64", "x86_64"),
    Question("power", "Power: ipmi or redfish (a BMC), pdu (an outlet) or debug_cable (a Chromebook)", "ipmi"),
    Question("bmc", "BMC's address", power=_BMC),
    Question("bmc_port", "BMC's UDP port", "623", power=("ipmi",)),
    Question("bmc_port", "BMC's HTTPS port", "443", power=("redfish",)),
    Question("bmc_user", "BMC's user", "lab", power=_BMC),
    Question(
        "bmc_password_file", "File on this host with the BMC's password", "/etc/wqlab/ipmi-password", power=("ipmi",)
    ),
    Question(
        "bmc_password_file",
        "File on this host with the BMC's password",
        "/etc/wqlab/redfish-password",
        power=("redfish",),
    ),
    Question("bmc_cipher", "Cipher suite (3 for old BMCs)", "17", power=("ipmi",)),
    Question("bmc_certificate", "File on this host with the BMC's certificate", power=("redfish",), optional=True),
    Question("bmc_system", "System, if the BMC has several", power=("redfish",), optional=True),
    Question("pdu_model", "Model of the PDU, as labgrid names it", "apc", power=("pdu",)),
    Question("pdu", "PDU's address", power=("pdu",)),
    Question("pdu_port", "PDU's port, if it is not the usual one", power=("pdu",), optional=True),
    Question("pdu_outlet", "Outlet", power=("pdu",)),
    Question("servo_port", "Port of the cable's servod on this host", "9999", power=("debug_cable",)),
    Question(
        "netconsole",
        "Without a serial port: its netconsole=, as +6665@192.0.2.11/eth0,6666@192.0.2.1/",
        optional=True,
    ),
    Question("console_host", "Address of the console server, or of the host of wqlab-netconsole"),
    Question("console_port", "TCP port of this machine's console"),
    Question("console_protocol", "Its protocol: raw, or rfc2217 (ser2net: telnet(rfc2217))", "raw", serial=True),
    Question("console_device", "Console in the kernel", "ttyS0", serial=True),
    Question("console_speed", "Console's speed", "115200", serial=True),
    Question("ssh_host", "Address of the golden system"),
    Question("ssh_port", "SSH port", "22"),
    Question(
        "choose_golden",
        "If a system of its own starts by default: its command that chooses the golden one, as grub-reboot wqlab",
        optional=True,
    ),
    Question("golden_timeout_s", "Longest time from power on to the golden system, in seconds", "300"),
    Question("scratch", "Disks that plans may overwrite, by their names in /dev/disk/by-id", optional=True),
)


def asked(question: Question, answers: Mapping[str, str]) -> bool:
    """Return True if the question applies to the answers so far."""
    if question.serial and answers.get("netconsole"):
        return False
    return not question.power or answers.get("power", "") in question.power


def applying(answers: Mapping[str, str]) -> dict[str, str]:
    """Return the answers to questions that apply, and those about which nothing is asked."""
    known = {question.column for question in QUESTIONS}
    shown = {question.column for question in QUESTIONS if asked(question, answers)}
    return {column: cell for column, cell in answers.items() if column in shown or column not in known}
