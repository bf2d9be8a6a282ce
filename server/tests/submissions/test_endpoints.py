"""Endpoints of submissions: create, list, cancel, retry."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from wqlab_contracts.api.base import Page, Problem
from wqlab_contracts.api.submissions import SubmissionSummary, SubmissionView
from wqlab_contracts.enums import (
    ArtifactKind,
    JobState,
    Outcome,
    Scope,
    SubmissionState,
)
from wqlab_contracts.messages import ApplyResult
from wqlab_contracts.messages.source_mail import SourceMail
from wqlab_server.models import Apply
from wqlab_server.storage import source_mails
from wqlab_server.storage.db import transaction

from ..support.live_server import Live, expect
from ..support.scene import MBOX, REQUEST, Scene

pytestmark = pytest.mark.integration
URL = "/api/v1/submissions"


def test_submission_is_created_and_shown(client: httpx.Client, scene: Scene) -> None:
    scene.devices()
    answer = expect(client.post(URL, json=REQUEST), 201)
    made = SubmissionView.model_validate_json(answer.content)
    assert answer.headers["location"] == f"{URL}/{made.id}"
    assert (made.state, made.owner, made.title) == (SubmissionState.APPLYING, "admin", "[PATCH] wq: faster")
    assert made.exit_code is None
    assert made.apply.state is JobState.QUEUED
    assert [run.plan for run in made.runs] == ["flush"]
    assert made.eta.finish_at is None
    assert "no estimate yet" in made.eta.what
    assert SubmissionView.model_validate_json(expect(client.get(f"{URL}/{made.id}")).content).request == made.request


def test_submission_is_shown_without_its_mbox_which_is_a_separate_download(live: Live, scene: Scene) -> None:
    mbox = MBOX + "+wörk\n" * 300_000
    with live.client(Scope.SUBMIT) as client:
        made = expect(client.post(URL, json=REQUEST | {"series": {"mbox": {"text": mbox}}}), 201)
        number = made.json()["id"]
        shown = expect(client.get(f"{URL}/{number}"))
        report = expect(client.get(f"{URL}/{number}/report"))
        for answer in (made, shown, report):
            assert len(answer.content) < 20_000
        series = SubmissionView.model_validate_json(shown.content).request.series
        assert series is not None
        assert series.mbox is not None
        assert series.mbox.size == len(mbox.encode())
        assert expect(client.get(f"{URL}/{number}/mbox")).content == mbox.encode()
    study = scene.submission(request={**REQUEST, "series": None})
    with live.client(Scope.READ) as client:
        assert "it has no series" in expect(client.get(f"{URL}/{study}/mbox"), 404).json()["detail"]
    with live.client(None) as stranger:
        expect(stranger.get(f"{URL}/{number}/mbox"), 401)


def test_refusal_lists_every_mistake(client: httpx.Client) -> None:
    wrong = {"series": None, "tree": "tt", "targets": [{"plan": "flsh", "device_type": "tiny"}]}
    problem = Problem.model_validate_json(expect(client.post(URL, json=wrong), 422).content)
    assert {error["pointer"] for error in problem.errors} == {"/tree", "/targets/0/plan"}
    assert "did you mean flush?" in problem.detail


def test_idempotency_key_returns_the_same_submission(live: Live, scene: Scene) -> None:
    answers: list[httpx.Response] = []

    def post() -> None:
        with live.client(Scope.SUBMIT) as client:
            answers.append(client.post(URL, json=REQUEST, headers={"Idempotency-Key": "job-7"}))

    threads = [threading.Thread(target=post) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {expect(answer, 201).json()["id"] for answer in answers} == {answers[0].json()["id"]}
    with live.client(Scope.SUBMIT) as client:
        other = REQUEST | {"blocks": 3}
        assert expect(client.post(URL, json=other, headers={"Idempotency-Key": "job-7"}), 422)
        assert expect(client.post(URL, json=other), 201).json()["id"] != answers[0].json()["id"]
        assert client.get(URL).json()["total"] == 2


@pytest.mark.parametrize(
    ("scope", "status"), [(None, 401), (Scope.READ, 403), (Scope.WORKER, 403), (Scope.SUBMIT, 201), (Scope.ADMIN, 201)]
)
def test_submitting_needs_scope_submit(live: Live, scope: Scope | None, status: int) -> None:
    with live.client(scope) as client:
        answer = client.post(URL, json=REQUEST)
    assert answer.status_code == status
    if status != 201:
        assert answer.headers["content-type"] == "application/problem+json"
    if status == 401:
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(("action", "status"), [("cancel", 200), ("retry", 201)])
def test_only_owner_and_maintainers_change_a_submission(live: Live, scene: Scene, action: str, status: int) -> None:
    number = scene.submission(owner="submit")
    scene.finish(number)
    others = scene.submission(owner="someone")
    scene.finish(others)
    with live.client(Scope.SUBMIT) as client:
        expect(client.post(f"{URL}/{number}/{action}"), status)
        refused = expect(client.post(f"{URL}/{others}/{action}"), 403).json()["detail"]
        assert refused == (f"submission {others} belongs to someone; only its owner or a maintainer may {action} it")
    with live.client(Scope.MAINTAIN) as client:
        made = expect(client.post(f"{URL}/{others}/{action}"), status).json()
        assert made["owner"] == ("someone" if action == "cancel" else "maintain")


def test_canceling_again_changes_nothing(live: Live, scene: Scene) -> None:
    number = scene.submission(owner="someone")
    with live.client(Scope.MAINTAIN) as client:
        expect(client.post(f"{URL}/{number}/cancel"))
        expect(client.post(f"{URL}/{number}/cancel"))
        assert expect(client.post(f"{URL}/99/cancel"), 404).json()["detail"] == "no submission 99"


def test_retry_creates_a_new_submission(client: httpx.Client, scene: Scene) -> None:
    number = scene.submission()
    assert "cancel it first" in expect(client.post(f"{URL}/{number}/retry"), 409).json()["detail"]
    scene.finish(number, Outcome.CANCELED, 4)
    again = expect(client.post(f"{URL}/{number}/retry"), 201).json()
    assert again["id"] != number
    assert again["retry_of"] == number
    old = client.get(f"{URL}/{number}").json()
    assert (old["state"], old["outcome"], old["exit_code"]) == ("finished", "canceled", 4)


def test_retry_with_more_blocks(client: httpx.Client, scene: Scene) -> None:
    number = scene.submission()
    scene.finish(number, Outcome.CANCELED, 4)
    again = expect(client.post(f"{URL}/{number}/retry", params={"blocks": 24}), 201).json()
    assert again["request"]["blocks"] == 24
    assert client.get(f"{URL}/{number}").json()["request"]["blocks"] is None
    refused = expect(client.post(f"{URL}/{number}/retry", params={"blocks": 101}), 422).json()
    assert "blocks" in str(refused)


def page(client: httpx.Client, **params: Any) -> Page[SubmissionSummary]:
    return Page[SubmissionSummary].model_validate_json(expect(client.get(URL, params=params)).content)


def test_pages_are_complete_while_submissions_are_added(client: httpx.Client, scene: Scene) -> None:
    ids = [scene.submission() for _ in range(5)]
    seen: list[int] = []
    cursor = None
    while True:
        found = page(client, limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [item.id for item in found.items]
        cursor = found.next
        if len(seen) == 2:
            assert found.total == 5
            scene.submission()
        if cursor is None:
            break
    assert seen == ids[::-1]


def test_list_is_filtered(client: httpx.Client, scene: Scene) -> None:
    mine = scene.submission(owner="alice")
    named = scene.submission(
        owner="bob", request=REQUEST | {"series": {"mbox": {"text": MBOX.replace("faster", "99% 'slower'_")}}}
    )
    scene.finish(mine)

    def ids(**params: Any) -> list[int]:
        return [item.id for item in page(client, **params).items]

    assert ids(owner="alice") == [mine]
    assert ids(state="finished") == [mine]
    assert ids(outcome="passed") == [mine]
    assert ids(q="SLOWER") == [named]
    assert ids(q="99%") == [named]
    assert ids(q="9%9") == []
    assert ids(q=str(mine)) == [mine]
    assert ids(q="alice") == [mine]
    assert ids(tree="t", plan="flush", device_type="tiny") == [named, mine]
    assert ids(plan="health-check") == []
    assert ids(series_key="wq: faster") == [mine]
    with transaction(scene.sessions) as session:
        source = SourceMail(message_id="cover@example.org", sender="ada@example.org", subject="x")
        source_mails.remember(session, named, source)
        source_mails.remember(session, mine, source)
    assert ids(message_id="cover@example.org") == [named, mine]
    assert ids(message_id="other@example.org") == []
    with transaction(scene.sessions) as session:
        source_mails.remember(session, mine, source.model_copy(update={"verified": True}))
    assert ids(message_id="cover@example.org") == [mine], "an upload names the mail that the lab has read"
    now = page(client).items[0].created_at.isoformat()
    assert ids(since=now) == [named]
    assert ids(until=now) == [mine]
    assert client.get(URL, params={"state": "done"}).status_code == 422
    assert client.get(URL, params={"q": "a\0b"}).status_code == 422
    twice = expect(client.get(f"{URL}?tree=t&tree=u"), 422).json()
    assert twice["errors"] == [{"parameter": "tree", "in": "query", "detail": "'tree' is given more than once"}]


def test_applied_series_is_sent(client: httpx.Client, scene: Scene) -> None:
    number = scene.submission()
    url = f"/api/v1/submissions/{number}/series"
    assert "not been applied yet" in expect(client.get(url), 404).json()["detail"]
    mbox = scene.artifact(ArtifactKind.SERIES, "series.mbox", MBOX)
    with transaction(scene.sessions) as session:
        apply = session.scalars(select(Apply).where(Apply.submission_id == number)).one()
        apply.result = ApplyResult(outcome=Outcome.PASSED, series_mbox=mbox)
    sent = expect(client.get(url))
    assert sent.text == MBOX
    assert sent.headers["content-type"].startswith("text/plain")
