"""SSH to a device as a labgrid driver, bound to a NetworkService.

labgrid's own SSHDriver polls for the connection, splits commands at blanks, cannot stream into a command, and takes
up to two minutes to close the connection to a dead device; see docs/decisions.
"""

from __future__ import annotations

import attr
from labgrid import target_factory
from labgrid.driver.common import Driver

from .ssh import SshConnection, SshServer


@target_factory.reg_driver
@attr.s(eq=False)
class DeviceSSHDriver(SshConnection, Driver):  # type: ignore[misc]
    """An `SshConnection` to the address of the device's NetworkService."""

    bindings = {"networkservice": "NetworkService"}
    keyfile: str = attr.ib(default="", validator=attr.validators.instance_of(str))

    def on_deactivate(self) -> None:
        self.close()

    def server(self) -> SshServer:
        service = self.networkservice
        return SshServer(str(service.address), int(service.port), service.username, self.keyfile)
