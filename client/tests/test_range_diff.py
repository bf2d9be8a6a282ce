"""`wqlab range-diff`: what changed between the patches of two versions."""

from __future__ import annotations

import json

import pytest
from commandline import Wqlab
from fakelab import FakeLab, Reply

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


def test_patches_are_printed(wqlab: Wqlab) -> None:
    ended = wqlab("range-diff", "12", "17")
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0] == "1: ! 1: wq: take one lock"
    assert any("new" in line and line.startswith("    -+") for line in lines)
    assert "\x1b" not in ended.out


def test_json_has_the_patches(wqlab: Wqlab) -> None:
    found = json.loads(wqlab("range-diff", "12", "17", "--json").out)
    (pair,) = found["patches"]
    assert (pair["first"], pair["second"], pair["change"]) == (1, 1, "!")


def test_equal_versions_have_no_difference(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.answers[("GET", "/api/v1/submissions/17/series")] = lab.answers[("GET", "/api/v1/submissions/12/series")]
    assert wqlab("range-diff", "12", "17").out == "1: = 1: wq: take one lock\n"
