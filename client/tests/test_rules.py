"""`wqlab rule` against the real server, with a scripted worker that reads the list."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commandline import Wqlab
from server_fixtures import *  # noqa: F403 - fixtures
from sqlalchemy import select

from server.tests.intake.test_watched_lists import List, mails
from server.tests.intake.test_watched_lists import data_dir as list_data_dir
from server.tests.support.lab import LabUnderTest
from wqlab_contracts.enums import JobState, Outcome
from wqlab_contracts.messages.jobs import Claim
from wqlab_contracts.messages.list_mails import ListMail, ListMails
from wqlab_contracts.messages.list_reads import ListReadJob, ListReadResult
from wqlab_server.models import ListPreview

pytestmark = pytest.mark.integration
data_dir = list_data_dir
RULE = """\
name: wq
summary: flushes
archive: lore
paths: [kernel/workqueue.c]
targets: [locks@single]
tree: lab-tree
owner: dev
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "wq.yaml"
    path.write_text(RULE)
    return str(path)


@contextmanager
def answering(lab: LabUnderTest, found: list[ListMail]) -> Iterator[None]:
    """Let a worker answer the next preview."""
    ended = threading.Event()

    def answer() -> None:
        while not ended.wait(0.1):
            with lab.transaction() as session:
                number = session.scalar(select(ListPreview.id).where(ListPreview.state == JobState.QUEUED))
            if number is not None:
                claim = Claim.model_validate(lab.worker.claim(number))
                assert isinstance(claim.job, ListReadJob) and claim.job.heads_only
                result = ListReadResult(outcome=Outcome.PASSED, found=ListMails(position=None, mails=found))
                List(lab).finish(number, claim.fence, result)
                return

    thread = threading.Thread(target=answer)
    thread.start()
    yield
    ended.set()
    thread.join()


def test_rule_from_preview_to_decision(ask: Wqlab, real_lab: LabUnderTest, file: str) -> None:
    added = ask("rule", "add", file)
    assert (added.code, added.out) == (0, "rule wq is added and switched off\n")
    assert "wqlab rule on wq" in added.err
    with answering(real_lab, [*mails(), *mails("quiet", asks=False), *mails("other", paths=["fs/inode.c"])]):
        shown = ask("rule", "preview", "wq", "--days", "3")
    assert shown.code == 0, shown.err
    assert "In the last 3 days rule wq would have taken one series" in shown.out
    first, second = shown.out.splitlines()[2:4]
    assert "yes" in first and "workqueue: less" in first and "locks@single" in first
    assert "no" in second and "workqueue: quiet" in second and "wqlab: test" in second
    assert "not taken: not asked 1, paths 1" in shown.err

    assert ask("rule", "on", "wq", "--yes").out == "rule wq is switched on\n"
    real_lab.tick()
    watched = List(real_lab)
    watched.arrive(*mails())
    listed = ask("rule", "list").out
    assert "kernel/workqueue.c; if asked" in listed and "read 20" in listed
    shown = ask("rule", "show", "wq")
    assert "rule wq (on)" in shown.out and "measures: locks@single; tree lab-tree" in shown.out
    assert "3 mails read, 0 of series that are not complete" in shown.out
    assert "taken" in shown.out.splitlines()[-1] and "locks@single" in shown.out.splitlines()[-1]
    decisions = json.loads(ask("rule", "show", "wq", "--json").out)["decisions"]
    assert [each["submission_id"] for each in decisions["items"]] == [1]

    assert ask("rule", "off", "wq").out == "rule wq is switched off\n"
    assert ask("rule", "remove", "wq").out == "rule wq is removed\n"
    assert ask("rule", "list").err == "no rules; add one with `wqlab rule add FILE`\n"


def test_switching_on_shows_the_preview_and_asks(ask: Wqlab, real_lab: LabUnderTest, file: str) -> None:
    ask("rule", "add", file)
    with answering(real_lab, mails()):
        ended = ask("rule", "on", "wq")
    assert ended.code == 2 and "would have taken one series" in ended.out
    assert "there is no terminal to ask on" in ended.err
    assert "off" in ask("rule", "list").out


def test_rule_is_replaced_and_keeps_its_switch(ask: Wqlab, file: str) -> None:
    ask("rule", "add", file)
    ask("rule", "on", "wq", "--yes")
    assert ask("rule", "add", file).code == 2
    Path(file).write_text(RULE.replace("flushes", "all flushes"))
    assert ask("rule", "add", "--replace", file).out == "rule wq is changed and switched on\n"
    assert "all flushes" in ask("rule", "show", "wq").out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("paths:", "path:"), "wq.yaml:4: path: unknown field; did you mean paths?"),
        (("owner: dev", "owner: nobody"), "no account 'nobody'"),
        (("archive: lore", "archive: lkml"), "no archive 'lkml'; there are: lore"),
        (("tree: lab-tree", "tree: linus"), "no tree 'linus'; there are: lab-tree"),
        (("locks@single", "locks@nothing"), "no device type 'nothing'"),
    ],
)
def test_mistakes_are_told(ask: Wqlab, file: str, change: tuple[str, str], message: str) -> None:
    Path(file).write_text(RULE.replace(*change))
    ended = ask("rule", "add", file)
    assert ended.code == 2 and message in ended.err
