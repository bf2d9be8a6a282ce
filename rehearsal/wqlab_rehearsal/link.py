"""The link of a network card that negotiates for seconds after each reset, as cards of `r8169` do.

    python -m wqlab_rehearsal.link FOLDER SECONDS

QEMU writes a line to the FIFO `resets` of FOLDER when a driver resets the card: firmware, the golden system, and the
variant after kexec. Then the cable's link goes down, and comes back SECONDS later, by QEMU's control protocol (QMP).
QEMU connects to the socket `control` of FOLDER for it, so that a machine that is switched on finds its link.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

RESET = "e1000e_core_ctrl_sw_reset"
"""QEMU's trace event of a reset by the driver. It does not name the card, so the machine has one card."""
CARD = "net0"


def qemu_arguments(folder: Path) -> list[str]:
    """Return the options that report resets to this program and let it set the link."""
    return [
        "-trace", f"enable={RESET}", "-D", str(resets(folder)),
        "-chardev", f"socket,id=link,path={control(folder)}", "-mon", "chardev=link,mode=control",
    ]  # fmt: skip


def resets(folder: Path) -> Path:
    return folder / "resets"


def control(folder: Path) -> Path:
    return folder / "control"


class Link:
    """The link of one card of the machine that is on."""

    def __init__(self, negotiation_s: float) -> None:
        self._negotiation_s = negotiation_s
        self._machine: asyncio.StreamWriter | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def plug(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a machine until its power is cut."""
        await reader.readline()  # QEMU's greeting
        self._machine = writer
        self._say("qmp_capabilities")
        while line := await reader.readline():
            answer = json.loads(line)
            if "error" in answer:
                log.error("QEMU refuses: %s", answer["error"].get("desc"))
        if self._machine is writer:
            self._machine = None
            self._stop_timer()
        writer.close()

    def reset(self) -> None:
        """Take the link down and begin the negotiation, anew if one is under way."""
        if self._timer is None:
            self._set(up=False)
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(self._negotiation_s, self._negotiated)

    def _negotiated(self) -> None:
        self._timer = None
        self._set(up=True)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, *, up: bool) -> None:
        log.info("the link is %s", "up" if up else "down: the card was reset")
        self._say("set_link", name=CARD, up=up)

    def _say(self, command: str, **arguments: Any) -> None:
        if self._machine is not None and not self._machine.is_closing():
            message = {"execute": command} | ({"arguments": arguments} if arguments else {})
            self._machine.write(json.dumps(message).encode() + b"\n")


async def serve(folder: Path, negotiation_s: float) -> None:
    """Serve the machines that plug in one after the other, until SIGTERM or SIGINT."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    for path in (resets(folder), control(folder)):
        path.unlink(missing_ok=True)
    os.mkfifo(resets(folder))
    # Open for writing too, so that it does not end with the machine.
    fifo = os.open(resets(folder), os.O_RDWR | os.O_NONBLOCK)
    link = Link(negotiation_s)

    def read() -> None:
        if RESET.encode() in os.read(fifo, 65536):
            link.reset()

    loop.add_reader(fifo, read)
    server = await asyncio.start_unix_server(link.plug, control(folder))
    await ended.wait()
    server.close()


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    asyncio.run(serve(Path(sys.argv[1]), float(sys.argv[2])))


if __name__ == "__main__":
    main()
