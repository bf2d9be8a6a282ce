"""Mailboxes that would keep the parser busy are refused before it reads them."""

from __future__ import annotations

import tracemalloc

import pytest

from wqlab_contracts.mails.inspection import inspect
from wqlab_contracts.mails.mbox import LINE_LIMIT, header_problem, parse_first_headers
from wqlab_contracts.messages import MboxSeries, Series
from wqlab_server.submissions.walk import patch_count

SIZE = 19_000_000
FROM = "From 0123 Mon Sep 17 00:00:00 2001\n"
FIRST = f"{FROM}From: Ada <ada@example.org>\nSubject: [PATCH] x\n"
PATCH = "\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n"
PARTS = 'Content-Type: multipart/mixed; boundary="b"\n\n--b\n'
FOLDED_PARTS = PARTS.replace(": ", ":\n ", 1)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(FIRST + "a:b\n" * (SIZE // 4) + PATCH, id="headers of one mail"),
        pytest.param(FIRST + "X: y\n" + " z\n" * (SIZE // 3) + PATCH, id="continued header"),
        pytest.param((FIRST + "a:b\n" * 2300 + PATCH) * 1900, id="headers of many mails"),
        pytest.param(FIRST + PARTS + "a:b\n" * (SIZE // 4) + PATCH, id="headers of a MIME part"),
        pytest.param(FIRST + FOLDED_PARTS + "a:b\n" * (SIZE // 4) + PATCH, id="folded type"),
        pytest.param(FIRST + PARTS + "\n" + "x\n" * (SIZE // 2) + PATCH, id="lines of a MIME part"),
        pytest.param("Subject: x\n" + "a:b\n" * (SIZE // 4) + PATCH, id="no From line"),
    ],
)
def test_no_mailbox_keeps_the_parser_busy(text: str) -> None:
    assert len(text) <= 20_000_000
    tracemalloc.start()
    try:
        problem = header_problem(text)
        assert problem is not None and f"at most {LINE_LIMIT} are read" in problem
        assert patch_count(Series(mbox=MboxSeries(text=text)), inspect) is None
        assert parse_first_headers(text) is not None
        assert not inspect(text).usable
        assert tracemalloc.get_traced_memory()[1] < 150_000_000
    finally:
        tracemalloc.stop()


def test_large_mailboxes_of_the_usual_form_are_read() -> None:
    header = "".join(f"X-Received-{number}: {'x' * 40}\n" for number in range(90))
    text = (FIRST + header + PATCH) * 1900
    assert header_problem(text) is None
    one_large_patch = FIRST + PATCH + "+x\n" * 3_000_000
    assert header_problem(one_large_patch) is None
    assert patch_count(Series(mbox=MboxSeries(text=one_large_patch)), inspect) == 1
