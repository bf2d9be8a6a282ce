"""The labgrid resources of a machine in a device trial, and the file with its password."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

from labgrid import Target, target_factory
from labgrid.driver import NetworkPowerDriver

from wqlab_contracts.new_devices.description import NewDevice, Pdu, Redfish
from wqlab_contracts.new_devices.power_commands import power_commands

from .power import CommandPowerDriver

PASSWORD_BYTES = 20
"""Longest password of IPMI 2.0."""
REDFISH_PASSWORD_BYTES = 128


class StepFailed(Exception):
    """A step failed. `fix` says what to do."""

    def __init__(self, text: str, fix: str) -> None:
        super().__init__(text)
        self.fix = fix


def make_resources(target: Target, device: NewDevice) -> CommandPowerDriver | NetworkPowerDriver:
    """Give the target the machine's labgrid resources, as its exporter would, and return its power driver."""
    console, ssh, power = device.console, device.ssh, device.power
    target_factory.make_resource(
        target, "NetworkSerialPort", None,
        {"host": console.host, "port": console.port, "protocol": console.protocol,
         "speed": device.boot.console_speed},
    )  # fmt: skip
    target_factory.make_resource(
        target, "NetworkService", None, {"address": ssh.host, "port": ssh.port, "username": "root"}
    )
    commands = power_commands(device)
    if commands is not None:
        return CommandPowerDriver(target, None, cmd_on=commands["turn_on"], cmd_off=commands["turn_off"])
    assert isinstance(power, Pdu)  # noqa: S101 - all others have commands
    target_factory.make_resource(
        target, "NetworkPowerPort", None, {"model": power.model, "host": power.labgrid_host, "index": str(power.outlet)}
    )
    return NetworkPowerDriver(target, None)


def check_password_file(path: Path, limit: int = PASSWORD_BYTES) -> None:
    """Raise StepFailed unless the file has a password of at most `limit` bytes and only its owner can read it."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        first = path.read_bytes().split(b"\n")[0]
    except OSError as error:
        raise StepFailed(
            f"the password file {path} cannot be read: {error.strerror}",
            f"Write the BMC's password to {path} on the lab's host, readable by the lab's user only.",
        ) from error
    if mode & 0o077:
        raise StepFailed(f"other users can read the password file {path}", f"Run `chmod 600 {path}` on the lab's host.")
    if not 0 < len(first) <= limit:
        said = "is empty" if not first else f"has {len(first)} bytes"
        kind = "IPMI passwords have" if limit == PASSWORD_BYTES else "A password has"
        raise StepFailed(f"the first line of {path} {said}", f"{kind} 1 to {limit} bytes, in the first line.")


def check_files(device: NewDevice) -> None:
    """Raise StepFailed unless the files that the machine's power names have what they should."""
    power = device.power
    if isinstance(power, Pdu) or power.kind == "debug_cable":
        return
    limit = REDFISH_PASSWORD_BYTES if isinstance(power, Redfish) else PASSWORD_BYTES
    check_password_file(Path(power.password_file), limit)
    if isinstance(power, Redfish) and power.certificate is not None:
        path = Path(power.certificate)
        try:
            ssl.create_default_context(cafile=str(path))
        except (OSError, ssl.SSLError) as error:
            raise StepFailed(
                f"the certificate {path} cannot be read: {error}",
                f"Save it with `openssl s_client -connect {power.host}:{power.port} </dev/null | openssl x509`, and"
                " compare its fingerprint with that of the BMC's page.",
            ) from error
