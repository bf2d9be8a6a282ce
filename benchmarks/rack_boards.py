"""Boards of `rack.py`: the outlets of one PDU, and a console that prints while its outlet is on.

    python benchmarks/rack_boards.py FOLDER FIRST BYTES_PER_S

answers net-snmp's snmpd for eight outlets (`pass_persist`). Outlet n is board FIRST + n - 1, whose console is the
terminal FOLDER/console-BOARD. Each second the counts are written to FOLDER/boards-FIRST.json.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tty
from pathlib import Path

from wqlab_rehearsal.pdu import COUNT, OFF, ON, OUTLETS

PIECES_PER_S = 10
LINE = "[   12.345678] workqueue: a line of a boot log, as long as most of them are, board %03d\r\n"


class Board:
    """An outlet and the console behind it."""

    def __init__(self, folder: Path, number: int, rate: int) -> None:
        self.controller, self._terminal = os.openpty()
        tty.setraw(self._terminal)
        os.set_blocking(self.controller, False)
        device = folder / f"console-{number}"
        device.unlink(missing_ok=True)
        device.symlink_to(os.ttyname(self._terminal))
        self._piece = (LINE % number).encode() * (rate // PIECES_PER_S // len(LINE) + 1)
        self._piece = self._piece[: rate // PIECES_PER_S]
        self.on = False
        self.switched_on = self.written = self.lost = 0

    def switch(self, on: bool) -> None:
        self.switched_on += on and not self.on
        self.on = on

    def print_piece(self) -> None:
        sent = 0
        with contextlib.suppress(BlockingIOError):
            sent = os.write(self.controller, self._piece)
        self.written += sent
        self.lost += len(self._piece) - sent


class Outlets:
    def __init__(self, folder: Path, first: int, rate: int) -> None:
        self._file = folder / f"boards-{first}.json"
        self._boards = [Board(folder, first + n, rate) for n in range(COUNT)]

    async def print_consoles(self) -> None:
        clock = asyncio.get_running_loop()
        due = clock.time()
        piece = 0
        while True:
            for board in self._boards:
                if board.on:
                    board.print_piece()
            piece += 1
            if piece % PIECES_PER_S == 0:
                self._write_counts()
            due += 1 / PIECES_PER_S
            await asyncio.sleep(max(0.0, due - clock.time()))

    def _write_counts(self) -> None:
        counts = {key: sum(getattr(board, key) for board in self._boards) for key in ("switched_on", "written", "lost")}
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps(counts))
        fresh.replace(self._file)

    async def answer(self) -> None:
        """Answer snmpd on standard input and output until it ends (`pass_persist` of snmpd.conf(5))."""
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

        async def line() -> str:
            return (await reader.readline()).decode().strip()

        while not reader.at_eof():
            word = await line()
            if word == "PING":
                _say("PONG")
            elif word in {"get", "getnext"}:
                oid = await line()
                board = self._board(oid)
                _say(*(("NONE",) if board is None else (oid, "integer", str(ON if board.on else OFF))))
            elif word == "set":
                board = self._board(await line())
                _, _, value = (await line()).partition(" ")
                if board is None:
                    _say("not-writable")
                else:
                    board.switch(value == str(ON))
                    _say("DONE")

    def _board(self, oid: str) -> Board | None:
        number = oid.removeprefix(OUTLETS).lstrip(".")
        return self._boards[int(number) - 1] if number.isdigit() and 1 <= int(number) <= COUNT else None


def _say(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)


async def main() -> None:
    outlets = Outlets(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    printing = asyncio.create_task(outlets.print_consoles())
    await outlets.answer()
    printing.cancel()


if __name__ == "__main__":
    asyncio.run(main())
