"""Turn the description of a machine into text: its unit of a device type, its exporter file, its addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from ..yamlfile import Document
from .description import DebugCable, Ipmi, NewDevice, Pdu, Redfish

HEADER = """\
# Written by `wqlab device add` or `wqlab device import`, which add machines to this file as long as nobody edits it.
# Values of ${NAME} are in device-types/addresses.env. Remove `tested: false` when `wqlab device check` passes.
"""
CRASH_KERNEL_MIB = 256
"""Memory for the crash kernel of a machine without a serial port."""


class _Dumper(yaml.SafeDumper):
    """Dumper that indents lists, as the files of device-types/ do."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def device_type_text(content: Mapping[str, Any]) -> str:
    """Return the file of a device type."""
    return HEADER + yaml.dump(
        dict(content), Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True, default_flow_style=False
    )


def written_content(text: str) -> dict[str, Any] | None:
    """Return the content of a device type's file as `device_type_text` wrote it; None if a person has edited it."""
    document = Document.parse(text, "")
    content = None if document.problems else document.plain()
    return content if isinstance(content, dict) and device_type_text(content) == text else None


def type_content(device: NewDevice) -> dict[str, Any]:
    """Return a device type without units. The device must have a topology."""
    if device.topology is None:
        raise ValueError(f"{device.name} has no topology")
    # Netconsole cannot send every crash. measure-hardware has crash kernels on this architecture only.
    needs_crash_kernel = device.netconsole is not None and device.arch == "x86_64"
    return {
        "name": device.device_type,
        "summary": device.summary or f"{device.device_type}, added by `wqlab device add`",
        "tested": False,
        "rehearsal": device.rehearsal,
        "arch": device.arch,
        "topology": device.topology.model_dump(exclude_defaults=True),
        "boot": device.boot.model_dump() | ({"crash_kernel_mib": CRASH_KERNEL_MIB} if needs_crash_kernel else {}),
        "conditions": {
            "governor": "performance",
            "boost": False,
            "smt": device.topology.threads_per_core > 1,
            "mitigations": "auto",
        },
        "recipe": device.recipe,
    }


def unit_content(device: NewDevice) -> dict[str, Any]:
    """Return the machine's unit of its device type."""
    unit: dict[str, Any] = {"name": device.name, "lab": f"${{{device.prefix}_LAB}}"}
    if commands := _commands(device):
        unit["power"] = commands
    if device.netconsole is not None:
        unit["netconsole"] = f"${{{device.prefix}_NETCONSOLE}}"
    if device.own_system is not None:
        unit["own_system"] = device.own_system.model_dump()
    if device.scratch:
        numbers = range(1, len(device.scratch) + 1)
        unit["scratch"] = [f"/dev/disk/by-id/${{{device.prefix}_SCRATCH_{number}}}" for number in numbers]
    return unit


def _commands(device: NewDevice) -> dict[str, str] | None:
    """Return the power commands, with addresses as `${NAME}`; None for an outlet, which labgrid switches."""
    power, prefix = device.power, device.prefix
    if isinstance(power, Ipmi):
        return _ipmi_commands(prefix)
    if isinstance(power, Redfish):
        command = (
            f"wqlab-redfish --url ${{{prefix}_BMC}} --user ${{{prefix}_BMC_USER}}"
            f" --password-file ${{{prefix}_BMC_PASSWORD_FILE}}"
        )
        if power.certificate is not None:
            command += f" --certificate ${{{prefix}_BMC_CERTIFICATE}}"
        if power.system is not None:
            command += f" --system ${{{prefix}_BMC_SYSTEM}}"
        return {"turn_on": f"{command} on", "turn_off": f"{command} off"}
    if isinstance(power, DebugCable):
        command = f"dut-control --port ${{{prefix}_SERVO_PORT}} power_state"
        return {"turn_on": f"{command}:on", "turn_off": f"{command}:off"}
    return None


def _ipmi_commands(prefix: str) -> dict[str, str]:
    """Return the power commands of a BMC. The lab switches off before it switches on, and many BMCs refuse to switch
    off a machine that is off, so the command asks for the status first."""
    power = (
        f"ipmitool -I lanplus -H ${{{prefix}_BMC}} -p ${{{prefix}_BMC_PORT}} -C ${{{prefix}_BMC_CIPHER}}"
        f" -U ${{{prefix}_BMC_USER}} -f ${{{prefix}_BMC_PASSWORD_FILE}} chassis power"
    )
    return {
        "turn_on": f"{power} on",
        "turn_off": f'sh -c \'power="{power}"; $power status | grep -q "is off" || $power off\'',
    }


def addresses(device: NewDevice) -> dict[str, str]:
    """Return the machine's values for addresses.env, by name."""
    values = {
        "LAB": device.lab,
        "CONSOLE_HOST": device.console.host,
        "CONSOLE_PORT": str(device.console.port),
        "SSH_HOST": device.ssh.host,
        "SSH_PORT": str(device.ssh.port),
    }
    power = device.power
    if isinstance(power, Ipmi):
        values |= {
            "BMC": power.host,
            "BMC_PORT": str(power.port),
            "BMC_USER": power.user,
            "BMC_PASSWORD_FILE": power.password_file,
            "BMC_CIPHER": str(power.cipher),
        }
    elif isinstance(power, Redfish):
        values |= {"BMC": power.url, "BMC_USER": power.user, "BMC_PASSWORD_FILE": power.password_file}
        values |= {"BMC_CERTIFICATE": power.certificate} if power.certificate is not None else {}
        values |= {"BMC_SYSTEM": power.system} if power.system is not None else {}
    elif isinstance(power, DebugCable):
        values["SERVO_PORT"] = str(power.port)
    else:
        values |= {"PDU": power.labgrid_host, "PDU_OUTLET": str(power.outlet)}
    if device.netconsole is not None:
        values["NETCONSOLE"] = device.netconsole
    values |= {f"SCRATCH_{number}": name for number, name in enumerate(device.scratch, 1)}
    return {f"{device.prefix}_{name}": value for name, value in values.items()}


def exporter_text(device: NewDevice) -> str:
    """Return the machine's file for labgrid's exporter, which takes the addresses from its environment."""
    prefix = device.prefix

    def env(name: str) -> str:
        return f"{{{{ env.{prefix}_{name} }}}}"

    power = ""
    if isinstance(device.power, Pdu):
        power = f"""\
  NetworkPowerPort:
    model: {device.power.model}
    host: "{env("PDU")}"
    index: {env("PDU_OUTLET")}
"""
    return f"""\
## Written by `wqlab device add` or `wqlab device import`. The addresses are in device-types/addresses.env.
{device.name}:
  NetworkSerialPort:
    host: "{env("CONSOLE_HOST")}"
    port: {env("CONSOLE_PORT")}
    protocol: {device.console.protocol}
    speed: {device.boot.console_speed}
{power}\
  NetworkService:
    address: "{env("SSH_HOST")}"
    username: root
    port: {env("SSH_PORT")}
"""


def power_commands(device: NewDevice) -> dict[str, str] | None:
    """Return the power commands with their values in place, as the lab will run them; None for an outlet."""
    commands = _commands(device)
    if commands is None:
        return None
    for name, value in addresses(device).items():
        commands = {key: text.replace(f"${{{name}}}", value) for key, text in commands.items()}
    return commands
