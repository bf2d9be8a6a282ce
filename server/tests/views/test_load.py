"""Views of submissions: content, and a constant number of queries."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import event

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.submissions import SubmissionSummary, SubmissionView
from wqlab_contracts.enums import Arm, JobState, SubmissionState, Verdict
from wqlab_server.models import Run

from ..support.live_server import Live
from ..support.scene import Scene

pytestmark = pytest.mark.integration
URL = "/api/v1/submissions"


def expect(answer: httpx.Response, status: int = 200) -> httpx.Response:
    assert answer.status_code == status, answer.text
    return answer


def page(client: httpx.Client, **params: Any) -> Page[SubmissionSummary]:
    return Page[SubmissionSummary].model_validate_json(expect(client.get(URL, params=params)).content)


@pytest.fixture
def queries(live: Live) -> Iterator[list[str]]:
    statements: list[str] = []
    engine = live.app.state.sessions.kw["bind"]

    def note(*arguments: Any) -> None:
        statements.append(arguments[2])

    event.listen(engine, "before_cursor_execute", note)
    yield statements
    event.remove(engine, "before_cursor_execute", note)


def test_list_needs_a_constant_number_of_queries(client: httpx.Client, scene: Scene, queries: list[str]) -> None:
    scene.many(200)
    queries.clear()
    few = page(client, limit=2)
    used = len(queries)
    queries.clear()
    many = page(client, limit=200)
    assert (len(few.items), len(many.items), many.total) == (2, 200, 200)
    assert many.items[7].verdicts == {Verdict.REGRESSION: 1}
    assert len(queries) == used <= 6, queries
    assert not any("submissions.request" in statement for statement in queries), "a list must not load mailboxes"


def test_submission_needs_a_constant_number_of_queries(client: httpx.Client, scene: Scene, queries: list[str]) -> None:
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


def test_builds_list_only_new_warnings(client: httpx.Client, scene: Scene) -> None:
    number = scene.submission()
    scene.builds(number)
    view = SubmissionView.model_validate_json(client.get(f"{URL}/{number}").content)
    warned = {build.arm: [warning.text for warning in build.new_warnings] for build in view.builds}
    assert warned == {Arm.BASELINE: [], Arm.CANDIDATE: ["no return"]}
    assert view.apply.base_commit == "a" * 40


def test_estimate_uses_measured_boots(client: httpx.Client, scene: Scene) -> None:
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


def test_a_target_on_a_rehearsal_machine_is_emulated(client: httpx.Client, scene: Scene, live: Live) -> None:
    """Also in lists, which read the device type without validating it."""
    scene.devices()
    run_id = scene.run_id(scene.submission())

    def emulated(**changed: Any) -> bool:
        with live.app.state.sessions.begin() as session:
            run = session.get_one(Run, run_id)
            run.device_spec = run.device_spec.model_copy(update={"emulation": None, "rehearsal": False, **changed})
        (target,) = page(client).items[0].targets
        return target.emulated

    assert not emulated()
    assert emulated(rehearsal=True)
