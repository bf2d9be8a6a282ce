"""A series that is walked patch by patch on a small emulated device: one patch changes no byte, one does not build."""

from __future__ import annotations

import pytest

from .conftest import SERIES, Lab

pytestmark = [pytest.mark.scenario, pytest.mark.nightly, pytest.mark.timeout(1800)]

WALKED = SERIES / "breaks-and-repairs.mbox"
"""A comment, a function split in two, a variable that nobody declares, its removal, and fewer locks."""


def test_ladder_shows_what_each_patch_does(lab: Lab) -> None:
    report = lab.finish(lab.submit("--mbox", str(WALKED), "--target", "xfs-fsync@tiny", "--blocks", "2", "--walk"))
    (target,) = report["targets"]
    comment, split, undeclared, removed, fewer = target["ladder"]["rungs"]
    assert (comment["state"], comment["verdict"]) == ("identical", "equivalent")
    assert (split["state"], split["verdict"]) == ("measured", "equivalent")
    assert (undeclared["state"], undeclared["verdict"]) == ("not_built", "failed")
    assert "wq_test_undeclared" in undeclared["failure"]["excerpt"]
    assert (removed["state"], removed["reference"]) == ("identical", 2)
    assert (fewer["verdict"], fewer["reference"]) == ("improvement", 4)
    assert target["verdict"] == "improvement"
    assert target["ladder"]["boots_per_block"] == 3, "the base, the split, and the whole series"
    assert "patch 3 does not build alone" in target["ladder"]["sentence"]
