"""Series that are walked patch by patch on a small emulated device. In one, a patch changes no byte and one does not
build; in the other, a patch regresses and a later one repairs."""

from __future__ import annotations

import pytest

from .conftest import SERIES, Lab

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]

WALKED = SERIES / "breaks-and-repairs.mbox"
"""A comment, a function split in two, a variable that nobody declares, its removal, and fewer locks."""
REPAIRED = SERIES / "regresses-and-repairs.mbox"
"""A function split in two, a comment, more locks, a comment, and the locks as before."""


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


def test_ladder_shows_a_regression_that_a_later_patch_repairs(lab: Lab) -> None:
    report = lab.finish(
        lab.submit("--mbox", str(REPAIRED), "--target", "xfs-fsync@tiny", "--blocks", "2", "--walk"), codes=(0, 1)
    )
    (target,) = report["targets"]
    split, comment, twice, other_comment, once = target["ladder"]["rungs"]
    assert [each["verdict"] for each in (split, comment, twice, other_comment, once)] == [
        "equivalent", "equivalent", "regression", "equivalent", "improvement",
    ]  # fmt: skip
    assert [each["state"] for each in (comment, other_comment)] == ["identical", "identical"]
    assert target["verdict"] == "equivalent", "the whole series changes no count"
    assert target["ladder"]["boots_per_block"] == 3, "the base, the split and the third patch"
    assert "patch 3" in target["ladder"]["sentence"] and "patch 5" in target["ladder"]["sentence"]
