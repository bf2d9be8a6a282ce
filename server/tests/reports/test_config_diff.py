"""Comparison of kernel configurations."""

from __future__ import annotations

from wqlab_server.reports.config_diff import config_difference


def test_configurations_are_compared_by_option() -> None:
    before = '# made by make\nCONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C="x"\nCONFIG_D=5\n'
    after = 'CONFIG_C="x"\nCONFIG_B=m\nCONFIG_D=6\n# CONFIG_A is not set\nCONFIG_E=y\n'
    assert config_difference(before, after) == [
        "CONFIG_A y -> n",
        "CONFIG_B n -> m",
        "CONFIG_D 5 -> 6",
        "CONFIG_E absent -> y",
    ]
    assert config_difference(before, "\n".join(reversed(before.splitlines()))) == []
