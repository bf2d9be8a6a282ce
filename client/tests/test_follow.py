"""Follow submissions across interrupted streams and server restarts."""

from __future__ import annotations

import threading
from contextlib import closing
from itertools import pairwise

import pytest
from example_views import run, submission
from fakelab import FakeLab

from wqlab_client import Client, RequestRefused, Retry
from wqlab_contracts.enums import EventKind, JobState, SubmissionState

EVENTS = "/api/v1/submissions/12/events"
RUNNING = submission(SubmissionState.RUNNING)
FINISHED = submission(SubmissionState.FINISHED)


def test_follow_survives_a_server_restart(lab: FakeLab) -> None:
    lab.show(RUNNING)
    down = threading.Event()
    up = threading.Event()

    def wait_until_up(_: float) -> None:
        down.set()
        up.wait()

    with Client(lab.url, sleep=wait_until_up) as client, closing(client.follow(12)) as views:
        assert next(views).state is SubmissionState.RUNNING
        lab.wait_for(lambda: lab.streams == ["0"])
        lab.stop()
        down.wait()  # the client notices that the server is gone
        lab.start()
        lab.show(FINISHED)
        up.set()
        assert list(views)[-1] == FINISHED
    assert lab.streams[-1] in {"0", "1"}, "it resumed after the last event received"


def test_follow_yields_changes_in_order_until_finished(lab: FakeLab, client: Client) -> None:
    lab.show(RUNNING)
    seen = []
    with closing(client.follow(12)) as views:
        for view in views:
            seen.append(view)
            done = view.runs[0].blocks_completed if view.runs else 0
            if done == 3:
                lab.show(FINISHED)
            elif view.state is SubmissionState.RUNNING:
                lab.show(RUNNING.model_copy(update={"runs": [run(JobState.RUNNING, blocks_completed=done + 1)]}))
    progress = [view.runs[0].blocks_completed if view.runs else 0 for view in seen[:-1]]
    assert seen[-1] == FINISHED
    assert progress[0] == 0
    assert progress[-1] == 3
    assert all(a <= b for a, b in pairwise(progress))


def test_many_events_need_few_fetches(lab: FakeLab, client: Client) -> None:
    lab.serve("/submissions/12", RUNNING)
    for number in range(500):
        lab.emit(EventKind.SAMPLES, number=number)
    lab.show(FINISHED)
    assert list(client.follow(12))[-1] == FINISHED
    looks = [path for path in lab.paths("GET") if not path.endswith("/events")]
    assert len(looks) <= 4


def test_finished_submission_needs_no_stream(lab: FakeLab, client: Client) -> None:
    lab.show(FINISHED)
    assert list(client.follow(12)) == [FINISHED]
    assert lab.streams == []


def test_follow_repeats_the_state_every_tick(lab: FakeLab, client: Client) -> None:
    lab.show(RUNNING)
    with closing(client.follow(12, tick_s=0.05)) as views:
        assert [next(views).state for _ in range(4)] == [SubmissionState.RUNNING] * 4


def test_missing_submission_is_refused(lab: FakeLab, client: Client) -> None:
    with pytest.raises(RequestRefused, match="submission 12"):
        next(client.follow(12))
    with Client(lab.url, retry=Retry(attempts=1)) as other, pytest.raises(RequestRefused):
        other.wait(12)
