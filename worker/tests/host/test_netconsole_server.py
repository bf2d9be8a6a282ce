"""`wqlab-netconsole`: datagrams in, a console by TCP out."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from wqlab_bench import ports

LINE = b"6,%d,%d,-;message %d\n"


@pytest.fixture
def program() -> Iterator[tuple[int, int]]:
    """UDP and TCP port of a running receiver."""
    udp = ports.free_port(set())
    tcp = ports.free_port({udp})
    addresses = ["--udp", f"127.0.0.1:{udp}", "--tcp", f"127.0.0.1:{tcp}", "--from", "127.0.0.1"]
    process = subprocess.Popen([sys.executable, "-m", "wqlab_host.netconsole_server", *addresses])
    try:
        yield udp, tcp
    finally:
        process.terminate()
        assert process.wait() == 0


def connect(port: int) -> socket.socket:
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.05)


def read_until(client: socket.socket, end: bytes) -> bytes:
    data = b""
    while not data.endswith(end):
        data += client.recv(4096)
    return data


def test_all_clients_read_and_none_can_type(program: tuple[int, int]) -> None:
    udp, tcp = program
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(tcp)) for _ in range(2)]
        for client in clients:
            client.sendall(b"reboot\n")
        time.sleep(0.2)  # the program tells no one that it has accepted them
        machine = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        for number in (0, 2, 1, 1, 4):  # message 3 is lost
            machine.sendto(LINE % (number, number, number), ("127.0.0.1", udp))
        for client in clients:
            lines = read_until(client, b"message 4\r\n").decode().splitlines()
            assert [line.rpartition("] ")[2] for line in lines] == [
                "message 0",
                "message 1",
                "message 2",
                "[netconsole: 1 message lost]",
                "message 4",
            ]


def test_other_senders_are_dropped(program: tuple[int, int]) -> None:
    udp, tcp = program
    with connect(tcp) as client, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.2", 0))
        time.sleep(0.2)
        other.sendto(LINE % (0, 0, 0), ("127.0.0.1", udp))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as machine:
            machine.sendto(LINE % (0, 7, 7), ("127.0.0.1", udp))
        assert read_until(client, b"\r\n") == b"[    0.000007] message 7\r\n"


def test_wrong_addresses_are_named() -> None:
    words = ["--udp", "6666", "--tcp", "127.0.0.1:7003"]
    answer = subprocess.run(
        [sys.executable, "-m", "wqlab_host.netconsole_server", *words], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 2
    assert "'6666' is not ADDRESS:PORT" in answer.stderr
