"""Event streams that break, servers that restart, and what a follower still sees."""

from __future__ import annotations

import threading
from contextlib import closing
from itertools import pairwise

import pytest
from fakelab import FakeLab, Reply, problem, run, submission

from wqlab_client import Client, LabUnavailable, RequestRefused, Retry
from wqlab_contracts.enums import EventKind, JobState, SubmissionState

EVENTS = "/api/v1/submissions/12/events"
RUNNING = submission(SubmissionState.RUNNING)
FINISHED = submission(SubmissionState.FINISHED)


def finished_lab(lab: FakeLab, events: int) -> None:
    lab.serve("/submissions/12", FINISHED)
    for number in range(events):
        lab.emit(EventKind.RUN_PROGRESS, text=f"step {number}")
    lab.ended = True


def test_a_stream_cut_anywhere_gives_every_event_once(lab: FakeLab, client: Client) -> None:
    finished_lab(lab, 10)
    lab.cuts = [3, 0, 0, 4]
    assert [event.seq for event in client.events(12)] == list(range(1, 11))
    assert lab.streams == ["0", "3", "3", "3", "7"]


def test_events_begin_after_the_one_that_is_named(lab: FakeLab, client: Client) -> None:
    finished_lab(lab, 5)
    assert [event.seq for event in client.events(12, after=3)] == [4, 5]


def test_a_stream_that_ends_before_the_submission_does_is_resumed(lab: FakeLab, client: Client) -> None:
    lab.show(RUNNING)
    lab.ended = True
    found = client.events(12)
    assert next(found).seq == 1

    lab.answers[("GET", "/api/v1/submissions/12")] = lambda _: _running_then(lab)
    assert [event.seq for event in found] == [2]


def _running_then(lab: FakeLab) -> Reply:
    """What the server answers once: nothing yet; the submission finishes right after."""
    answer = problem(503, "restarting")
    lab.show(FINISHED)
    return answer


def test_busy_answers_to_the_stream_are_waited_out(lab: FakeLab, client: Client, waits: list[float]) -> None:
    finished_lab(lab, 2)
    lab.faults[EVENTS] = [problem(503, "starting"), problem(502, "bad gateway")]
    assert len(list(client.events(12))) == 2
    assert len(waits) == 2


def test_a_stream_that_is_refused_is_not_tried_again(lab: FakeLab, client: Client) -> None:
    lab.faults[EVENTS] = [problem(401, "the token was revoked")]
    with pytest.raises(RequestRefused, match="the token was revoked"):
        list(client.events(12))


def test_no_contact_for_too_long_ends_with_how_to_resume(waits: list[float]) -> None:
    with (
        Client("http://127.0.0.1:9", sleep=waits.append) as client,
        pytest.raises(LabUnavailable, match=r"no contact .* resume with `wqlab watch 12`"),
    ):
        list(client.events(12, give_up_s=0.05))
    assert len(waits) > 2
    assert waits[0] <= 0.5
    assert max(waits) <= 15


def test_a_restart_of_the_server_is_survived(lab: FakeLab) -> None:
    lab.show(RUNNING)
    down = threading.Event()
    up = threading.Event()

    def wait_until_up(_: float) -> None:
        down.set()
        assert up.wait(10)

    with Client(lab.url, sleep=wait_until_up) as client, closing(client.follow(12)) as views:
        assert next(views).state is SubmissionState.RUNNING
        lab.wait_for(lambda: lab.streams == ["0"])
        lab.stop()
        assert down.wait(10), "the client notices that the server is gone"
        lab.start()
        lab.show(FINISHED)
        up.set()
        assert list(views)[-1] == FINISHED
    assert lab.streams[-1] in {"0", "1"}, "it resumed behind what it had seen"


def test_follow_ends_with_the_finished_submission_and_shows_changes_in_order(lab: FakeLab, client: Client) -> None:
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


def test_many_events_need_few_looks(lab: FakeLab, client: Client) -> None:
    lab.serve("/submissions/12", RUNNING)
    for number in range(500):
        lab.emit(EventKind.SAMPLES, number=number)
    lab.show(FINISHED)
    assert list(client.follow(12))[-1] == FINISHED
    looks = [path for path in lab.paths("GET") if not path.endswith("/events")]
    assert len(looks) <= 4


def test_a_finished_submission_needs_no_stream(lab: FakeLab, client: Client) -> None:
    lab.show(FINISHED)
    assert list(client.follow(12)) == [FINISHED]
    assert lab.streams == []


def test_follow_gives_the_old_state_again_when_nothing_happens(lab: FakeLab, client: Client) -> None:
    lab.show(RUNNING)
    with closing(client.follow(12, tick_s=0.05)) as views:
        assert [next(views).state for _ in range(4)] == [SubmissionState.RUNNING] * 4


def test_wait_returns_the_end_and_has_a_limit(lab: FakeLab, client: Client) -> None:
    lab.show(RUNNING)
    with pytest.raises(TimeoutError, match="submission 12 is not finished after 0 s"):
        client.wait(12, timeout_s=0.0)
    lab.show(FINISHED)
    assert client.wait(12) == FINISHED


def test_a_submission_that_does_not_exist(lab: FakeLab, client: Client) -> None:
    with pytest.raises(RequestRefused, match="submission 12"):
        next(client.follow(12))
    with Client(lab.url, retry=Retry(attempts=1)) as other, pytest.raises(RequestRefused):
        other.wait(12)
