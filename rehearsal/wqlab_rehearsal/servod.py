"""A stand-in for `servod`, the daemon of a Chromebook's debug cable: an XML-RPC server with the real one's names.

    python -m wqlab_rehearsal.servod PORT START CONSOLE

START is run at power on and killed at power off. CONSOLE is the terminal device of the cable's port for the console.
It has few of the real one's controls; what each answers, also to mistakes, is that of the hdctools' sources.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xmlrpc.server import SimpleXMLRPCServer

from .machine_power import MachinePower

HOST = "127.0.0.1"
DEFAULT_PORT = 9999
RESET_S = 0.5
"""How long `reset` holds the embedded controller in reset."""
STATES = ("on", "off", "rec", "fastboot", "reset", "rec_force_mrc", "warm_reset")
"""Values of the control `power_state`."""
_NOT_EMULATED = frozenset({"rec", "fastboot", "rec_force_mrc", "warm_reset"})


class HwDriverError(Exception):
    """A control cannot be set or read. Clients see the message."""


@dataclass(frozen=True)
class Control:
    """A control: its description, and how it is read and set. None: it cannot be."""

    doc: str
    get: Callable[[], str] | None = None
    set: Callable[[str], None] | None = None


class Servod:
    """The daemon of one cable. Clients call its public methods by XML-RPC."""

    def __init__(self, start: Path, console: Path) -> None:
        self._machine = MachinePower(start)
        self._controls = {
            "power_state": Control("Switches the power of the device.", set=self._set_power),
            "ec_system_powerstate": Control("Power state, as the embedded controller knows it.", get=self._power),
            "cpu_uart_pty": Control("Terminal device of the processor's console.", get=lambda: str(console.readlink())),
        }

    def get(self, name: str) -> str:
        """Return the control's value. Raises NameError and NotImplementedError."""
        control = self._find(name)
        if control.get is None:
            raise NotImplementedError("Get method should be implemented in subclass.")
        return control.get()

    def set(self, name: str, value: str) -> bool:
        """Set the control. Raises NameError, NotImplementedError, ValueError and HwDriverError."""
        control = self._find(name)
        if control.set is None:
            raise NotImplementedError("Set should be implemented in subclass.")
        control.set(value)
        return True

    def set_get_all(self, requests: Sequence[str]) -> list[str | bool]:
        """Execute requests in turn: NAME reads a control, NAME:VALUE sets it. Raises as `get` and `set`."""
        return [self.set(*request.split(":", 1)) if ":" in request else self.get(request) for request in requests]

    def get_all(self, verbose: bool) -> str:
        """Return each control with its value, or ERR for one that cannot be read."""
        lines = []
        for name, control in self._controls.items():
            value = "ERR" if control.get is None else control.get()
            lines.append(f"GET {name} = {value} :: {control.doc}" if verbose else f"{name}:{value}")
        return "\n".join(sorted(lines))

    def doc(self, name: str) -> str:
        """Return a control's description. Raises NameError."""
        return self._find(name).doc

    def echo(self, text: str) -> str:
        return f"ECH0ING: {text}"

    def cut_power(self) -> None:
        """End the machine and wait for its end."""
        self._machine.cut()

    def _find(self, name: str) -> Control:
        if name not in self._controls:
            raise NameError(f"No control named {name}. All controls:\n{','.join(sorted(self._controls))}")
        return self._controls[name]

    def _power(self) -> str:
        return "S0" if self._machine.is_on else "G3"

    def _set_power(self, state: str) -> None:
        if state not in STATES:
            raise ValueError(f"Invalid power_state setting: {state!r}. Try one of {', '.join(map(repr, STATES))}.")
        if state in _NOT_EMULATED:
            raise HwDriverError(f"power_state:{state} is not rehearsed")
        if state in {"off", "reset"}:
            self.cut_power()
        if state == "reset":
            time.sleep(RESET_S)
        if state in {"on", "reset"}:
            self._machine.on()


def main() -> None:
    port, start, console = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    servod = Servod(start, console)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # One request at a time, like the real one. The machine dies with the thread that started it, which is this one.
    with SimpleXMLRPCServer((HOST, port), allow_none=True, logRequests=False) as server:
        for method in ("get", "set", "set_get_all", "get_all", "doc", "echo"):
            server.register_function(getattr(servod, method), method)
        try:
            server.serve_forever()
        finally:
            servod.cut_power()


if __name__ == "__main__":
    main()
