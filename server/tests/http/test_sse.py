"""Server-sent events."""

from __future__ import annotations

import json
from contextlib import ExitStack

import httpx
import pytest

from wqlab_contracts.enums import Scope
from wqlab_server.http import sse
from wqlab_server.http.sse import server_sent_event

from ..support.live_server import Live, expect
from ..support.people import browser
from ..support.scene import Scene


def test_server_sent_event_splits_data_at_line_feeds() -> None:
    assert server_sent_event(event="x", data="a\nb", event_id=3) == "id: 3\nevent: x\ndata: a\ndata: b\n\n"


pytestmark = pytest.mark.integration


SUBMISSIONS = "/api/v1/submissions"


def test_open_streams_are_limited_for_each_client(live: Live, scene: Scene) -> None:
    number = scene.submission()
    with ExitStack() as stack:
        reader, admin = (stack.enter_context(live.client(scope)) for scope in (Scope.READ, Scope.ADMIN))

        def opened(client: httpx.Client) -> httpx.Response:
            return stack.enter_context(client.stream("GET", f"{SUBMISSIONS}/{number}/events"))

        streams = [opened(reader) for _ in range(30)]
        assert {stream.status_code for stream in streams} == {200}
        refused = opened(reader)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
        assert "30 event and console streams" in json.loads(refused.read())["detail"]
        assert opened(admin).status_code == 200, "one client leaves streams for the others"
        scene.finish(number)  # ends every stream
        for stream in streams:
            stream.read()
    with live.client(Scope.READ) as reader:
        another = scene.submission()
        with reader.stream("GET", f"{SUBMISSIONS}/{another}/events") as stream:
            assert stream.status_code == 200


def test_stream_by_cookie_ends_when_the_user_is_disabled(
    live: Live, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EventSource sends only the cookie, no CSRF or Authorization header."""
    monkeypatch.setattr(sse, "REAUTHORIZE_S", 0.0)
    number = scene.submission()
    with (
        browser(live.url, "read") as client,
        live.client(Scope.ADMIN) as admin,
        client.stream("GET", f"{SUBMISSIONS}/{number}/events") as answer,
    ):
        assert answer.status_code == 200
        lines = answer.iter_lines()
        assert next(line for line in lines if "submission_state" in line)
        scene.emit(number, "run_progress", text="seen")
        assert next(line for line in lines if "seen" in line)
        expect(admin.patch("/api/v1/users/read", json={"disabled": True}))
        scene.emit(number, "run_progress", text="unseen")
        assert not [line for line in lines if "unseen" in line]
