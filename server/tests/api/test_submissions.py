"""Submissions over HTTP: made, found, stopped, made again, watched."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import event

from wqlab_contracts.api.submissions import Page, Problem, SubmissionSummary, SubmissionView
from wqlab_contracts.enums import Arm, JobState, Outcome, Scope, SubmissionState, Verdict
from wqlab_contracts.messages import Event

from .conftest import Live
from .scene import MBOX, REQUEST, Scene

pytestmark = pytest.mark.integration
URL = "/api/v1/submissions"


def ok(answer: httpx.Response, status: int = 200) -> httpx.Response:
    assert answer.status_code == status, answer.text
    return answer


def test_a_submission_is_made_and_shown(client: httpx.Client, scene: Scene) -> None:
    scene.devices()
    answer = ok(client.post(URL, json=REQUEST), 201)
    made = SubmissionView.model_validate_json(answer.content)
    assert answer.headers["location"] == f"{URL}/{made.id}"
    assert (made.state, made.owner, made.title) == (SubmissionState.APPLYING, "admin", "[PATCH] wq: faster")
    assert made.exit_code is None
    assert made.apply.state is JobState.QUEUED
    assert [run.plan for run in made.runs] == ["flush"]
    assert made.eta.finish_at is None
    assert "no estimate yet" in made.eta.what
    assert SubmissionView.model_validate_json(ok(client.get(f"{URL}/{made.id}")).content).request == made.request


def test_every_mistake_comes_at_once(client: httpx.Client) -> None:
    wrong = {"series": None, "tree": "tt", "targets": [{"plan": "flsh", "device_type": "tiny"}]}
    problem = Problem.model_validate_json(ok(client.post(URL, json=wrong), 422).content)
    assert {error["pointer"] for error in problem.errors} == {"/tree", "/targets/0/plan"}
    assert "did you mean flush?" in problem.detail


def test_the_same_key_gives_the_same_submission_even_at_once(live: Live, scene: Scene) -> None:
    answers: list[httpx.Response] = []

    def post() -> None:
        with live.client(Scope.SUBMIT) as client:
            answers.append(client.post(URL, json=REQUEST, headers={"Idempotency-Key": "job-7"}))

    threads = [threading.Thread(target=post) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {ok(answer, 201).json()["id"] for answer in answers} == {answers[0].json()["id"]}
    with live.client(Scope.SUBMIT) as client:
        other = REQUEST | {"blocks": 3}
        assert ok(client.post(URL, json=other, headers={"Idempotency-Key": "job-7"}), 422)
        assert ok(client.post(URL, json=other), 201).json()["id"] != answers[0].json()["id"]
        assert client.get(URL).json()["total"] == 2


@pytest.mark.parametrize(
    ("scope", "status"), [(None, 401), (Scope.READ, 403), (Scope.WORKER, 403), (Scope.SUBMIT, 201), (Scope.ADMIN, 201)]
)
def test_submitting_needs_its_scope(live: Live, scope: Scope | None, status: int) -> None:
    with live.client(scope) as client:
        answer = client.post(URL, json=REQUEST)
    assert answer.status_code == status
    if status != 201:
        assert answer.headers["content-type"] == "application/problem+json"
    if status == 401:
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(("action", "status"), [("cancel", 200), ("retry", 201)])
def test_a_submission_is_its_owners_and_the_maintainers(live: Live, scene: Scene, action: str, status: int) -> None:
    number = scene.submission(owner="submit")
    scene.finish(number)
    others = scene.submission(owner="someone")
    scene.finish(others)
    with live.client(Scope.SUBMIT) as client:
        ok(client.post(f"{URL}/{number}/{action}"), status)
        refused = ok(client.post(f"{URL}/{others}/{action}"), 403).json()["detail"]
        assert refused == (f"submission {others} belongs to someone; only its owner or a maintainer may {action} it")
    with live.client(Scope.MAINTAIN) as client:
        made = ok(client.post(f"{URL}/{others}/{action}"), status).json()
        assert made["owner"] == ("someone" if action == "cancel" else "maintain")


def test_canceling_twice_is_harmless(live: Live, scene: Scene) -> None:
    number = scene.submission(owner="someone")
    with live.client(Scope.MAINTAIN) as client:
        ok(client.post(f"{URL}/{number}/cancel"))
        ok(client.post(f"{URL}/{number}/cancel"))
        assert ok(client.post(f"{URL}/99/cancel"), 404).json()["detail"] == "no submission 99"


def test_retry_makes_a_new_submission_of_a_finished_one(client: httpx.Client, scene: Scene) -> None:
    number = scene.submission()
    assert "cancel it first" in ok(client.post(f"{URL}/{number}/retry"), 409).json()["detail"]
    scene.finish(number, Outcome.CANCELED, 4)
    again = ok(client.post(f"{URL}/{number}/retry"), 201).json()
    assert again["id"] != number
    assert again["retry_of"] == number
    old = client.get(f"{URL}/{number}").json()
    assert (old["state"], old["outcome"], old["exit_code"]) == ("finished", "canceled", 4)


# --- lists ------------------------------------------------------------------------------------------------------


def page(client: httpx.Client, **params: Any) -> Page[SubmissionSummary]:
    return Page[SubmissionSummary].model_validate_json(ok(client.get(URL, params=params)).content)


def test_pages_are_newest_first_and_complete_while_new_ones_arrive(client: httpx.Client, scene: Scene) -> None:
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


def test_filters(client: httpx.Client, scene: Scene) -> None:
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
    now = page(client).items[0].created_at.isoformat()
    assert ids(since=now) == [named]
    assert ids(until=now) == [mine]
    assert client.get(URL, params={"state": "done"}).status_code == 422
    assert client.get(URL, params={"q": "a\0b"}).status_code == 422
    twice = ok(client.get(f"{URL}?tree=t&tree=u"), 422).json()
    assert twice["errors"] == [{"parameter": "tree", "in": "query", "detail": "'tree' is given more than once"}]


@pytest.fixture
def queries(live: Live) -> Iterator[list[str]]:
    statements: list[str] = []
    engine = live.app.state.sessions.kw["bind"]

    def note(*arguments: Any) -> None:
        statements.append(arguments[2])

    event.listen(engine, "before_cursor_execute", note)
    yield statements
    event.remove(engine, "before_cursor_execute", note)


def test_a_list_of_200_takes_as_many_queries_as_one_of_2(
    client: httpx.Client, scene: Scene, queries: list[str]
) -> None:
    scene.many(200)
    queries.clear()
    few = page(client, limit=2)
    used = len(queries)
    queries.clear()
    many = page(client, limit=200)
    assert (len(few.items), len(many.items), many.total) == (2, 200, 200)
    assert many.items[7].verdicts == {Verdict.REGRESSION: 1}
    assert len(queries) == used <= 6, queries
    assert not any("submissions.request" in statement for statement in queries), "a mailbox each is too much for a list"


def test_a_submission_with_many_boots_takes_as_many_queries_as_one_with_few(
    client: httpx.Client, scene: Scene, queries: list[str]
) -> None:
    scene.devices()
    number = scene.submission()
    scene.builds(number)
    run_id = scene.run_id(number)
    scene.boot(run_id, block=0)
    queries.clear()
    client.get(f"{URL}/{number}")
    used = len(queries)
    for block in range(1, 9):
        scene.boot(run_id, block=block)
    queries.clear()
    view = SubmissionView.model_validate_json(client.get(f"{URL}/{number}").content)
    assert len(view.runs[0].boots) == 9
    assert len(queries) == used <= 18, queries


# --- what a view tells ------------------------------------------------------------------------------------------


def test_builds_list_new_warnings_only(client: httpx.Client, scene: Scene) -> None:
    number = scene.submission()
    scene.builds(number)
    view = SubmissionView.model_validate_json(client.get(f"{URL}/{number}").content)
    warned = {build.arm: [warning.text for warning in build.new_warnings] for build in view.builds}
    assert warned == {Arm.BASELINE: [], Arm.CANDIDATE: ["no return"]}
    assert view.apply.base_commit == "a" * 40


def test_the_estimate_comes_from_measured_boots(client: httpx.Client, scene: Scene) -> None:
    scene.devices()
    number = scene.submission()
    scene.builds(number)
    run_id = scene.run_id(number)
    with scene.sessions.begin() as session:
        from wqlab_server.models import Run, Submission

        session.get_one(Submission, number).state = SubmissionState.RUNNING
        session.get_one(Run, run_id).state = JobState.RUNNING
    scene.boot(run_id, block=0, position=0, seconds=100)
    scene.boot(run_id, block=0, position=1, arm=Arm.CANDIDATE, seconds=100)
    before = time.time()
    eta = SubmissionView.model_validate_json(client.get(f"{URL}/{number}").content).eta
    assert (eta.done_boots, eta.total_boots) == (2, 4)
    assert eta.finish_at is not None
    assert eta.finish_at.timestamp() - before == pytest.approx(200, abs=10)
    assert "2 boots left" in eta.what


# --- events -----------------------------------------------------------------------------------------------------


def stream(client: httpx.Client, number: int, **options: Any) -> Iterator[tuple[str | None, Event]]:
    with client.stream("GET", f"{URL}/{number}/events", **options) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        event_id = None
        for line in answer.iter_lines():
            if line.startswith("id: "):
                event_id = line[4:]
            if line.startswith("data: "):
                yield event_id, Event.model_validate_json(line[6:])


def test_events_are_streamed_as_they_happen_and_the_stream_ends(live: Live, scene: Scene) -> None:
    number = scene.submission()
    with live.client(Scope.READ) as client:
        events = stream(client, number)
        event_id, first = next(events)
        assert (event_id, first.seq, first.data["state"]) == ("1", 1, "applying")
        started = time.monotonic()
        scene.emit(number, "run_progress", text="booting")
        assert next(events)[1].data == {"text": "booting"}
        assert time.monotonic() - started < 5, "the stream was not woken, it only looked again at a heartbeat"
        assert live.app.state.metrics.streams._value.get() == 1
        scene.finish(number)
        assert [event.data["state"] for _, event in events] == ["finished"]
        assert client.get(f"{URL}/{number}/events", headers={"Last-Event-ID": "3"}).status_code == 204


def test_a_stream_resumes_behind_the_last_event(client: httpx.Client, scene: Scene) -> None:
    number = scene.submission()
    for step in range(1200):
        if step % 400 == 0:
            scene.emit(number, "run_progress", text=str(step))
    scene.finish(number)
    assert [event.seq for _, event in stream(client, number, headers={"Last-Event-ID": "2"})] == [3, 4, 5]
    assert [event.seq for _, event in stream(client, number, params={"after": 4})] == [5]
    assert [event.seq for _, event in stream(client, number, headers={"Last-Event-ID": "junk"})] == [1, 2, 3, 4, 5]
    listed = client.get(f"{URL}/{number}/events", params={"after": 3}, headers={"Accept": "application/json"})
    assert [Event.model_validate(each).seq for each in listed.json()] == [4, 5]


def test_a_stream_outlives_the_loss_of_its_database_connection(
    live: Live, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wqlab_server.http.sse.RECONNECT_S", 0.05)
    number = scene.submission()
    with live.client() as client:
        events = stream(client, number)
        next(events)
        with scene.sessions.begin() as session:
            from sqlalchemy import text

            killed = session.execute(
                text("select count(pg_terminate_backend(pid)) from pg_stat_activity where query like 'LISTEN%'")
            ).scalar_one()
        assert killed >= 1
        scene.emit(number, "run_progress", text="after the loss")
        assert next(events)[1].data == {"text": "after the loss"}
        scene.finish(number)
        assert len(list(events)) == 1
