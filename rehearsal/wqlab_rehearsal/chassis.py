"""The power of a machine behind `ipmi_sim`, with the faults of a BMC that cannot switch it.

    python -m wqlab_rehearsal.chassis FOLDER START FAULTS

starts ipmi_sim with the configuration in FOLDER and answers its questions: ipmi_sim runs a program for each (its
`chassis_control`), which passes the words on through a socket. START is run at power on. FAULTS is the file of faults.
"""

from __future__ import annotations

import asyncio
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from . import faults
from .machine_power import MachinePower

_SOCKET, _PROGRAM = "chassis", "chassis-control"
CONFIGURATION = "lan.conf"


def write_program(folder: Path) -> Path:
    """Write the program that ipmi_sim runs for each question, and return its path."""
    program = folder / _PROGRAM
    # Every answer is one line. ipmi_sim waits for the program, and refuses the command if its exit status is not 0.
    program.write_text(f"""\
#!/bin/sh
answer=$(echo "$*" | socat -t 30 - UNIX-CONNECT:{shlex.quote(str(folder / _SOCKET))}) || exit 1
[ "$answer" != refused ] || exit 1
echo "$answer"
""")
    program.chmod(0o755)
    return program


class Chassis:
    """Answers the questions of ipmi_sim's `chassis_control`."""

    def __init__(self, power: MachinePower, file: Path) -> None:
        self._power = power
        self._faults = file

    def answer(self, words: list[str]) -> str:
        """Return the answer to `get power` or `set power 0`; "refused" if the BMC does not do it."""
        names = faults.read(self._faults)
        match words:
            case ["get", "power"]:
                return f"power:{int(self._power.is_on)}"
            case ["set", "power", "0"] if "bmc-refuses-off" in names and not self._power.is_on:
                return "refused"
            case ["set", "power", "0" | "1"] | ["set", "reset", "1"] if "bmc-ignores" in names:
                return ""
            case ["set", "power", "0"]:
                self._power.cut()
            case ["set", "power", "1"]:
                self._power.on()
            case ["set", "reset", "1"]:
                if self._power.is_on:
                    self._power.cut()
                    self._power.on()
            case _:
                return "refused"
        return ""


async def serve(folder: Path, chassis: Chassis) -> int:
    """Run ipmi_sim until it ends or SIGTERM comes; return its exit status."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        words = (await reader.readline()).decode().split()
        answer = chassis.answer(words)
        if words[:1] == ["set"]:
            print(*words, answer, flush=True)
        writer.write(f"{answer}\n".encode())
        writer.close()

    path = folder / _SOCKET
    path.unlink(missing_ok=True)
    server = await asyncio.start_unix_server(converse, path)
    # ipmi_sim's output goes to this program's log. It ends with this program.
    command = [
        "setpriv", "--pdeathsig", "KILL", "ipmi_sim", "-n",
        "-c", str(folder / CONFIGURATION), "-f", str(folder / "controller.emu"), "-s", str(folder / "state"),
    ]  # fmt: skip
    process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.DEVNULL)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, process.kill)
    status = await process.wait()
    server.close()
    return status


def main() -> None:
    folder, start, file = (Path(word) for word in sys.argv[1:4])
    power = MachinePower(start)
    try:
        status = asyncio.run(serve(folder, Chassis(power, file)))
    finally:
        power.cut()
    sys.exit(0 if status == -signal.SIGKILL else status)


if __name__ == "__main__":
    main()
