"""Builds with a user's configuration, such as a distribution's."""

from __future__ import annotations

from wqlab_worker.build.given_config import with_loaded_modules
from wqlab_worker.build.kconfig import parse_options

CONFIG = """\
CONFIG_64BIT=y
CONFIG_XFS_FS=m
CONFIG_SND_HDA=m
CONFIG_E1000E=m
CONFIG_UNKNOWN=m
"""
MAKEFILES = [
    "obj-$(CONFIG_XFS_FS)\t\t+= xfs.o",
    "obj-$(CONFIG_SND_HDA) := snd-hda-codec.o snd-hda-core.o",
    "obj-$(CONFIG_E1000E) += e1000e/",
    "obj-$(CONFIG_E1000E) += e1000e.o",
    "obj-$(CONFIG_64BIT) += bits.o",
]


def test_modules_that_are_not_loaded_are_left_out() -> None:
    reduced = parse_options(with_loaded_modules(CONFIG, ["e1000e", "snd_hda_core"], MAKEFILES))
    assert reduced == {"64BIT": "y", "XFS_FS": "n", "SND_HDA": "m", "E1000E": "m", "UNKNOWN": "m"}
