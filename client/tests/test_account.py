"""`wqlab login` and `wqlab config`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import TOKEN, Wqlab
from fakelab import FakeLab, problem

from wqlab_client.config import resolve
from wqlab_contracts.api.base import Page
from wqlab_contracts.api.submissions import SubmissionSummary


def test_login_checks_and_stores_the_token(
    wqlab: Wqlab, lab: FakeLab, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    lab.serve("/submissions", Page[SubmissionSummary](items=[], total=0))
    monkeypatch.delenv("WQLAB_URL")
    monkeypatch.delenv("WQLAB_TOKEN")
    monkeypatch.setattr("sys.stdin", io.StringIO("wql_secret_from_stdin\n"))
    ended = wqlab("login", lab.url, "--token-stdin", "--tree", "linux-6.12")
    path = home / ".config/wqlab/config.toml"
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == f"logged in to {lab.url}; stored in {path}\n"
    assert lab.requests[0].headers["authorization"] == "Bearer wql_secret_from_stdin"
    assert resolve({"HOME": str(home)}).token.value == "wql_secret_from_stdin"  # type: ignore[union-attr]
    ended = wqlab("config")
    assert ended.out == (
        f"KEY    VALUE{' ' * (len(lab.url) - 5)}  FROM\n"
        f"url    {lab.url}  {path}\n"
        f"token  {'wql_se...':{len(lab.url)}}  {path}\n"
        f"tree   {'linux-6.12':{len(lab.url)}}  {path}\n"
    )
    assert wqlab("list").code == 0


def test_refused_token_is_not_stored(wqlab: Wqlab, lab: FakeLab, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    lab.answers[("GET", "/api/v1/submissions")] = problem(401, "unknown token")
    monkeypatch.setattr("sys.stdin", io.StringIO("wrong\n"))
    ended = wqlab("login", lab.url, "--token-stdin")
    assert ended.code == 2
    assert ended.err.startswith("wqlab: error: list submissions: unknown token\n")
    assert not (home / ".config").exists()


def test_config_hides_the_token(wqlab: Wqlab, lab: FakeLab) -> None:
    found = json.loads(wqlab("config", "--json").out)
    assert found["url"] == {"value": lab.url, "origin": "WQLAB_URL"}
    assert TOKEN not in json.dumps(found)
