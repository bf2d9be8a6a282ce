"""Which addresses are public, and how a connection is made."""

from __future__ import annotations

import httpcore
import pytest

from wqlab_server.http.guarded_network import AddressRefused, GuardedBackend, NoAddress, is_public


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "255.255.255.255", "::1", "::", "fe80::1%eth0", "fd00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
        "64:ff9b::7f00:1", "2002:7f00:1::", "2001::1",
    ],
)  # fmt: skip
def test_addresses_that_no_webhook_may_reach(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_public_addresses(address: str) -> None:
    assert is_public(address)


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
