from __future__ import annotations

import random
import socket
from pathlib import Path

import pytest

from wqlab_bench.ports import Ports


def test_ports_are_unique_and_survive_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "bench" / "ports.json"
    ports = Ports(file)
    http = ports.http()
    devices = {name: ports.device(name) for name in ("a", "b", "c")}
    numbers = [http, *(p for device in devices.values() for p in (device.console, device.ssh))]
    assert len(set(numbers)) == 7
    assert [device.index for device in devices.values()] == [1, 2, 3]
    again = Ports(file)
    assert again.http() == http
    # Also in another order, and with a new device between them.
    assert again.device("c") == devices["c"]
    assert again.device("new").index == 4
    assert again.device("a") == devices["a"]


def test_port_in_use_is_not_assigned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        draw, drawn = random.randint, iter([number, number])
        monkeypatch.setattr(random, "randint", lambda *limits: next(drawn, None) or draw(*limits))
        assert Ports(tmp_path / "ports.json").http() != number
        assert next(drawn, None) is None
