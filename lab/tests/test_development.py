"""Reload on change."""

from __future__ import annotations

import shlex
from pathlib import Path

from wqlab_lab.development import reloading
from wqlab_lab.services import Service


def service(name: str) -> Service:
    return Service(name, ["program", "--option", "two words"], {}, Path("/"))


def test_programs_with_own_code_restart_when_it_changes() -> None:
    (server,) = reloading([service("server")])
    assert "watchfiles" in server.command
    assert shlex.split(server.command[-4]) == ["program", "--option", "two words"]
    assert [Path(folder).name for folder in server.command[-3:]] == ["contracts", "comparison", "server"]
    assert all(Path(folder).is_dir() for folder in server.command[-3:])


def test_api_gets_the_folders_that_it_reloads_from() -> None:
    (api,) = reloading([service("api")])
    assert api.command[:3] == ["program", "--option", "two words"]
    assert [Path(folder).name for folder in api.command[4::2]] == ["contracts", "comparison", "server"]
    assert set(api.command[3::2]) == {"--reload"}


def test_programs_of_others_are_left_alone() -> None:
    assert reloading([service("coordinator")]) == [service("coordinator")]
