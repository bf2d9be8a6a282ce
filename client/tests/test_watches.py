"""`wqlab watches` against the real server, with a scripted worker that reads the list."""

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
from server.tests.support.lab import LabUnderTest, oid
from wqlab_contracts.enums import JobState, Outcome, Verdict
from wqlab_contracts.enums import WatchedHeadState as State
from wqlab_contracts.messages import CommitRange
from wqlab_contracts.messages.jobs import Claim
from wqlab_contracts.messages.list_mails import ListMail, ListMails
from wqlab_contracts.messages.list_reads import ListReadJob, ListReadResult
from wqlab_server.models import ListPreview, Watch, WatchedHead
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


def test_watch_of_a_list_from_preview_to_decision(ask: Wqlab, real_lab: LabUnderTest, file: str) -> None:
    added = ask("watches", "add", file)
    assert (added.code, added.out) == (0, "watch wq is added and disabled\n"), added.err
    assert "wqlab watches enable wq" in added.err
    with answering(real_lab, [*mails(), *mails("quiet", asks=False), *mails("other", paths=["fs/inode.c"])]):
        shown = ask("watches", "preview", "wq", "--days", "3")
    assert shown.code == 0, shown.err
    assert "In the last 3 days watch wq would have taken one series" in shown.out
    first, second = shown.out.splitlines()[2:4]
    assert "yes" in first and "workqueue: less" in first and "locks@single" in first
    assert "no" in second and "workqueue: quiet" in second and "wqlab: test" in second
    assert "not taken: not asked 1, paths 1" in shown.err

    assert ask("watches", "enable", "wq", "--yes").out == "watch wq is enabled\n"
    real_lab.tick()
    watched = List(real_lab)
    watched.arrive(*mails())
    listed = ask("watches", "list").out
    assert "kernel/workqueue.c; if asked" in listed and "read 20" in listed
    shown = ask("watches", "show", "wq")
    assert "watch wq (enabled)" in shown.out and "measures: locks@single; tree lab-tree" in shown.out
    assert "3 mails read, 0 of series that are not complete" in shown.out
    assert "taken" in shown.out.splitlines()[-1] and "locks@single" in shown.out.splitlines()[-1]
    decisions = json.loads(ask("watches", "show", "wq", "--json", "--state", "taken").out)["decisions"]
    assert [each["submission_id"] for each in decisions["items"]] == [1]
    assert "no state 'running'; there are: waiting, taken" in ask("watches", "show", "wq", "--state", "running").err

    assert ask("watches", "disable", "wq").out == "watch wq is disabled\n"
    assert ask("watches", "remove", "wq").out == "watch wq is removed\n"
    assert ask("watches", "list").err == "no watches; an administrator adds one with `wqlab watches add FILE`\n"


def test_enabling_the_watch_of_a_list_shows_the_preview_and_asks(ask: Wqlab, real_lab: LabUnderTest, file: str) -> None:
    ask("watches", "add", file)
    with answering(real_lab, mails()):
        ended = ask("watches", "enable", "wq")
    assert ended.code == 2 and "would have taken one series" in ended.out
    assert "there is no terminal to ask on" in ended.err
    assert "disabled" in ask("watches", "list").out


def test_watch_is_replaced_and_stays_enabled(ask: Wqlab, file: str) -> None:
    ask("watches", "add", file)
    ask("watches", "enable", "wq", "--yes")
    assert ask("watches", "add", file).code == 2
    Path(file).write_text(LIST.replace("flushes", "all flushes"))
    assert ask("watches", "add", "--replace", file).out == "watch wq is changed and enabled\n"
    assert "all flushes" in ask("watches", "show", "wq").out


def test_watch_of_a_tree_from_add_to_remove(ask: Wqlab, real_lab: LabUnderTest, tmp_path: Path) -> None:
    file = tmp_path / "next.yaml"
    file.write_text(f"{TREE}batch: range\nevery_minutes: 30\n")
    assert ask("watches", "add", str(file)).out == "watch next is added and disabled\n"
    refused = ask("watches", "check", "next")
    assert refused.code == 2 and "is disabled" in refused.err
    assert ask("watches", "enable", "next").out == "watch next is enabled\n", "it has no preview"
    real_lab.submit("locks@device")
    with real_lab.transaction() as session:
        for number, state in enumerate((State.START, State.SKIPPED, State.MEASURED), start=1):
            session.add(
                WatchedHead(
                    id=number, watch="next", ref="for-next", name="for-next", commit=oid(f"{number}"), state=state,
                    seen_at=clock(session), reason="seen too late" if state is State.SKIPPED else "",
                )
            )  # fmt: skip
        session.flush()
        session.get_one(WatchedHead, 2).skipped_by_id = 3
        head = session.get_one(WatchedHead, 3)
        head.parent_id, head.submission_id, head.ranged = 1, 1, True
        head.verdicts, head.cut, head.related = [Verdict.REGRESSION], "other device", CommitRange(ahead=7, behind=0)
        session.get_one(Watch, "next").problem = "no answer"
    listed = ask("watches", "list")
    assert "1 start, 1 measured, 1 skipped" in listed.out
    assert "next: the last look failed: no answer" in listed.err
    shown = ask("watches", "show", "next").out
    assert f"{oid('3')[:12]}: measured against {oid('1')[:12]} in submission 1 (7 commits): regression" in shown
    assert f"to bisect: {oid('1')[:12]}..{oid('3')[:12]}, 7 commits; heads between: {oid('2')[:12]}" in shown
    assert "history is cut: other device" in shown and "seen too late" in shown
    assert "batch range" in shown and "every 30 minutes" in shown
    skipped = json.loads(ask("watches", "show", "next", "--json", "--state", "skipped").out)["heads"]["items"]
    assert [each["id"] for each in skipped] == [2]
    assert "looked at now" in ask("watches", "check", "next").out
    assert ask("watches", "remove", "next").out == "watch next is removed\n"
    assert ask("watches", "show", "next").code == 2
    assert ask("watches", "add", str(file)).code == 0, "it can be added again, and its heads are still known"
    assert "in submission 1" in ask("watches", "show", "next").out


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
