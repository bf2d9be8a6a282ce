"""A watched list and a watched tree for tests of their pages.

The list is a real public-inbox archive on loopback, which the worker's own code reads when a test says so.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from publicinbox import PublicInbox
from sqlalchemy import select
from thread_mails import mail

from server.tests.support.end_job import end_job
from server.tests.support.live_server import Live, expect
from server.tests.support.scene import Scene
from server.tests.support.watches import add_watch
from wqlab_contracts.enums import JobKind, JobState, Outcome, Verdict, WatchedHeadState
from wqlab_contracts.messages import CommitRange, Failure
from wqlab_contracts.messages.list_mails import ListMails
from wqlab_contracts.messages.list_reads import ListReadJob, ListReadResult
from wqlab_contracts.specs import ListWatch
from wqlab_server.intake import watches
from wqlab_server.models import Job, Watch, WatchedHead, WatchedList
from wqlab_server.orders import orders
from wqlab_server.pipeline.watch_lists import watch_lists
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, clock, transaction
from wqlab_server.tick.run_sources import admit_orders, place_orders
from wqlab_worker.intake.read_list import read_for_preview, read_list
from wqlab_worker.workspace import Workspace

LATER = datetime.now(UTC) + timedelta(hours=6)
"""Begin of the quiet hours of LIST: never the time at which the tests run."""
LIST: dict[str, Any] = {
    "kind": "list", "name": "workqueue", "summary": "workqueue series that ask", "archive": "loopback", "tree": "t",
    "owner": "submit",
    "paths": ["kernel/workqueue.c", "include/linux/workqueue.h", "fs/xfs/"], "targets": ["flush@tiny"],
    "quiet_hours": [{"begins": f"{LATER:%H:%M}", "ends": f"{LATER + timedelta(minutes=30):%H:%M}"}],
}  # fmt: skip
TREE: dict[str, Any] = {
    "kind": "tree", "name": "workqueue-next", "summary": "what is queued for the next release", "tree": "t",
    "branches": ["for-next", "for-6.12-fixes"], "tags": ["v6.12.*"], "targets": ["flush@tiny"], "owner": "submit",
    "batch": "range", "parameters": {"jobs": 8}, "blocks": 4,
}  # fmt: skip
LONG = "workqueue: wake up no more workers than there are works, and " + "count_how_often_that_happened_" * 4


class Lists:
    """What the lab's worker and tick do for lists, when a test says so."""

    def __init__(self, sessions: SessionFactory, settings: Settings, app: FastAPI, cache: Path) -> None:
        self.sessions, self.settings, self.data = sessions, settings, app.state.data
        self.workspace = Workspace(cache)

    def read(self) -> int:
        """Read the lists that somebody has asked for, as the worker does; return their number."""
        with transaction(self.sessions) as session:
            reads = Job.kind.in_([JobKind.READ_LIST, JobKind.PREVIEW_WATCH])
            numbers = session.scalars(select(Job.id).where(reads, Job.state != JobState.FINISHED)).all()
        for number in numbers:
            end_job(self.sessions, self.settings, self.data, number, self._read)
        return len(numbers)

    def _read(self, job: ListReadJob) -> ListReadResult:
        return ListReadResult(outcome=Outcome.PASSED, found=self._found(job))

    def _found(self, job: ListReadJob) -> ListMails:
        reads = read_for_preview if job.heads_only else read_list
        # In a thread of its own: the worker's code runs an event loop, and Playwright's is in this one.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(reads, job.source, self.workspace, limit=job.limit).result()

    def decide(self) -> None:
        """Read all mails of the watched lists, and decide on their series."""
        with transaction(self.sessions) as session:
            for row in session.scalars(select(WatchedList)):
                row.next_read_at = clock(session)
        for _ in range(2):
            watch_lists(self.sessions, self.settings, self.data.current())
            self.read()
        for step in (watch_lists, place_orders, admit_orders):
            step(self.sessions, self.settings, self.data.current())


def arrive(
    inbox: PublicInbox, name: str, *, asks: bool = False, title: str = "workqueue: lock less", later_s: int = 0
) -> None:
    """Deliver a cover letter and a patch. The archive's time of a mail is that of its Received header."""
    cover = f"{name}-0@x"
    body = f"Why.\n\n{'wqlab: test' if asks else ''}\n"
    for text in (
        mail(f"[PATCH 0/1] {title}", cover, body=body),
        mail(f"[PATCH 1/1] {title}: in one place", f"{name}-1@x", to=cover),
    ):
        at = datetime.now(UTC) + timedelta(seconds=later_s)
        received = f"Received: from a.example.org by b.example.org; {format_datetime(at)}\nFrom: "
        inbox.receive(text.replace("From: ", received, 1))


def fill(scene: Scene, sessions: SessionFactory, live: Live, inbox: PublicInbox, lists: Lists) -> None:
    """Make watches, decisions and heads in every state, with texts that are too long for one line."""
    scene.devices()
    with live.client() as client:
        everything = LIST | {
            "name": "later", "summary": LONG[:200], "only_if_asked": False, "quiet_hours": [],
            "subjects": ["workqueue", LONG[:90]], "authors": ["@example.org", f"{'ada.' * 12}lovelace@example.org"],
        }  # fmt: skip
        for watch in (LIST, everything, TREE, TREE | {"name": "stable", "branches": [], "summary": ""}):
            expect(client.post("/api/v1/watches", json=watch), 201)
        expect(client.post(f"/api/v1/watches/{TREE['name']}/enable"))
        arrive(inbox, "asks", asks=True, title=f"{LONG} (asks)")
        arrive(inbox, "unasked")
        for name in ("workqueue", "later"):
            expect(client.get(f"/api/v1/watches/{name}/preview?wait_s=0"))
        assert lists.read() == 2
        expect(client.post("/api/v1/watches/workqueue/enable"))
        for number, asks in enumerate((True, True, False)):
            title = f"{LONG if number else 'workqueue: less'} {number}"
            arrive(inbox, f"later{number}", asks=asks, title=title, later_s=60)
        lists.decide()
    with transaction(sessions) as session:
        spec = ListWatch.model_validate(LIST | {"name": "from-file", "enabled": True, "owner": "nobody"})
        add_watch(session, spec, from_file=True, created_by="operator", changed_by="operator")
        watched = session.get_one(WatchedList, "loopback")
        watched.failing_since = clock(session) - timedelta(hours=5)
        watched.failure = Failure(
            kind="infrastructure", summary="loopback: the archive answered 503", advice="It is asked again."
        )
    write_heads(sessions, scene)


def write_heads(sessions: SessionFactory, scene: Scene) -> None:
    """Write heads of the watched tree in every state."""
    submissions = [scene.submission() for _ in range(3)]
    with transaction(sessions) as session:
        now = clock(session)
        tree = session.get_one(Watch, "workqueue-next")
        tree.looked_at = now
        heads: list[WatchedHead] = []
        for number, (ref, state, reason) in enumerate(
            (
                ("for-next", WatchedHeadState.START, "the first head that was seen"),
                ("for-next", WatchedHeadState.MEASURED, ""),
                ("for-next", WatchedHeadState.SKIPPED, "dddddddddddd was seen before it could be measured"),
                ("for-next", WatchedHeadState.MEASURED, "the branch was rewritten: 3 commits are not in its history"),
                ("v6.12.*", WatchedHeadState.FAILED, f"submission 3: the candidate does not build: {LONG}"),
                ("for-next", WatchedHeadState.RUNNING, ""),
                ("for-6.12-fixes", WatchedHeadState.WAITING, ""),
            )
        ):
            measured = state in {WatchedHeadState.MEASURED, WatchedHeadState.RUNNING, WatchedHeadState.FAILED}
            head = WatchedHead(
                watch=tree.name, ref=ref, name="v6.12.3" if "*" in ref else ref, commit=f"{number + 1:x}" * 40,
                state=state, reason=reason, seen_at=now - timedelta(hours=20 - number), devices={}, verdicts=[],
                parent_id=heads[0].id if measured and heads else None,
                submission_id=submissions[number % 3] if measured else None,
                related=CommitRange(ahead=12 * number, behind=3 if number == 3 else 0) if measured else None,
            )  # fmt: skip
            if state is WatchedHeadState.MEASURED:
                head.verdicts = [Verdict.REGRESSION, Verdict.EQUIVALENT]
                head.devices, head.ranged = {"flush@tiny": "tiny-1"}, number == 1
                head.cut = "flush@tiny was measured on tiny-2 instead of tiny-1" if number == 3 else ""
            session.add(head)
            session.flush()
            heads.append(head)
        heads[2].skipped_by_id = heads[3].id
        orders.place(session, watches.TREE_SOURCE, heads[-1].id, watch=tree.name)
        order = orders.find(session, watches.TREE_SOURCE, heads[-1].id)
        assert order is not None
        order.reason = "238 of 240 minutes of device time are used; some is left again later"
