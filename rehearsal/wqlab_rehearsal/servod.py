"""A stand-in for `servod`, the daemon of a Chromebook's debug cable: an XML-RPC server with the real one's names.

    python -m wqlab_rehearsal.servod PORT START CONSOLE

START is run at power on and killed at power off. CONSOLE is the terminal device of the cable's port for the console.
It has those of the real one's controls and methods that the lab needs.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from xmlrpc.server import SimpleXMLRPCServer

from .machine_power import MachinePower

HOST = "127.0.0.1"
DEFAULT_PORT = 9999
RESET_S = 0.5
"""How long `reset` holds the embedded controller in reset."""


class Servod:
    """The daemon of one cable. Clients call its public methods by XML-RPC."""

    def __init__(self, start: Path, console: Path) -> None:
        self._machine, self._console = MachinePower(start), console

    def get(self, name: str) -> str:
        """Return a control's value. Raises NameError for an unknown control."""
        if name == "ec_system_powerstate":
            return "S0" if self._machine.is_on else "G3"
        if name == "cpu_uart_pty":
            return str(self._console.readlink())
        raise NameError(f"No control named {name}")

    def set(self, name: str, value: str) -> bool:
        """Set the power. Raises NameError for another control, and ValueError for a state that is not rehearsed."""
        if name != "power_state":
            raise NameError(f"No control named {name}")
        if value not in {"on", "off", "reset"}:
            raise ValueError(f"power_state:{value} is not rehearsed")
        if value != "on":
            self.cut_power()
        if value == "reset":
            time.sleep(RESET_S)
        if value != "off":
            self._machine.on()
        return True

    def cut_power(self) -> None:
        """End the machine and wait for its end."""
        self._machine.cut()


def main() -> None:
    port, start, console = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    servod = Servod(start, console)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # One request at a time, like the real one. The machine dies with the thread that started it, which is this one.
    with SimpleXMLRPCServer((HOST, port), allow_none=True, logRequests=False) as server:
        for method in ("get", "set"):
            server.register_function(getattr(servod, method), method)
        try:
            server.serve_forever()
        finally:
            servod.cut_power()


if __name__ == "__main__":
    main()
