"""Errors that every command can end with."""

from __future__ import annotations

import pytest
from commandline import Wqlab


def test_missing_server_is_a_usage_error(wqlab: Wqlab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WQLAB_URL")
    ended = wqlab("list")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(
        "wqlab: error: no lab is configured\n  pass --url, set WQLAB_URL, or run `wqlab login URL`"
    )


def test_unreachable_lab_exits_with_infrastructure(wqlab: Wqlab) -> None:
    ended = wqlab("--url", "http://127.0.0.1:9", "--token", "t", "list")
    assert (ended.code, ended.out) == (4, "")
    last = ended.err.splitlines()[-2:]
    assert last[0].startswith("wqlab: error: list submissions: cannot reach http://127.0.0.1:9 (")
    assert last[1] == "  check the URL and the network, and that the lab is up"
