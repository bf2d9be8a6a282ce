"""Find what a new machine would share with another machine of the lab: a name, a console, an address or a power switch.

If two machines shared a power switch, a run on one would cut the power of the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from wqlab_contracts.addresses_file import read_addresses
from wqlab_contracts.loading import load_data
from wqlab_contracts.new_devices.description import NewDevice, prefix_of
from wqlab_contracts.new_devices.power_commands import addresses
from wqlab_contracts.yamlfile import DataError

_USED = re.compile(r"\$\{([A-Z][A-Z0-9_]*)")
_ADDRESS = re.compile(
    r"(.+?)_(LAB|CONSOLE_HOST|CONSOLE_PORT|SSH_HOST|SSH_PORT|BMC|BMC_PORT|BMC_SYSTEM|PDU|PDU_OUTLET|SERVO_PORT)"
)

_USUAL_PORTS = frozenset({"623", "443"})
"""Ports of IPMI and of Redfish."""

Place = tuple[str, ...]
"""Something that only one machine may have: what it is (`console`, `SSH address`, `power switch`), then its address."""


def find(device: NewDevice, data: Path) -> list[str]:
    """Return the conflicts of a new machine with the machines of a data folder.

    A machine does not conflict with itself: the folder may already have a unit of this name and type.
    """
    return [*_names_in_use(device, data), *_shared(device, data / "device-types")]


def _shared(device: NewDevice, folder: Path) -> Iterator[str]:
    known, _ = read_addresses(folder)
    owners: dict[Place, str] = {}
    for prefix, values in _by_prefix(known).items():
        if prefix != device.prefix:
            owners |= dict.fromkeys(_places(values), prefix)
    own = {name.removeprefix(f"{device.prefix}_"): value for name, value in addresses(device).items()}
    for place in _places(own):
        if place in owners:
            owner = f"{owners[place]} in {folder.name}/addresses.env"
            yield f"{device.name} has the {place[0]} of {owner}: each machine needs its own"


def _by_prefix(known: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Group the addresses of addresses.env by machine: prefix (`RACK_1`) -> rest of the name (`BMC`) -> value."""
    found: dict[str, dict[str, str]] = {}
    for name, value in known.items():
        if use := _ADDRESS.fullmatch(name):
            found.setdefault(use[1], {})[use[2]] = value
    return found


def _places(values: Mapping[str, str]) -> list[Place]:
    """Return the places of one machine. `values` has its addresses without the prefix.

    A loopback address or a debug cable belongs to one lab's host. IPMI and Redfish at their usual ports on one host are
    the same BMC. Other ports of a host may be forwarded to several BMCs.
    """
    places: list[Place] = []
    lab = values.get("LAB", "")

    def place(what: str, address: str, *more: str) -> Place:
        host = address.lower()
        return (what, host, *more, lab if host.startswith("127.") or host == "localhost" else "")

    if "CONSOLE_HOST" in values:
        places.append(place("console", values["CONSOLE_HOST"], values.get("CONSOLE_PORT", "")))
    if "SSH_HOST" in values:
        places.append(place("SSH address", values["SSH_HOST"], values.get("SSH_PORT", "22")))
    if "BMC" in values:
        host, _, port = values["BMC"].lower().removeprefix("https://").partition(":")
        port = port or values.get("BMC_PORT", "")
        system = values.get("BMC_SYSTEM", "")
        places.append(place("power switch", host, "BMC", port if port not in _USUAL_PORTS else "", system))
    elif "PDU" in values and "PDU_OUTLET" in values:
        places.append(place("power switch", values["PDU"], "outlet", values["PDU_OUTLET"]))
    elif "SERVO_PORT" in values:
        places.append(place("power switch", "localhost", "debug cable", values["SERVO_PORT"]))
    return places


def _names_in_use(device: NewDevice, data: Path) -> Iterator[str]:
    """Yield a conflict if the machine's name is that of a unit of another type, or another unit uses its addresses."""
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
    there = type_of.get(device.name)
    if there is not None and there != device.device_type:
        advice = f"choose another name, or remove it from device-types/{there}.yaml first"
        yield f"{device.name} is already a unit of {there}: {advice}"
        return
    for name in addresses(device):
        file, units = users.get(name, ("", frozenset()))
        if file and device.name not in units:
            whose = ", ".join(sorted(unit for unit in units if prefix_of(unit) == device.prefix)) or "another unit"
            yield f"{name} in addresses.env is that of {whose} (device-types/{file}): rename {device.name}"
            return
