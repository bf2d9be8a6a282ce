"""`wqlab watches` against the real server."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import Wqlab
from server_fixtures import *  # noqa: F403 - fixtures

from server.tests.intake.test_watched_lists import data_dir as list_data_dir
from server.tests.support.lab import LabUnderTest
from wqlab_server.models import Watch
from wqlab_server.storage.db import clock

pytestmark = pytest.mark.integration
data_dir = list_data_dir
LIST = """\
kind: list
name: wq
summary: flushes
archive: lore
paths: [kernel/workqueue.c]
targets: [locks@single]
tree: lab-tree
owner: dev
"""
TREE = """\
kind: tree
name: next
tree: lab-tree
branches: [for-next]
targets: [locks@device]
owner: dev
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "wq.yaml"
    path.write_text(LIST)
    return str(path)


def test_watch_is_added_replaced_and_removed(ask: Wqlab, real_lab: LabUnderTest, file: str) -> None:
    added = ask("watches", "add", file)
    assert (added.code, added.out) == (0, "watch wq is added and disabled\n"), added.err
    assert added.err.rstrip().endswith("/watches/wq")
    assert ask("watches", "add", file).code == 2, "it is there already"
    with real_lab.transaction() as session:
        session.get_one(Watch, "wq").enabled_at = clock(session)
    Path(file).write_text(LIST.replace("flushes", "all flushes"))
    assert ask("watches", "add", "--replace", file).out == "watch wq is changed and enabled\n"
    with real_lab.transaction() as session:
        assert session.get_one(Watch, "wq").spec.summary == "all flushes"
    assert ask("watches", "remove", "wq").out == "watch wq is removed\n"


@pytest.mark.parametrize(
    ("text", "change", "message"),
    [
        (LIST, ("kind: list\n", ""), "wq.yaml:1: kind: must be list or tree"),
        (LIST, ("paths:", "path:"), "wq.yaml:5: path: unknown field; did you mean paths?"),
        (LIST, ("owner: dev", "owner: nobody"), "no account 'nobody'"),
        (LIST, ("archive: lore", "archive: lkml"), "no archive 'lkml'; there are: lore"),
        (LIST, ("locks@single", "locks@nothing"), "no device type 'nothing'"),
        (TREE, ("branches", "branch"), "wq.yaml:4: branch: unknown field; did you mean branches?"),
        (TREE, ("tree: lab-tree", "tree: linus"), "no tree 'linus'; there are: lab-tree"),
        (TREE, ("locks@", "nothing@"), "no plan 'nothing'"),
    ],
)
def test_mistakes_are_told(ask: Wqlab, file: str, text: str, change: tuple[str, str], message: str) -> None:
    Path(file).write_text(text.replace(*change))
    ended = ask("watches", "add", file)
    assert ended.code == 2 and message in ended.err
