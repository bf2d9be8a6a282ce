"""A real public-inbox is watched: the real worker reads it, and the series is applied up to `applied`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.submissions import SubmissionView
from wqlab_contracts.api.watches import WatchDecision, WatchPreview, WatchView
from wqlab_contracts.enums import DecisionReason, DecisionState, DeliveryKind, DeliveryState, JobKind, JobState, Outcome
from wqlab_server.intake.mailbox.check_signature import check_signature
from wqlab_server.models import Delivery, Job, ListReply, WatchedList
from wqlab_server.pipeline.advance import advance
from wqlab_server.pipeline.list_replies import handle
from wqlab_server.pipeline.watch_lists import watch_lists
from wqlab_server.storage.db import SessionFactory, transaction
from wqlab_server.tick.run_sources import admit_orders, place_orders
from wqlab_worker.claims import jobs
from wqlab_worker.settings import Settings as WorkerSettings

from ..pipeline.test_received_mail import lookup, reply
from ..support.live_server import Live, expect
from .test_real_worker import Kernel, PublicInbox, apply_series, inbox, kernel, worker

__all__ = ["inbox", "kernel", "worker"]

pytestmark = pytest.mark.integration
WATCH = {
    "kind": "list", "name": "wq", "archive": "ours", "tree": "t", "owner": "admin", "paths": ["kernel/workqueue.c"],
    "targets": ["flush@tiny"],
}  # fmt: skip


@pytest.fixture
def scene_data_dir(scene_data_dir: Path, inbox: PublicInbox, kernel: Kernel) -> Path:
    """The data folder of `scene`, with the toy kernel as its tree and the list on loopback."""
    (scene_data_dir / "kernels/trees.yaml").write_text(
        f"default: t\ntrees: [{{name: t, summary: s, url: {kernel.path}}}]\n"
    )
    (scene_data_dir / "intake/archives.yaml").write_text(
        "archives:\n"
        f"  - {{name: ours, summary: s, private: true, list: wq@lists.example.org, url: '{inbox.url}/{{message_id}}/',"
        f" search: '{inbox.url}/?x=m&t=1&q={{query}}', epochs: '{inbox.url}/{{epoch}}'}}\n"
    )
    return scene_data_dir


class Watcher:
    """The tick's part for lists, and the worker of the queue `lists`."""

    def __init__(self, live: Live, sessions: SessionFactory, worker: WorkerSettings) -> None:
        self.live, self.sessions, self.worker = live, sessions, worker

    def tick(self) -> None:
        settings, data = self.live.app.state.settings, self.live.app.state.data.current()
        for step in (watch_lists, place_orders, admit_orders):
            step(self.sessions, settings, data)

    def read(self) -> None:
        """Read whatever the list has, and decide on it."""
        with transaction(self.sessions) as session:
            for row in session.scalars(select(WatchedList)):
                row.next_read_at = row.since
        self.tick()
        self.work()
        self.tick()

    def work(self) -> None:
        with transaction(self.sessions) as session:
            reads = Job.kind.in_([JobKind.READ_LIST, JobKind.PREVIEW_WATCH])
            waiting = session.scalars(select(Job.id).where(reads, Job.state == JobState.QUEUED)).all()
        assert waiting, "no read is queued"
        for number in waiting:
            jobs.process(number, self.worker)


@pytest.fixture
def watcher(live: Live, sessions: SessionFactory, worker: WorkerSettings) -> Watcher:
    return Watcher(live, sessions, worker)


def asking(kernel: Kernel, version: int) -> list[str]:
    """Return the topic's mails; their cover letter asks for a measurement."""
    cover, *patches = kernel.mails(version)
    return [cover.replace("*** BLURB HERE ***", "wqlab: test"), *patches]


def view(client: httpx.Client) -> WatchView:
    return WatchView.model_validate_json(expect(client.get("/api/v1/watches/wq")).content)


def decisions(client: httpx.Client) -> list[WatchDecision]:
    answer = expect(client.get("/api/v1/watches/wq/decisions"))
    return Page[WatchDecision].model_validate_json(answer.content).items


def test_series_on_a_list_is_previewed_taken_and_applied(
    watcher: Watcher, client: httpx.Client, kernel: Kernel, inbox: PublicInbox
) -> None:
    kernel.git("switch", "--quiet", "-c", "topic")
    kernel.edit("512", "1024")
    kernel.commit("workqueue: raise max_active")
    first = asking(kernel, 1)
    for mail in first:
        inbox.receive(mail)
    expect(client.post("/api/v1/watches", json=WATCH), 201)

    # Before it is enabled, the watch shows what it would have taken.
    url = "/api/v1/watches/wq/preview"
    queued = WatchPreview.model_validate_json(expect(client.get(url, params={"days": 30, "wait_s": 0})).content)
    assert queued.state is JobState.QUEUED
    watcher.work()
    shown = WatchPreview.model_validate_json(expect(client.get(url, params={"days": 30, "wait_s": 20})).content)
    assert (shown.state, shown.outcome, shown.failure) == (JobState.FINISHED, Outcome.PASSED, None)
    assert shown.found is not None and shown.found.taken == 1 and shown.found.minutes > 0
    (series,) = shown.found.series
    assert (series.message_id, series.targets, series.taken) == ("v1-0@kernel.example", ["flush@tiny"], True)
    assert decisions(client) == []

    # Enabled, it takes what arrives from then on.
    expect(client.post("/api/v1/watches/wq/enable"))
    watcher.tick()
    watcher.read()
    assert decisions(client) == [] and view(client).mailing_list is not None
    kernel.edit("1024", "2048")
    kernel.git("commit", "--quiet", "--all", "--amend", "--no-edit")
    cover, patch = asking(kernel, 2)
    inbox.receive(patch)
    watcher.read()
    inbox.receive(cover)
    watcher.read()
    (decision,) = decisions(client)
    assert (decision.state, decision.revision, decision.reason) == (DecisionState.TAKEN, 2, None)
    assert decision.submission_id is not None
    apply_series(watcher.sessions, decision.submission_id, watcher.worker)
    advance(watcher.sessions, watcher.live.app.state.settings, decision.submission_id)
    answer = expect(client.get(f"/api/v1/submissions/{decision.submission_id}"))
    applied = SubmissionView.model_validate_json(answer.content)
    assert (applied.apply.outcome, applied.apply.failure) == (Outcome.PASSED, None)
    assert (applied.owner, applied.title, applied.version) == ("admin", "workqueue: more", 2)

    # Read again from the beginning, the same mails change nothing.
    with transaction(watcher.sessions) as session:
        for row in session.scalars(select(WatchedList)):
            row.epoch = row.commit = None
    watcher.read()
    assert [each.id for each in decisions(client)] == [decision.id]


def test_list_that_is_gone_is_shown_and_read_on_when_it_is_back(
    watcher: Watcher, client: httpx.Client, kernel: Kernel, inbox: PublicInbox
) -> None:
    expect(client.post("/api/v1/watches", json={**WATCH, "authors": ["@nobody.example"]}), 201)
    expect(client.post("/api/v1/watches/wq/enable"))
    kernel.git("switch", "--quiet", "-c", "topic")
    kernel.edit("512", "1024")
    kernel.commit("workqueue: raise max_active")
    watcher.tick()
    (inbox.folder / "wq/git/0.git").rename(inbox.folder / "moved")
    watcher.read()
    watched = view(client).mailing_list
    assert watched is not None and watched.failure is not None and watched.failure.kind == "infrastructure"
    assert "has no repository" in watched.failure.summary and "git ls-remote" in watched.failure.advice
    (inbox.folder / "moved").rename(inbox.folder / "wq/git/0.git")
    for mail in asking(kernel, 1):
        inbox.receive(mail)
    watcher.read()
    watched = view(client).mailing_list
    assert watched is not None and watched.failure is None and watched.mails == 2
    assert [each.reason for each in decisions(client)] == [DecisionReason.AUTHORS]


def test_reply_in_the_archive_commands_once(
    watcher: Watcher, client: httpx.Client, kernel: Kernel, inbox: PublicInbox
) -> None:
    """A signed reply goes through the real archive, and its signature still holds."""
    watch = {**WATCH, "commanders": ["ada@example.org"]}
    expect(client.post("/api/v1/watches", json=watch), 201)
    expect(client.post("/api/v1/watches/wq/enable"))
    watcher.tick()
    watcher.read()
    kernel.git("switch", "--quiet", "-c", "topic")
    kernel.edit("512", "1024")
    kernel.commit("workqueue: raise max_active")
    for mail in asking(kernel, 1):
        inbox.receive(mail)
    watcher.read()
    (decision,) = decisions(client)
    with transaction(watcher.sessions) as session:
        session.add(
            Delivery(
                key="k", kind=DeliveryKind.MAIL, event="reply", destination="ada@example.org",
                message_id="result@lab.example", submission_id=decision.submission_id, thread="v1-0@kernel.example",
                state=DeliveryState.DELIVERED,
            )
        )  # fmt: skip
    signed = reply("result@lab.example", "Thank you.\n\nwqlab: stop\n").decode().replace("\r\n", "\n")
    inbox.receive(f"Precedence: bulk\nMessage-ID: <stop@example.org>\n{signed}")
    inbox.receive(reply("else@example.org", "wqlab: stop\n").decode().replace("\r\n", "\n"))
    watcher.read()
    with transaction(watcher.sessions) as session:
        (number,) = session.scalars(select(ListReply.id)).all()
    state = watcher.live.app.state
    check = partial(check_signature, lookup=lookup)
    said = handle(watcher.sessions, state.settings, state.data.current(), number, check)
    assert said == f"done: submission {decision.submission_id} is canceled; no more mails about this revision"
    assert decision.submission_id is not None
    advance(watcher.sessions, state.settings, decision.submission_id)
    answer = expect(client.get(f"/api/v1/submissions/{decision.submission_id}"))
    assert SubmissionView.model_validate_json(answer.content).outcome is Outcome.CANCELED
