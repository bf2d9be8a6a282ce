"""Lookups of branches, from the request to a worker's result."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from wqlab_contracts.api.series import GitBranches
from wqlab_contracts.celery_names import JOB, LOOKUP_QUEUE
from wqlab_contracts.enums import JobState, Outcome, Scope
from wqlab_contracts.messages import protocol
from wqlab_contracts.messages.jobs import Claim, FinishJob
from wqlab_contracts.messages.lookups import GitBranch, LookupJob, LookupResult
from wqlab_server.jobs.lookups import CACHE_TIME, MAX_UNFINISHED, RETENTION
from wqlab_server.models import BranchList
from wqlab_server.series import branches
from wqlab_server.settings import Settings
from wqlab_server.storage.db import Message, SessionFactory, make_factory, transaction
from wqlab_server.tick.tick import tick

from ..support.live_server import Live

pytestmark = pytest.mark.integration
INSPECT, BRANCHES = "/api/v1/series/inspect", "/api/v1/git/branches"
REPOSITORY = "https://git.example.org/linux.git"


def request_branches(client: httpx.Client, url: str = REPOSITORY, wait_s: float = 0) -> GitBranches:
    answer = client.get(BRANCHES, params={"url": url, "wait_s": wait_s})
    assert answer.status_code == 200, answer.text
    return GitBranches.model_validate_json(answer.content)


def lookups(sessions: SessionFactory) -> list[BranchList]:
    with sessions() as session:
        return list(session.scalars(select(BranchList).order_by(BranchList.id)))


class Worker:
    def __init__(self, live: Live) -> None:
        self.http = live.client(Scope.WORKER)
        self.http.headers.update(protocol.headers())

    def claim(self, number: int, **body: Any) -> httpx.Response:
        return self.http.post(f"/api/worker/v1/jobs/{number}/claim", json={"worker": "w/1", **body})

    def finish(self, number: int, fence: int, result: LookupResult) -> httpx.Response:
        body = FinishJob(fence=fence, result=result).model_dump_json()
        headers = {"Content-Type": "application/json"}
        return self.http.post(f"/api/worker/v1/jobs/{number}/finish", content=body, headers=headers)

    def answer(self, number: int, *names: str) -> None:
        claim = Claim.model_validate_json(self.claim(number).content)
        found = [GitBranch(name=name, commit="a" * 40) for name in names]
        result = LookupResult(outcome=Outcome.PASSED, branches=found, head=names[0])
        assert self.finish(number, claim.fence, result).status_code == 204


@pytest.fixture
def worker(live: Live) -> Worker:
    return Worker(live)


def test_lookup_from_request_to_result(client: httpx.Client, sessions: SessionFactory, worker: Worker) -> None:
    first = request_branches(client)
    assert (first.state, first.outcome, first.looked_at) == (JobState.QUEUED, None, None)
    (lookup,) = lookups(sessions)
    claim = Claim.model_validate_json(worker.claim(lookup.id).content)
    assert claim.job == LookupJob(url=REPOSITORY)
    assert request_branches(client).state is JobState.RUNNING
    assert worker.claim(lookup.id).status_code == 409, "the lookup is claimed already"
    result = LookupResult(outcome=Outcome.PASSED, branches=[GitBranch(name="wq/faster", commit="b" * 40)])
    for _ in range(2):  # a repeated finish changes nothing
        assert worker.finish(lookup.id, claim.fence, result).status_code == 204
    other = result.model_copy(update={"truncated": True})
    assert worker.finish(lookup.id, claim.fence, other).status_code == 409
    found = request_branches(client)
    assert (found.state, found.outcome) == (JobState.FINISHED, Outcome.PASSED)
    assert found.branches == result.branches
    assert found.looked_at is not None
    assert len(lookups(sessions)) == 1, "the result is reused"


def test_waiting_request_is_woken_by_the_result(
    client: httpx.Client, sessions: SessionFactory, worker: Worker, live: Live
) -> None:
    """Otherwise the response would come after `wait_s`, unfinished."""
    request_branches(client)
    (lookup,) = lookups(sessions)
    found: list[GitBranches] = []
    waiting = threading.Thread(target=lambda: found.append(request_branches(client, wait_s=20)))
    waiting.start()
    worker.answer(lookup.id, "main", "next")
    waiting.join()
    assert [branch.name for branch in found[0].branches] == ["main", "next"]
    assert found[0].head == "main"


def test_message_goes_to_the_lookup_queue(settings: Settings, sessions: SessionFactory) -> None:
    sent: list[Message] = []
    factory = make_factory(sessions.kw["bind"], sent.append)
    with transaction(factory) as session:
        number = branches.request(session, REPOSITORY, "alice", settings)
    assert sent == [Message(JOB, number, LOOKUP_QUEUE)]


def test_old_result_is_looked_up_again(client: httpx.Client, sessions: SessionFactory, worker: Worker) -> None:
    request_branches(client)
    worker.answer(lookups(sessions)[0].id, "main")
    _age(sessions, lambda row: setattr(row, "finished_at", row.finished_at - CACHE_TIME))
    assert request_branches(client).state is JobState.QUEUED
    assert len(lookups(sessions)) == 2
    _age(sessions, lambda row: setattr(row, "created_at", row.created_at - RETENTION))
    _age(sessions, lambda row: setattr(row, "finished_at", row.created_at))
    request_branches(client, "https://git.example.org/other.git")
    assert [row.payload.url for row in lookups(sessions)] == ["https://git.example.org/other.git"], (
        "old lookups are deleted"
    )


def test_lookup_without_worker_fails(
    client: httpx.Client, sessions: SessionFactory, live: Live, settings: Settings
) -> None:
    request_branches(client)
    _age(sessions, lambda row: setattr(row, "created_at", row.created_at - branches.BranchListKind.worker_timeout))
    assert tick(sessions, settings, live.app.state.data)
    found = request_branches(client)
    assert (found.state, found.outcome) == (JobState.FINISHED, Outcome.FAILED)
    assert found.failure is not None
    assert (found.failure.kind, found.failure.summary) == ("infrastructure", "no worker began the listing of branches")
    assert "typed in" in found.failure.advice


@pytest.mark.parametrize(
    "url", ["http://example.org/x.git", "ssh://example.org/x", "/etc", "https://u:p@example.org/x", "https://", "a b"]
)
def test_refused_urls_are_not_looked_up(client: httpx.Client, sessions: SessionFactory, url: str) -> None:
    answer = client.get(BRANCHES, params={"url": url})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["parameter"] == "url"
    assert lookups(sessions) == []


def test_unfinished_lookups_of_a_user_are_limited(client: httpx.Client, live: Live) -> None:
    for number in range(MAX_UNFINISHED):
        request_branches(client, f"https://git.example.org/{number}.git")
    more = client.get(BRANCHES, params={"url": "https://git.example.org/more.git", "wait_s": 0})
    assert more.status_code == 429
    with live.client(Scope.SUBMIT) as other:
        assert request_branches(other, "https://git.example.org/more.git").state is JobState.QUEUED
    with live.client(Scope.READ) as reader:
        assert reader.get(BRANCHES, params={"url": REPOSITORY}).status_code == 403, (
            "a lookup makes the lab contact another server"
        )


def _age(sessions: SessionFactory, change: Callable[[BranchList], None]) -> None:
    with transaction(sessions) as session:
        for row in session.scalars(select(BranchList)):
            if row.finished_at is not None or row.state is not JobState.FINISHED:
                change(row)
