"""Answers become the description of a machine; a mistake names its question and its fix."""

from __future__ import annotations

import pytest

from wqlab_client.new_devices.questions import QUESTIONS, AnswerProblem, is_asked, parse
from wqlab_contracts.new_devices.description import NewDevice

MACHINE = {
    "name": "server-1",
    "device_type": "xeon-a",
    "console_host": "console-1",
    "console_port": "7001",
    "ssh_host": "server-1",
}
IPMI = MACHINE | {"power": "ipmi", "bmc": "bmc-1", "bmc_user": "lab", "bmc_password_file": "/etc/wqlab/ipmi"}
REDFISH = IPMI | {"power": "redfish", "netconsole": "+6665@192.0.2.11/eth0,6666@192.0.2.1/"}
CABLE = MACHINE | {"power": "debug_cable", "servo_port": "9997"}
PDU = MACHINE | {"power": "pdu", "pdu_model": "apc", "pdu": "pdu-1", "pdu_outlet": "3"}


def described(answers: dict[str, str]) -> NewDevice:
    found = parse(answers)
    assert isinstance(found, NewDevice), found
    return found


def test_answers_describe_a_machine() -> None:
    disks = "/dev/disk/by-id/nvme-A_1  nvme-B_2"
    device = described(IPMI | {"console_speed": "9600", "golden_timeout_s": "900", "scratch": disks, "bmc_port": ""})
    assert device.power.model_dump() == {
        "kind": "ipmi", "host": "bmc-1", "port": 623, "user": "lab", "password_file": "/etc/wqlab/ipmi", "cipher": 17
    }  # fmt: skip
    assert (device.boot.console_speed, device.boot.golden_timeout_s, device.ssh.port) == (9600, 900, 22)
    assert device.scratch == ["nvme-A_1", "nvme-B_2"]
    assert device.topology is None


def test_answers_to_questions_that_do_not_apply_are_left_out() -> None:
    """They are kept from another kind of power, or from before the machine had netconsole."""
    device = described(CABLE | REDFISH | {"power": "redfish", "console_protocol": "rfc2217", "pdu_outlet": "no"})
    assert device.power.kind == "redfish"
    assert device.console.protocol == "raw"
    asked = {question.name for question in QUESTIONS if is_asked(question, REDFISH)}
    assert {"bmc", "bmc_certificate"} <= asked
    assert not asked & {"bmc_cipher", "pdu", "servo_port", "console_protocol"}


@pytest.mark.parametrize(
    ("answers", "question", "said"),
    [
        (IPMI | {"console_port": "70010"}, "console_port", "'70010': input should be less than"),
        (IPMI | {"bmc": "b mc"}, "bmc", "'b mc': write a host name or an IPv4 address"),
        (IPMI | {"bmc": "$(reboot)"}, "bmc", "'$(reboot)': write a host name or an IPv4 address"),
        (IPMI | {"bmc": "x" * 100_000}, "bmc", f"'{'x' * 80}...': "),
        (IPMI | {"bmc": ""}, "bmc", "is empty: write a value"),
        (IPMI | {"bmc_password_file": "/etc/../x"}, "bmc_password_file", "'/etc/../x': write the absolute"),
        (IPMI | {"bmc_user": "a;b"}, "bmc_user", "'a;b': use letters, digits and _.- only, at most 32"),
        (IPMI | {"power": ""}, "power", "is empty: write ipmi, redfish, pdu or debug_cable"),
        (IPMI | {"power": "steam"}, "power", "'steam' is not known: write ipmi, redfish, pdu or debug_cable"),
        (IPMI | {"scratch": "../sda"}, "scratch", "'../sda': write names in /dev/disk/by-id"),
        (IPMI | {"console_speed": "1"}, "console_speed", "'1': input should be 9600, 19200"),
        (IPMI | {"console_protocol": "ssh"}, "console_protocol", "'ssh': input should be 'raw' or 'rfc2217'"),
        (IPMI | {"name": "0042"}, "name", "'0042': in YAML, 0042 is a number or another value"),
        (IPMI | {"device_type": "null"}, "device_type", "'null': in YAML, null is"),
        (REDFISH | {"bmc_certificate": "/etc/../x"}, "bmc_certificate", "'/etc/../x': write the absolute path"),
        (REDFISH | {"bmc_system": "$(id)"}, "bmc_system", "'$(id)': write the name of a system"),
        (REDFISH | {"netconsole": "+6665@x"}, "netconsole", "'+6665@x': write it as +6665@192.0.2.11/eth0,"),
        (REDFISH | {"choose_golden": "reboot 'x'"}, "choose_golden", "\"reboot 'x'\": write a command without"),
        (CABLE | {"servo_port": "0"}, "servo_port", "'0': input should be greater than"),
        (PDU | {"pdu_model": "apx"}, "pdu_model", "'apx': input should be 'apc', "),
        (PDU | {"pdu_outlet": "9"}, "power", "'pdu': labgrid's driver apc switches outlets 1 to 8"),
        (PDU | {"pdu_model": "eaton", "pdu_port": "80"}, "power", "'pdu': labgrid's driver eaton takes no port"),
    ],
)  # fmt: skip
def test_a_mistake_names_its_question_and_its_fix(answers: dict[str, str], question: str, said: str) -> None:
    found = parse(answers)
    assert isinstance(found, list)
    ((named, message),) = [(each.question, each.message) for each in found]
    assert named == question
    assert message.startswith(said)


def test_every_mistake_is_reported() -> None:
    found = parse(IPMI | {"bmc": "", "console_port": "x"})
    assert isinstance(found, list)
    assert AnswerProblem("bmc", "is empty: write a value") in found
    assert [each.question for each in found] == ["bmc", "console_port"]
