"""`wqlab range-diff`: what changed between two versions, with their figures."""

from __future__ import annotations

import json

import pytest
from commandline import Wqlab
from compared_sides import comparison
from fakelab import FakeLab, Reply, problem

MBOX = """\
From 1 Mon Sep 17 00:00:00 2001
From: Ada <ada@example.org>
Subject: [PATCH] wq: take one lock

Because.
---
diff --git a/a.c b/a.c
--- a/a.c
+++ b/a.c
@@ -1,2 +1,2 @@ int one(void)
 {
-\told
+\tnew \x1b[31m
"""


@pytest.fixture(autouse=True)
def versions(lab: FakeLab) -> None:
    for number, text in ((12, MBOX), (17, MBOX.replace("new", "newer").replace("@@ -1,2 +1,2", "@@ -9,2 +9,2"))):
        lab.answers[("GET", f"/api/v1/submissions/{number}/series")] = lambda _, text=text: Reply(body=text.encode())
    lab.serve("/compare", comparison(None))


def test_patches_and_figures_are_printed(wqlab: Wqlab) -> None:
    ended = wqlab("range-diff", "12", "17")
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0] == "1: ! 1: wq: take one lock"
    assert any("new" in line and line.startswith("    -+") for line in lines)
    assert "\x1b" not in ended.out
    assert "-2 locks [-3, -1]; a difference beyond noise" in ended.out


def test_versions_without_common_figures_have_their_patches_compared(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.answers[("GET", "/api/v1/compare")] = problem(422, "no figure was measured on both sides")
    ended = wqlab("range-diff", "12", "17")
    assert ended.code == 0
    assert ended.out.startswith("1: ! 1: wq: take one lock")
    assert "no figure was measured on both sides" in ended.err


def test_json_has_the_patches_and_the_comparison(wqlab: Wqlab) -> None:
    found = json.loads(wqlab("range-diff", "12", "17", "--json").out)
    (pair,) = found["patches"]
    assert (pair["first"], pair["second"], pair["change"]) == (1, 1, "!")
    assert found["comparison"]["figures"][0]["metric"] == "locks"


def test_equal_versions_have_no_difference(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.answers[("GET", "/api/v1/submissions/17/series")] = lab.answers[("GET", "/api/v1/submissions/12/series")]
    assert wqlab("range-diff", "12", "17").out.startswith("1: = 1: wq: take one lock\n\n")
