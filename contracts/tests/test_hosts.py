"""Which hosts users may name, and which addresses are public."""

from __future__ import annotations

import pytest

from wqlab_contracts.hosts import find_private, host_problem, is_public


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("198.18.0.1", "192.0.0.8", "192.0.2.1", "192.88.99.1", "240.0.0.1", "255.255.255.255"),
        *("224.0.0.1", "239.1.2.3", "::ffff:224.0.0.1", "ff02::1", "ff0e::1"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fd00::1", "fec0::1", "feff::1", "100::1", "2001:db8::1", "3fff::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1"),
        *("::127.0.0.1", "::10.0.0.1", "::8.8.8.8"),
        *(
            "64:ff9b::7f00:1",
            "64:ff9b::8.8.8.8",
            "64:ff9b:1::7f00:1",
            "2002:7f00:1::",
            "2001::1",
            "2001:1::1",
            "2001:20::1",
            "5f00::1",
        ),
        *("", "localhost", "8.8.8.8.8"),
    ],
)
def test_address_is_not_public(address: str) -> None:
    assert not is_public(address)
    assert find_private(["8.8.8.8", address]) == address


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.215.14", "2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8"])
def test_address_is_public(address: str) -> None:
    assert is_public(address)
    assert find_private([address]) is None


@pytest.mark.parametrize(
    "host", ["git.kernel.org", "xn--bcher-kva.example", "Git.Example", "a", "1.example", "8.8.8.8", "2606:4700::1111"]
)
def test_host_is_accepted(host: str) -> None:
    assert host_problem(host) is None


@pytest.mark.parametrize(
    "host",
    [
        *("127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "1.2.3.4.5", "example.0x7f", "010.0.0.1"),
        *("127.0.0.1.", "git.example.", ".example", "a..b", "-git.example", "git-.example", "_git.example"),
        *(
            "\u24db\u24de\u24d2al.example",
            "\uff11\uff12\uff17.0.0.1",
            "b\u00fccher.example",
            "127\u30020\u30020\u30021",
        ),
        *("git.example%00", "git.example\\@evil", "a b", "", "x" * 64, "a." * 130 + "b", "2606:4700::1111%eth0", "::g"),
    ],
)
def test_host_is_refused(host: str) -> None:
    assert host_problem(host) is not None
