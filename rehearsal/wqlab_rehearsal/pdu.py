"""Configure net-snmp's `snmpd` as a switched PDU of APC, whose outlets power a machine.

    python -m wqlab_rehearsal.pdu START FAULTS

is the program that answers for the outlets (snmpd's `pass_persist`). START is run when the outlet of the machine is
switched on, and killed when it is switched off. FAULTS is the file of faults.
"""

from __future__ import annotations

import sys
from pathlib import Path

from . import faults
from .machine_power import MachinePower

OUTLETS = ".1.3.6.1.4.1.318.1.1.4.4.2.1.3"
"""sPDUOutletCtl of PowerNet-MIB: 1 is on, 2 is off, for each outlet."""
OUTLET = 3
"""Outlet of the machine, as in docs/hardware/labgrid/ryzen-box.yaml."""
COUNT = 8
COMMUNITY = "private"
ON, OFF = 1, 2


def write(folder: Path, port: int, start: Path) -> list[str]:
    """Write the configuration to `folder` and return snmpd's command. `port` is its UDP port on the loopback.

    The machine's folder, with its faults, is the one above `folder`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "snmpd.conf"
    file.write_text(f"""\
[snmp] persistentDir {folder}
agentaddress udp:127.0.0.1:{port}
rwcommunity {COMMUNITY} 127.0.0.1
pass_persist {OUTLETS} {sys.executable} -m wqlab_rehearsal.pdu {start} {faults.file_of(folder.parent)}
""")
    # -f: in the foreground; -C: without the system's configuration; -Lo: messages on standard output.
    return ["snmpd", "-f", "-C", "-c", str(file), "-Lo", "-I", "-smux", "-p", str(folder / "snmpd.pid")]


class Outlets:
    """The PDU's outlets; one of them powers the machine."""

    def __init__(self, machine: MachinePower, file: Path) -> None:
        self._machine = machine
        self._faults = file
        self._on = dict.fromkeys(range(1, COUNT + 1), False)

    def get(self, outlet: int) -> int:
        return ON if self._on[outlet] else OFF

    def set(self, outlet: int, on: bool) -> None:
        """Switch an outlet. With the fault `pdu-ignores` the PDU shows the new state, and its relay does not move."""
        self._on[outlet] = on
        if outlet != OUTLET or "pdu-ignores" in faults.read(self._faults):
            return
        if on:
            self._machine.on()
        else:
            self._machine.cut()


def converse(outlets: Outlets) -> None:
    """Answer snmpd on standard input and output until it ends (`pass_persist` of snmpd.conf(5))."""
    for line in sys.stdin:
        word = line.strip()
        if word == "PING":
            _say("PONG")
        elif word in {"get", "getnext"}:
            outlet = _outlet(sys.stdin.readline().strip(), after=word == "getnext")
            if outlet is None:
                _say("NONE")
            else:
                _say(f"{OUTLETS}.{outlet}", "integer", str(outlets.get(outlet)))
        elif word == "set":
            outlet = _outlet(sys.stdin.readline().strip(), after=False)
            _, _, value = sys.stdin.readline().strip().partition(" ")
            if outlet is None:
                _say("not-writable")
            elif value not in {str(ON), str(OFF)}:
                _say("wrong-value")
            else:
                outlets.set(outlet, value == str(ON))
                _say("DONE")


def _outlet(oid: str, *, after: bool) -> int | None:
    """Return the outlet of an object identifier, or with `after` the next one; None if there is none."""
    rest = oid.removeprefix(OUTLETS).lstrip(".")
    if not oid.startswith(OUTLETS) or (rest and not rest.isdigit()):
        return None
    outlet = (int(rest) if rest else 0) + after
    return outlet if 1 <= outlet <= COUNT else None


def _say(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)


def main() -> None:
    start, file = (Path(word) for word in sys.argv[1:3])
    machine = MachinePower(start)
    try:
        converse(Outlets(machine, file))
    finally:
        machine.cut()


if __name__ == "__main__":
    main()
