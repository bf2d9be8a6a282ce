"""Which addresses are connected to, and how."""

from __future__ import annotations

import httpcore
import pytest

from wqlab_server.http.guarded_network import AddressRefused, GuardedBackend, NoAddress


@pytest.mark.parametrize("host", ["127.1", "0x7f000001", "hook_.example"])
def test_unusual_forms_of_a_host_are_not_looked_up(host: str) -> None:
    with pytest.raises(AddressRefused):
        GuardedBackend(private=False, limit_s=1, find=lambda *_: pytest.fail("looked up")).connect_tcp(host, 443)


def test_one_private_address_among_several_is_refused() -> None:
    network = GuardedBackend(private=False, limit_s=1, find=lambda *_: ["8.8.8.8", "127.0.0.1"])
    with pytest.raises(AddressRefused, match=r"hook.example is the private address 127\.0\.0\.1"):
        network.connect_tcp("hook.example", 443)


def test_a_name_without_an_address_is_told() -> None:
    def find(*_: object) -> list[str]:
        raise OSError("Name or service not known")

    with pytest.raises(NoAddress, match=r"hook\.example has no address: Name or service not known"):
        GuardedBackend(private=False, limit_s=1, find=find).connect_tcp("hook.example", 443)


def test_the_next_address_is_tried_if_one_does_not_answer(unused_port: int, listening_port: int) -> None:
    """The port is open on 127.0.0.1 only."""
    network = GuardedBackend(private=True, limit_s=5, find=lambda *_: ["127.0.0.2", "127.0.0.1"])
    network.connect_tcp("hook.example", listening_port).close()
    with pytest.raises(httpcore.ConnectError):
        network.connect_tcp("hook.example", unused_port)
