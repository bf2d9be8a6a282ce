"""Run `sushy-emulator` with a driver that starts and kills a process, which is the machine.

    python -m wqlab_rehearsal.redfish_service NAME START [options of sushy-emulator]

START is run at power on. Its process is killed at power off.
"""

from __future__ import annotations

import signal
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sushy_tools import error
from sushy_tools.emulator import main as emulator
from sushy_tools.emulator.resources.systems.base import AbstractSystemsDriver

from .machine_power import MachinePower


class MachineDriver(AbstractSystemsDriver):  # type: ignore[misc]
    """sushy-tools' interface to one machine, which is a process."""

    def __init__(self, name: str, start: Path) -> None:
        super().__init__()
        self._name = name
        self._uuid = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
        self._machine = MachinePower(start)
        # The machine dies with the thread that started it (write_start), so requests' own threads must not.
        self._thread = ThreadPoolExecutor(1)

    @property
    def driver(self) -> str:
        return "<qemu process>"

    @property
    def systems(self) -> list[str]:
        return [self._uuid]

    def uuid(self, identity: str) -> str:
        if identity not in {self._uuid, self._name}:
            raise error.NotFound(f"no system {identity}")
        return self._uuid

    def name(self, identity: str) -> str:
        self.uuid(identity)
        return self._name

    def get_power_state(self, identity: str) -> str:
        self.uuid(identity)
        return self._thread.submit(self._state).result()

    def set_power_state(self, identity: str, state: str) -> None:
        self.uuid(identity)
        if state not in {"On", "ForceOn", "ForceOff", "ForceRestart"}:
            raise error.NotSupportedError(f"this machine has no {state}")
        self._thread.submit(self._set, state).result()

    def get_boot_device(self, identity: str) -> str:
        self.uuid(identity)
        return "Hdd"

    def set_boot_device(self, identity: str, boot_source: str) -> None:
        self.uuid(identity)
        if boot_source != "Hdd":
            raise error.NotSupportedError("this machine boots from its disk only")

    def get_boot_mode(self, identity: str) -> str:
        self.uuid(identity)
        return "UEFI"

    def cut(self) -> None:
        """Cut the power and wait for the machine's end."""
        self._thread.submit(self._set, "ForceOff").result()

    def _state(self) -> str:
        return "On" if self._machine.is_on else "Off"

    def _set(self, state: str) -> None:
        if state in {"ForceOff", "ForceRestart"}:
            self._machine.cut()
        if state != "ForceOff":
            self._machine.on()


def main() -> None:
    driver = MachineDriver(sys.argv[1], Path(sys.argv[2]))
    # sushy-emulator chooses among its own drivers only.
    emulator.Application.systems = driver
    del sys.argv[1:3]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        emulator.main()
    finally:
        driver.cut()


if __name__ == "__main__":
    main()
