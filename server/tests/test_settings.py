"""Settings of the server processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from wqlab_server.settings import Settings


def make(**changes: Any) -> Settings:
    fields: dict[str, Any] = {
        "database_url": "postgresql+psycopg:///", "broker_url": "memory://", "data_dir": Path(), "artifact_dir": Path(),
    }  # fmt: skip
    return Settings(**fields | changes)


def test_broker_url_for_remote_labs_must_use_tls() -> None:
    assert make(lab_broker_url="rediss://host:6380/0").lab_broker_url == "rediss://host:6380/0"
    with pytest.raises(ValidationError, match="redis:// is not encrypted"):
        make(lab_broker_url="redis://host:6379/0")


def test_https_follows_from_the_public_url() -> None:
    assert make(public_url="https://lab.example.org").https
    assert not make(public_url="http://lab.example.org").https


def test_local_git_paths_are_split_at_colons() -> None:
    assert make(local_git_paths="/srv/a.git::/srv/b.git").local_git_path_list == ["/srv/a.git", "/srv/b.git"]


def test_private_webhook_hosts_are_split_at_commas() -> None:
    found = make(private_webhook_hosts="Hook.Lab.example, 127.0.0.1:9000,[::1]:80,,").private_webhook_host_set
    assert found == {"hook.lab.example", "127.0.0.1:9000", "[::1]:80"}
    assert make().private_webhook_host_set == frozenset()


@pytest.mark.parametrize("wrong", ["http://hook.example", "a b", "host:0", "host:port", "::1"])
def test_an_entry_that_is_no_host_is_named(wrong: str) -> None:
    with pytest.raises(ValidationError, match="is not a host"):
        make(private_webhook_hosts=f"good.example,{wrong}")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"mail_operator": "Ada <ada@lab.example>"}, ""),
        ({"mail_operator": "ada@lab.example"}, ""),
        ({"mail_operator": "Ada"}, "has no mail address"),
        ({"mail_regressions_to": "lkml@example.org, regressions@example.org"}, ""),
        ({"mail_regressions_to": "lkml@example.org, everybody"}, "is not a mail address"),
    ],
)
def test_settings_of_regression_letters_are_addresses(changes: dict[str, str], problem: str) -> None:
    if not problem:
        assert make(**changes)
        return
    with pytest.raises(ValidationError, match=problem):
        make(**changes)
