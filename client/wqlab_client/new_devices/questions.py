"""Questions about a new machine, and the description that their answers make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import ValidationError

from wqlab_contracts.new_devices.description import NewDevice, PowerKind


@dataclass(frozen=True)
class Question:
    """One question; its answer is kept under `name`."""

    name: str
    path: tuple[str, ...]
    """Where the answer is in the description."""
    text: str
    default: str = ""
    power: tuple[str, ...] = ()
    """Asked only for these kinds of power; empty: always."""
    optional: bool = False
    serial: bool = False
    """Asked only about a serial port."""


@dataclass(frozen=True)
class AnswerProblem:
    """One mistake in the answers."""

    question: str
    """Name of the question."""
    message: str


KINDS: tuple[str, ...] = get_args(PowerKind)
_BMC, _IPMI, _REDFISH, _PDU, _CABLE = ("ipmi", "redfish"), ("ipmi",), ("redfish",), ("pdu",), ("debug_cable",)
_PASSWORD_FILE = "File on this host with the BMC's password"  # noqa: S105
_SHOWN = 80
"""Characters of a wrong answer in a message."""
QUESTIONS: tuple[Question, ...] = (
    Question("name", ("name",), "Name of the machine"),
    Question(
        "device_type", ("device_type",), "Device type (machines of one type have the same CPUs and boot settings)"
    ),
    Question("lab", ("lab",), "Lab", "local"),
    Question("arch", ("arch",), "Architecture: x86_64 or arm64", "x86_64"),
    Question(
        "power",
        ("power", "kind"),
        "Power: ipmi or redfish (a BMC), pdu (an outlet) or debug_cable (a Chromebook)",
        "ipmi",
    ),
    Question("bmc", ("power", "host"), "BMC's address", power=_BMC),
    Question("bmc_port", ("power", "port"), "BMC's UDP port", "623", power=_IPMI),
    Question("bmc_port", ("power", "port"), "BMC's HTTPS port", "443", power=_REDFISH),
    Question("bmc_user", ("power", "user"), "BMC's user", "lab", power=_BMC),
    Question("bmc_password_file", ("power", "password_file"), _PASSWORD_FILE, "/etc/wqlab/ipmi-password", power=_IPMI),
    Question(
        "bmc_password_file", ("power", "password_file"), _PASSWORD_FILE, "/etc/wqlab/redfish-password", power=_REDFISH
    ),
    Question("bmc_cipher", ("power", "cipher"), "Cipher suite (3 for old BMCs)", "17", power=_IPMI),
    Question(
        "bmc_certificate",
        ("power", "certificate"),
        "File on this host with the BMC's certificate",
        power=_REDFISH,
        optional=True,
    ),
    Question("bmc_system", ("power", "system"), "System, if the BMC has several", power=_REDFISH, optional=True),
    Question("pdu_model", ("power", "model"), "Model of the PDU, as labgrid names it", "apc", power=_PDU),
    Question("pdu", ("power", "host"), "PDU's address", power=_PDU),
    Question("pdu_port", ("power", "port"), "PDU's port, if it is not the usual one", power=_PDU, optional=True),
    Question("pdu_outlet", ("power", "outlet"), "Outlet", power=_PDU),
    Question("servo_port", ("power", "port"), "Port of the cable's servod on this host", "9999", power=_CABLE),
    Question(
        "netconsole",
        ("netconsole",),
        "Without a serial port: its netconsole=, as +6665@192.0.2.11/eth0,6666@192.0.2.1/",
        optional=True,
    ),
    Question("console_host", ("console", "host"), "Address of the console server, or of the host of wqlab-netconsole"),
    Question("console_port", ("console", "port"), "TCP port of this machine's console"),
    Question(
        "console_protocol",
        ("console", "protocol"),
        "Its protocol: raw, or rfc2217 (ser2net: telnet(rfc2217))",
        "raw",
        serial=True,
    ),
    Question("console_device", ("boot", "console_device"), "Console in the kernel", "ttyS0", serial=True),
    Question("console_speed", ("boot", "console_speed"), "Console's speed", "115200", serial=True),
    Question("ssh_host", ("ssh", "host"), "Address of the golden system"),
    Question("ssh_port", ("ssh", "port"), "SSH port", "22"),
    Question(
        "choose_golden",
        ("choose_golden",),
        "If a system of its own starts by default: its command that chooses the golden one, as grub-reboot wqlab",
        optional=True,
    ),
    Question(
        "golden_timeout_s",
        ("boot", "golden_timeout_s"),
        "Longest time from power on to the golden system, in seconds",
        "300",
    ),
    Question(
        "scratch",
        ("scratch",),
        "Disks that plans may overwrite, by their names in /dev/disk/by-id",
        optional=True,
    ),
)


def is_asked(question: Question, answers: Mapping[str, str]) -> bool:
    """Return True if the question applies to the answers so far."""
    if question.serial and answers.get("netconsole"):
        return False
    return not question.power or answers.get("power", "") in question.power


def parse(answers: Mapping[str, str]) -> NewDevice | list[AnswerProblem]:
    """Return the machine that the answers describe, or every mistake.

    `answers` has texts by name of the question. An empty text counts as missing; answers to questions that do not apply
    are left out.
    """
    kind = answers.get("power", "")
    if kind not in KINDS:
        said = f"{kind!r} is not known" if kind else "is empty"
        return [AnswerProblem("power", f"{said}: write {', '.join(KINDS[:-1])} or {KINDS[-1]}")]
    given: dict[str, Any] = {}
    for question in QUESTIONS:
        text = answers.get(question.name, "")
        if text and is_asked(question, answers):
            target = given
            for step in question.path[:-1]:
                target = target.setdefault(step, {})
            target[question.path[-1]] = _value(question.name, text)
    try:
        return NewDevice.model_validate(given)
    except ValidationError as error:
        return [_explain(violation, answers) for violation in error.errors()]


def _value(name: str, text: str) -> Any:
    if name == "scratch":
        return [word.removeprefix("/dev/disk/by-id/") for word in text.split()]
    if name == "console_speed" and text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    return text


def _explain(violation: Any, answers: Mapping[str, str]) -> AnswerProblem:
    path = tuple(step for step in violation["loc"] if isinstance(step, str) and step not in KINDS)
    name = _question_at(path, answers["power"])
    if violation["type"] == "missing":
        return AnswerProblem(name, "is empty: write a value")
    message = violation["msg"].removeprefix("Value error, ")
    said = f"{_shorten(answers[name])!r}: " if answers.get(name) else ""
    return AnswerProblem(name, f"{said}{message[:1].lower()}{message[1:]}")


def _question_at(path: tuple[str, ...], kind: str) -> str:
    """Return the name of the question about a field of the description; `kind` is that of the power."""
    return next(
        question.name
        for question in QUESTIONS
        if question.path[: len(path)] == path and (not question.power or kind in question.power)
    )


def _shorten(answer: str) -> str:
    return answer if len(answer) <= _SHOWN else f"{answer[:_SHOWN]}..."
