"""A serial cable: a terminal device for the console server on one end, the machine's UART on the other.

    python -m wqlab_rehearsal.serial_line DEVICE SOCKET

The cable stays when the machine has no power. Bytes that nobody reads are lost, as on a real line.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tty
from pathlib import Path


def qemu_arguments(socket: Path) -> list[str]:
    """Return the options that connect QEMU's first UART to the line."""
    return ["-chardev", f"socket,id=uart,path={socket}", "-serial", "chardev:uart"]


class Line:
    """The cable between a terminal device and at most one machine."""

    def __init__(self, device: Path) -> None:
        self._controller, terminal = os.openpty()
        tty.setraw(terminal)
        os.set_blocking(self._controller, False)
        self._terminal = terminal  # open, so that the device stays when the console server closes it
        device.unlink(missing_ok=True)
        device.symlink_to(os.ttyname(terminal))
        self._machine: asyncio.StreamWriter | None = None
        asyncio.get_running_loop().add_reader(self._controller, self._to_machine)

    def _to_machine(self) -> None:
        with contextlib.suppress(OSError):
            data = os.read(self._controller, 4096)
            if self._machine is not None and not self._machine.is_closing():
                self._machine.write(data)

    async def plug(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._machine = writer
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(4096):
                with contextlib.suppress(BlockingIOError):
                    os.write(self._controller, data)
        if self._machine is writer:
            self._machine = None
        writer.close()


async def serve(device: Path, socket: Path) -> None:
    """Connect the terminal `device` with the machine that plugs into `socket`, until SIGTERM or SIGINT.

    A file that stands at `socket` must have been removed.
    """
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    line = Line(device)
    server = await asyncio.start_unix_server(line.plug, socket)
    await ended.wait()
    server.close()


def main() -> None:
    device, socket = Path(sys.argv[1]), Path(sys.argv[2])
    socket.unlink(missing_ok=True)
    asyncio.run(serve(device, socket))


if __name__ == "__main__":
    main()
