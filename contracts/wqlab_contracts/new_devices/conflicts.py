"""Find new machines that would share a name, a console, an address or a power switch with another machine.

Machines are compared with each other and with those of the lab. If two machines shared a power switch, a run on one
would cut the power of the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..addresses_file import read_addresses
from ..loading import load_data
from ..yamlfile import DataError
from . import render
from .description import NewDevice, prefix_of

_USED = re.compile(r"\$\{([A-Z][A-Z0-9_]*)")
_ADDRESS = re.compile(
    r"(.+?)_(LAB|CONSOLE_HOST|CONSOLE_PORT|SSH_HOST|SSH_PORT|BMC|BMC_PORT|BMC_SYSTEM|PDU|PDU_OUTLET|SERVO_PORT)"
)

_USUAL_PORTS = frozenset({"623", "443"})
"""Ports of IPMI and of Redfish."""

Place = tuple[str, ...]
"""Something that only one machine may have: what it is (`console`, `SSH address`, `power switch`), then its address."""


@dataclass(frozen=True)
class Conflict:
    """A machine that cannot be added beside another one."""

    device: NewDevice
    field: str
    """Field of the description."""
    message: str


def find(devices: Sequence[NewDevice], data: Path) -> list[Conflict]:
    """Return the conflicts of new machines with each other and with the machines of a data folder.

    A machine does not conflict with itself: the folder may already have a unit of this name and type.
    """
    return [*_names_in_use(devices, data), *_shared(devices, data / "device-types")]


def _shared(devices: Sequence[NewDevice], folder: Path) -> Iterator[Conflict]:
    known, _ = read_addresses(folder)
    own = {device.prefix for device in devices}
    seen: dict[Place, str] = {}
    for prefix, values in _by_prefix(known).items():
        if prefix not in own:
            seen |= dict.fromkeys(_places(values).values(), f"{prefix} in {folder.name}/addresses.env")
    names: dict[str, str] = {}
    for device in devices:
        first = names.setdefault(device.prefix, device.name)
        if first != device.name:
            text = f"{device.name} makes the same names in addresses.env as {first}: each machine needs its own"
            yield Conflict(device, "name", text)
            continue
        values = {name.removeprefix(f"{device.prefix}_"): value for name, value in render.addresses(device).items()}
        for field, place in _places(values).items():
            if place in seen:
                yield Conflict(
                    device, field, f"{device.name} has the {place[0]} of {seen[place]}: each machine needs its own"
                )
            seen.setdefault(place, device.name)


def _by_prefix(known: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Group the addresses of addresses.env by machine: prefix (`RACK_1`) -> rest of the name (`BMC`) -> value."""
    found: dict[str, dict[str, str]] = {}
    for name, value in known.items():
        if use := _ADDRESS.fullmatch(name):
            found.setdefault(use[1], {})[use[2]] = value
    return found


def _places(values: Mapping[str, str]) -> dict[str, Place]:
    """Return the places of one machine, by field of its description. `values` has its addresses without the prefix.

    A loopback address or a debug cable belongs to one lab's host. IPMI and Redfish at their usual ports on one host are
    the same BMC. Other ports of a host may be forwarded to several BMCs.
    """
    places: dict[str, Place] = {}
    lab = values.get("LAB", "")

    def place(what: str, address: str, *more: str) -> Place:
        host = address.lower()
        return (what, host, *more, lab if host.startswith("127.") or host == "localhost" else "")

    if "CONSOLE_HOST" in values:
        places["console"] = place("console", values["CONSOLE_HOST"], values.get("CONSOLE_PORT", ""))
    if "SSH_HOST" in values:
        places["ssh"] = place("SSH address", values["SSH_HOST"], values.get("SSH_PORT", "22"))
    if "BMC" in values:
        host, _, port = values["BMC"].lower().removeprefix("https://").partition(":")
        port = port or values.get("BMC_PORT", "")
        places["power"] = place(
            "power switch", host, "BMC", port if port not in _USUAL_PORTS else "", values.get("BMC_SYSTEM", "")
        )
    elif "PDU" in values and "PDU_OUTLET" in values:
        places["power"] = place("power switch", values["PDU"], "outlet", values["PDU_OUTLET"])
    elif "SERVO_PORT" in values:
        places["power"] = place("power switch", "localhost", "debug cable", values["SERVO_PORT"])
    return places


def _names_in_use(devices: Sequence[NewDevice], data: Path) -> Iterator[Conflict]:
    """Yield each machine whose name is that of a unit of another type, or whose addresses another unit uses."""
    try:
        types = load_data(data).device_types
    except DataError:
        return  # the validation of the planned files reports it
    users: dict[str, tuple[str, frozenset[str]]] = {}
    type_of: dict[str, str] = {}
    for name, device_type in types.items():
        units = frozenset(unit.name for unit in device_type.units)
        type_of |= dict.fromkeys(units, name)
        path = data / "device-types" / f"{name}.yaml"
        if path.exists():
            users |= dict.fromkeys(_USED.findall(path.read_text(encoding="utf-8")), (path.name, units))
    for device in devices:
        there = type_of.get(device.name)
        if there is not None and there != device.device_type:
            advice = f"choose another name, or remove it from device-types/{there}.yaml first"
            yield Conflict(device, "name", f"{device.name} is already a unit of {there}: {advice}")
            continue
        for name in render.addresses(device):
            file, units = users.get(name, ("", frozenset()))
            if file and device.name not in units:
                whose = ", ".join(sorted(unit for unit in units if prefix_of(unit) == device.prefix)) or "another unit"
                text = f"{name} in addresses.env is that of {whose} (device-types/{file}): rename {device.name}"
                yield Conflict(device, "name", text)
                break
