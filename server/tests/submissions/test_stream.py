"""Stream of a submission's events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from wqlab_contracts.enums import Scope
from wqlab_contracts.messages import Event
from wqlab_server.http.sse import Subscription

from ..support.live_server import Live
from ..support.scene import Scene

pytestmark = pytest.mark.integration
URL = "/api/v1/submissions"


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


def test_events_are_streamed_until_the_submission_is_finished(
    live: Live, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Subscription.wait, "__defaults__", (3600.0,))  # no heartbeat wakes the stream
    number = scene.submission()
    with live.client(Scope.READ) as client:
        events = stream(client, number)
        event_id, first = next(events)
        assert (event_id, first.seq, first.data["state"]) == ("1", 1, "applying")
        scene.emit(number, "run_progress", text="booting")
        assert next(events)[1].data == {"text": "booting"}
        assert live.app.state.metrics.streams._value.get() == 1
        scene.finish(number)
        assert [event.data["state"] for _, event in events] == ["finished"]
        assert client.get(f"{URL}/{number}/events", headers={"Last-Event-ID": "3"}).status_code == 204


def test_stream_resumes_after_the_last_event(client: httpx.Client, scene: Scene) -> None:
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


def test_stream_survives_loss_of_the_database_connection(
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
