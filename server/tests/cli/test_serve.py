"""How the API is served."""

from __future__ import annotations

import pytest

from wqlab_server.cli.serve import is_behind_proxy


@pytest.mark.parametrize(
    ("environment", "declared"),
    [
        ({}, False),
        ({"FORWARDED_ALLOW_IPS": ""}, False),
        ({"FORWARDED_ALLOW_IPS": " , "}, False),
        ({"FORWARDED_ALLOW_IPS": "127.0.0.1"}, True),
        ({"FORWARDED_ALLOW_IPS": "10.1.2.4,10.1.2.5"}, True),
    ],
)
def test_forwarded_addresses_count_only_if_a_proxy_is_declared(environment: dict[str, str], declared: bool) -> None:
    assert is_behind_proxy(environment) is declared
