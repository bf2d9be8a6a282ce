"""Assign loopback ports that stay the same across restarts of the bench, and keep them in a file."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Collection
from pathlib import Path

from pydantic import BaseModel, ConfigDict

_LOWEST = 20000
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_TRIES = 1000


class PortsError(Exception):
    """There is no free port."""


class DevicePorts(BaseModel):
    model_config = ConfigDict(extra="forbid")

    index: int
    console: int
    ssh: int


class _Kept(BaseModel):
    model_config = ConfigDict(extra="forbid")

    http: int | None = None
    devices: dict[str, DevicePorts] = {}


class Ports:
    """Ports and outlet numbers by device name; a device that is added again gets its old ones."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._kept = _Kept.model_validate_json(file.read_text()) if file.exists() else _Kept()

    def http(self) -> int:
        """Return the port of the HTTP API."""
        if self._kept.http is None:
            self._kept.http = self._free()
            self._save()
        return self._kept.http

    def device(self, name: str) -> DevicePorts:
        """Return the outlet number and the ports of a device. Raises PortsError."""
        if name not in self._kept.devices:
            index = 1 + max((device.index for device in self._kept.devices.values()), default=0)
            first = self._free()
            self._kept.devices[name] = DevicePorts(index=index, console=first, ssh=self._free(first))
            self._save()
        return self._kept.devices[name]

    def _free(self, *excluded: int) -> int:
        taken = {self._kept.http, *excluded}
        taken |= {port for device in self._kept.devices.values() for port in (device.console, device.ssh)}
        return free_port(taken)

    def _save(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        partial = self.file.with_suffix(".partial")
        partial.write_text(json.dumps(self._kept.model_dump(), indent=1))
        partial.replace(self.file)


def free_port(taken: Collection[int | None]) -> int:
    """Return a free port below the kernel's range for outgoing connections, so that none of these takes it.

    Raises PortsError.
    """
    highest = int(_EPHEMERAL.read_text().split()[0]) - 1 if _EPHEMERAL.exists() else 32767
    for _ in range(_TRIES):
        port = random.randint(min(_LOWEST, highest), highest)  # noqa: S311
        if port not in taken and _is_free(port):
            return port
    raise PortsError(f"no free TCP port on 127.0.0.1 between {_LOWEST} and {highest}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
