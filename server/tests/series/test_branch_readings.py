"""Readings of branches, from the request to a worker's result, and the targets that are proposed from them."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from wqlab_contracts.api.series import BranchInspection
from wqlab_contracts.api.touches import Touches
from wqlab_contracts.celery_names import APPLY_QUEUE, JOB
from wqlab_contracts.enums import ErrorKind, JobState, Outcome, Scope
from wqlab_contracts.mails.inspection import inspect
from wqlab_contracts.messages import Failure, protocol
from wqlab_contracts.messages.branch_readings import BranchReadingJob, BranchReadingResult
from wqlab_contracts.messages.jobs import Claim, FinishJob
from wqlab_server.jobs.inspected_branches import PROPOSAL_TIME
from wqlab_server.jobs.lookups import CACHE_TIME, MAX_UNFINISHED
from wqlab_server.models import BranchReading
from wqlab_server.series.branch_readings import BranchReadingKind
from wqlab_server.settings import Settings
from wqlab_server.storage.db import Message, SessionFactory, make_factory, transaction
from wqlab_server.tick.tick import tick

from ..support.live_server import Live
from ..support.scene import MBOX

pytestmark = pytest.mark.integration
URL = "/api/v1/git/branches/inspection"
BRANCH = {"url": "https://git.example.org/linux.git", "ref": "wq/faster"}
READ = BranchReadingResult(outcome=Outcome.PASSED, base="a" * 40, commit="b" * 40, inspection=inspect(MBOX))


def ask(client: httpx.Client, **more: Any) -> BranchInspection:
    answer = client.get(URL, params={**BRANCH, "wait_s": 0, **more})
    assert answer.status_code == 200, answer.text
    return BranchInspection.model_validate_json(answer.content)


def readings(sessions: SessionFactory) -> list[BranchReading]:
    with sessions() as session:
        return list(session.scalars(select(BranchReading).order_by(BranchReading.id)))


def age(sessions: SessionFactory, column: str, by: timedelta) -> None:
    with transaction(sessions) as session:
        for row in session.scalars(select(BranchReading)):
            setattr(row, column, getattr(row, column) - by)


class Worker:
    def __init__(self, live: Live) -> None:
        self.http = live.client(Scope.WORKER)
        self.http.headers.update(protocol.headers())

    def post(self, number: int, action: str, body: str) -> httpx.Response:
        headers = {"Content-Type": "application/json"}
        return self.http.post(f"/api/worker/v1/jobs/{number}/{action}", content=body, headers=headers)

    def claim(self, number: int) -> Claim:
        answer = self.post(number, "claim", '{"worker": "w/1"}')
        assert answer.status_code == 200, answer.text
        return Claim.model_validate_json(answer.content)

    def finish(self, number: int, fence: int, result: BranchReadingResult) -> int:
        body = FinishJob(fence=fence, result=result).model_dump_json()
        return self.post(number, "finish", body).status_code

    def answer(self, number: int, result: BranchReadingResult = READ) -> None:
        assert self.finish(number, self.claim(number).fence, result) == 204


@pytest.fixture
def worker(live: Live) -> Worker:
    return Worker(live)


def test_reading_from_request_to_result(live: Live, sessions: SessionFactory, worker: Worker) -> None:
    sent: list[Message] = []
    live.app.state.sessions = make_factory(sessions.kw["bind"], sent.append)
    with live.client(Scope.SUBMIT) as client:
        first = ask(client)
        assert (first.tree, first.state, first.inspection) == ("t", JobState.QUEUED, None)
        assert sent == [Message(JOB, 1, APPLY_QUEUE)]
        claim = worker.claim(1)
        assert isinstance(claim.job, BranchReadingJob)
        assert (claim.job.series.model_dump(), claim.job.tree.name) == ({**BRANCH, "base": None}, "t")
        event = '{"type": "progress", "at": "2026-01-01T00:00:00Z", "text": "fetching", "done": 0, "total": 0}'
        assert worker.post(1, "events", f'{{"fence": {claim.fence}, "events": [{event}]}}').status_code == 204
        beat = worker.post(1, "heartbeat", f'{{"fence": {claim.fence}}}')
        assert (beat.status_code, beat.json()["cancel"]) == (200, False)
        running = ask(client)
        assert (running.state, running.progress) == (JobState.RUNNING, "fetching")
        found: list[BranchInspection] = []
        waiting = threading.Thread(target=lambda: found.append(ask(client, wait_s=20)))
        waiting.start()
        for _ in range(2):  # a repeated finish changes nothing
            assert worker.finish(1, claim.fence, READ) == 204
        waiting.join()
        other = READ.model_copy(update={"commit": "c" * 40})
        assert worker.finish(1, claim.fence, other) == 409
    assert (found[0].outcome, found[0].base_commit, found[0].commit) == (Outcome.PASSED, "a" * 40, "b" * 40)
    assert found[0].inspection == inspect(MBOX)
    assert len(readings(sessions)) == 1


def test_result_is_reused_for_a_minute_and_for_the_same_branch(
    client: httpx.Client, sessions: SessionFactory, worker: Worker
) -> None:
    ask(client)
    worker.answer(1)
    assert ask(client, tree="t").state is JobState.FINISHED
    assert ask(client, base="v6.12").state is JobState.QUEUED
    age(sessions, "created_at", timedelta(seconds=1))
    with transaction(sessions) as session:
        row = session.get_one(BranchReading, 1)
        assert row.finished_at is not None
        row.finished_at -= CACHE_TIME
    assert ask(client).state is JobState.QUEUED, "the branch may have moved"


def test_reading_without_worker_fails_and_says_what_works(
    client: httpx.Client, sessions: SessionFactory, live: Live, settings: Settings
) -> None:
    ask(client)
    age(sessions, "created_at", BranchReadingKind.worker_timeout)
    assert tick(sessions, settings, live.app.state.data)
    failure = ask(client).failure
    assert failure is not None and failure.summary == "no worker began the reading of a branch"
    assert "can be submitted without its proposals" in failure.advice


@pytest.mark.parametrize(
    ("more", "parameter", "detail"),
    [
        ({"url": "/etc"}, "url", "is not allowed"),
        ({"ref": "--upload-pack=x"}, "ref", "is not a branch, tag or commit name"),
        ({"base": "a b"}, "base", "is not a commit"),
        ({"tree": "nowhere"}, "tree", "no tree 'nowhere'"),
    ],
)
def test_what_cannot_be_read_is_refused(
    client: httpx.Client, sessions: SessionFactory, more: dict[str, str], parameter: str, detail: str
) -> None:
    answer = client.get(URL, params={**BRANCH, **more})
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["parameter"] == parameter and detail in answer.json()["detail"]
    assert readings(sessions) == []


def test_readings_are_for_submitters_and_limited(client: httpx.Client, live: Live) -> None:
    for number in range(MAX_UNFINISHED):
        ask(client, ref=f"b{number}")
    assert client.get(URL, params={**BRANCH, "wait_s": 0}).status_code == 429
    with live.client(Scope.READ) as reader:
        assert reader.get(URL, params=BRANCH).status_code == 403
        assert reader.post("/api/worker/v1/jobs/1/claim", json={"worker": "w"}).status_code == 403


def test_targets_are_proposed_for_a_branch_that_was_read(
    client: httpx.Client, sessions: SessionFactory, worker: Worker
) -> None:
    series = {"series": {"git": BRANCH}}

    def refused(**more: Any) -> tuple[str, str]:
        answer = client.post("/api/v1/touches", json={**series, **more})
        assert answer.status_code == 422, answer.text
        (error,) = answer.json()["errors"]
        return error["pointer"], error["detail"]

    pointer, detail = refused()
    assert pointer == "/series/git" and "request GET /api/v1/git/branches/inspection" in detail
    assert refused(tree="nowhere")[0] == "/tree"
    ask(client)
    worker.answer(1)
    answer = client.post("/api/v1/touches", json={**series, "tree": "t"})
    assert answer.status_code == 200, answer.text
    assert Touches.model_validate_json(answer.content).files == inspect(MBOX).files
    age(sessions, "finished_at", PROPOSAL_TIME)
    assert refused()[0] == "/series/git"


def test_failure_of_a_reading_is_shown(client: httpx.Client, worker: Worker) -> None:
    ask(client)
    failure = Failure(kind=ErrorKind.USER, summary="cannot fetch", advice="Check it.")
    worker.answer(1, BranchReadingResult(outcome=Outcome.FAILED, failure=failure))
    found = ask(client)
    assert (found.outcome, found.failure, found.inspection) == (Outcome.FAILED, failure, None)
