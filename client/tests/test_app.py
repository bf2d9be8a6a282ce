"""Errors that every command can end with."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from commandline import Wqlab

from wqlab_client.cli.commands import COMMANDS, load


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


LISTED = """
import json, sys
from wqlab_client.cli.commands import load
for name in sys.argv[1:]:
    load(name)
json.dump(sorted(sys.modules), sys.stdout)
"""
NUMERIC = {"numpy", "scipy", "wqlab_comparison", "wqlab_report"}
CONNECTION = {"httpx", "pydantic", "wqlab_contracts.messages", "wqlab_contracts.specs"}


@pytest.mark.parametrize(
    ("commands", "unneeded"),
    [
        ([], NUMERIC | CONNECTION),  # help, version and completion
        (sorted(COMMANDS), NUMERIC),
        (["list"], {"wqlab_contracts.api.report", "wqlab_contracts.api.webhooks", "yaml"}),
        (["submit"], {"wqlab_contracts.api.report", "wqlab_contracts.api.history"}),
    ],
    ids=lambda value: None if isinstance(value, set) else "all" if len(value) > 1 else "".join(value) or "none",
)
def test_commands_import_only_what_they_need(commands: list[str], unneeded: set[str]) -> None:
    """A start of `wqlab` is mostly imports."""
    words = [sys.executable, "-c", LISTED, *commands]
    loaded = set(json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout))
    assert {f"wqlab_client.cli.{COMMANDS[name][0]}" for name in commands} <= loaded
    assert not unneeded & loaded


@pytest.mark.parametrize("name", COMMANDS)
def test_help_lists_the_summary_of_the_command(name: str) -> None:
    summary = " ".join((load(name).help or "").split())
    assert summary.startswith(COMMANDS[name][1].removesuffix("."))


def test_unknown_command_gets_the_nearest_names(wqlab: Wqlab) -> None:
    ended = wqlab("lits")
    assert ended.code == 2 and "'list'" in ended.err
