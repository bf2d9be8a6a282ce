"""Options that a finished configuration does not have."""

from __future__ import annotations

from wqlab_worker.build import kconfig


def test_options_that_differ_from_fragments_are_unmet() -> None:
    first = "CONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\n"
    fragments = [first, 'CONFIG_B=y\nCONFIG_D=64\nCONFIG_E=n\nCONFIG_F=""\n']
    config = "CONFIG_A=y\nCONFIG_B=m\nCONFIG_C=y\nCONFIG_D=8\n"
    assert kconfig.unmet_options(fragments, config) == [
        "CONFIG_B=y (is m)",
        "CONFIG_C=n (is y)",
        "CONFIG_D=64 (is 8)",
    ]
