"""Comparison of kernel configurations."""

from __future__ import annotations

from wqlab_report.parts.config_diff import LISTED_LIMIT, config_difference


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


def test_options_that_a_series_invents_do_not_fill_the_report() -> None:
    invented = "".join(f"CONFIG_X{number}=y\n" for number in range(200_000))
    found = config_difference("", f'CONFIG_A="{"x" * 4_000_000}"\n{invented}')
    assert found[-1] == f"CONFIG_* {200_001 - LISTED_LIMIT} more options -> not listed"
    assert len(found) == LISTED_LIMIT + 1
    assert max(map(len, found)) < 300
