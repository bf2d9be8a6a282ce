"""`wqlab login`, `wqlab config` and `wqlab quota`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from commandline import TOKEN, Wqlab
from fakelab import FakeLab, problem

from wqlab_client.config import resolve
from wqlab_contracts.api.base import Page
from wqlab_contracts.api.quotes import Quota, QuotaName
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


def test_quota_shows_what_is_left(wqlab: Wqlab, lab: FakeLab) -> None:
    quotas = [
        Quota(name=QuotaName.SUBMISSIONS_WAITING, limit=20, used=3, left=17),
        Quota(
            name=QuotaName.DEVICE_MINUTES, limit=1440, used=1500, left=0,
            available_at=datetime.now(UTC) + timedelta(hours=3, minutes=1),
        ),
    ]  # fmt: skip
    lab.serve("/quota", quotas)
    assert wqlab("quota").out.splitlines() == [
        "QUOTA                   USED  LEFT  LIMIT  AVAILABLE AGAIN",
        "unfinished submissions  3     17    20",
        "device minutes in 24 h  1500  0     1440   in 3 h",
    ]
    assert [Quota.model_validate(each) for each in json.loads(wqlab("quota", "--json").out)] == quotas
    lab.serve("/quota", [])
    assert wqlab("quota").err == "you have no quotas\n"
