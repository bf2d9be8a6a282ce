"""Console whose bytes another thread feeds."""

from __future__ import annotations

import threading

from wqlab_worker.backends.ab.fed_console import WAITING_LIMIT, FedConsole

PIECE = bytes(64 << 10)


def test_a_kernel_that_prints_without_end_waits_for_the_reader() -> None:
    console, pieces = FedConsole(), 40

    def print_all() -> None:
        for _ in range(pieces):
            console.feed(PIECE)

    printing = threading.Thread(target=print_all)
    printing.start()
    received, most = 0, 0
    while received < pieces * len(PIECE):
        most = max(most, len(console._waiting))
        received += len(console._read(4096, 60.0))
    printing.join()
    assert received == pieces * len(PIECE)
    assert most < WAITING_LIMIT + len(PIECE)
