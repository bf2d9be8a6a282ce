"""Turn the description of a machine into text: its device type, its unit there, its exporter file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from wqlab_contracts.new_devices.description import NewDevice, Pdu
from wqlab_contracts.new_devices.power_commands import named_power_commands
from wqlab_contracts.yamlfile import Document

HEADER = """\
# Written by `wqlab device add`, which adds machines to this file as long as nobody edits it.
# Values of ${NAME} are in device-types/addresses.env. Remove `tested: false` when `wqlab device check` passes.
"""
RECIPE = "measure-hardware"
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
        "summary": f"{device.device_type}, added by `wqlab device add`",
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
        "recipe": RECIPE,
    }


def unit_content(device: NewDevice) -> dict[str, Any]:
    """Return the machine's unit of its device type."""
    unit: dict[str, Any] = {"name": device.name, "lab": f"${{{device.prefix}_LAB}}"}
    if commands := named_power_commands(device):
        unit["power"] = commands
    if device.netconsole is not None:
        unit["netconsole"] = f"${{{device.prefix}_NETCONSOLE}}"
    if device.own_system is not None:
        unit["own_system"] = device.own_system.model_dump()
    if device.scratch:
        numbers = range(1, len(device.scratch) + 1)
        unit["scratch"] = [f"/dev/disk/by-id/${{{device.prefix}_SCRATCH_{number}}}" for number in numbers]
    return unit


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
## Written by `wqlab device add`. The addresses are in device-types/addresses.env.
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
