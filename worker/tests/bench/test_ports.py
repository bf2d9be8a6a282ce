from __future__ import annotations

import socket
from pathlib import Path

from wqlab_bench.ports import Ports


def test_ports_differ_and_stay_over_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "bench" / "ports.json"
    ports = Ports(file)
    http = ports.http()
    boards = {name: ports.board(name) for name in ("a", "b", "c")}
    numbers = [http, *(p for board in boards.values() for p in (board.console, board.ssh))]
    assert len(set(numbers)) == 7
    assert [board.index for board in boards.values()] == [1, 2, 3]
    again = Ports(file)
    assert again.http() == http
    # Also in another order, and with a new board between them.
    assert again.board("c") == boards["c"]
    assert again.board("new").index == 4
    assert again.board("a") == boards["a"]


def test_a_port_in_use_is_not_given_out(tmp_path: Path, monkeypatch: object) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        choices = iter([number, number, number - 1 if number > 20000 else 20001])
        import wqlab_bench.ports as module

        monkeypatch.setattr(module.random, "randint", lambda *_: next(choices))  # type: ignore[attr-defined]
        assert Ports(tmp_path / "ports.json").http() != number
