"""Steps of a submission."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from sqlalchemy import event, inspect, select

from wqlab_contracts.api.steps import (
    BlockState,
    SubmissionSteps,
)
from wqlab_contracts.enums import Arm, EventKind, JobState, Outcome
from wqlab_contracts.messages import Failure
from wqlab_server.models import Boot, Run
from wqlab_server.storage.db import SessionFactory, transaction

from ..support.scene import PANIC, REQUEST, Scene

pytestmark = pytest.mark.integration
URL = "/api/v1/submissions"


def steps(client: httpx.Client, number: int) -> SubmissionSteps:
    answer = client.get(f"{URL}/{number}/steps")
    assert answer.status_code == 200, answer.text
    return SubmissionSteps.model_validate_json(answer.content)


def test_steps_contain_jobs_blocks_boots_and_attempts(client: httpx.Client, scene: Scene) -> None:
    scene.devices()
    number = scene.submission()
    builds = scene.builds(number)
    run_id = scene.measured(number, {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0})
    found = steps(client, number)
    assert found.submission.id == number
    assert (found.apply.state, found.apply.outcome, found.apply.patches) == (JobState.FINISHED, Outcome.PASSED, 1)
    assert found.apply.base_commit == "a" * 40
    assert {build.arm: build.id for build in found.builds} == builds
    assert [build.new_warnings for build in found.builds] == [0, 1]
    assert all(build.has_log for build in found.builds)
    (run,) = found.runs
    assert (run.id, run.device, run.done_boots, run.total_boots) == (run_id, "tiny-1", 4, 4)
    assert [(block.state, block.attempt, block.discarded) for block in run.blocks] == [
        (BlockState.COMPLETED, 1, 1),
        (BlockState.COMPLETED, 0, 0),
    ]
    assert [boot.valid for boot in run.boots] == [False, True, True, True, True]
    assert run.boots[0].failure is not None
    assert (run.boots[0].failure.kind, run.boots[0].findings) == ("kernel", 1)
    assert [attempt.device for attempt in run.devices] == ["tiny-1"]
    assert [finding.title for finding in run.findings] == ["panic in flush"]
    assert [(view.what, view.failure.summary, view.at is not None) for view in found.attempts] == [
        ("run", "panic in flush", True)
    ], "the failure is listed once, for the block and not for its boot too"


def test_failed_attempts_are_listed_in_order(client: httpx.Client, scene: Scene, sessions: SessionFactory) -> None:
    scene.devices()
    number = scene.submission()
    long = Failure(kind="infrastructure", summary="disk full", excerpt="x" * 9_000, advice="make room")
    scene.emit(
        number, EventKind.ATTEMPT_FAILED, what="build", attempt=1, holder="w/1", failure=long.model_dump(mode="json"),
        build_id=7,
    )  # fmt: skip
    run_id = scene.run_id(number)
    scene.boot(run_id, valid=False, failure=PANIC, seconds=-60)
    build, boot = steps(client, number).attempts
    assert (build.what, build.build_id, build.device, build.failure.advice) == ("build", 7, "w/1", "make room")
    assert 1_900 < len(build.failure.excerpt) <= 2_000
    assert "characters left out" in build.failure.excerpt
    assert (boot.what, boot.run_id, boot.failure.summary) == ("run", run_id, "panic in flush")


def test_blocks_have_the_states_of_their_boots(client: httpx.Client, scene: Scene, sessions: SessionFactory) -> None:
    scene.devices()
    number = scene.submission(request=REQUEST | {"blocks": 3})
    run_id = scene.run_id(number)
    with transaction(sessions) as session:
        session.get_one(Run, run_id).state = JobState.RUNNING
    scene.boot(run_id, block=0, finished=False)
    assert [block.state for block in steps(client, number).runs[0].blocks] == [
        BlockState.RUNNING,
        BlockState.PENDING,
        BlockState.PENDING,
    ]
    with transaction(sessions) as session:
        run = session.get_one(Run, run_id)
        run.state, run.outcome = JobState.FINISHED, Outcome.CANCELED
    assert {block.state for block in steps(client, number).runs[0].blocks} == {BlockState.LOST}


def test_events_continue_after_the_steps_event_seq(client: httpx.Client, scene: Scene) -> None:
    scene.devices()
    number = scene.submission()
    seq = steps(client, number).event_seq
    scene.emit(number, EventKind.REPORT_READY)
    headers = {"Accept": "application/json"}
    later = client.get(f"{URL}/{number}/events", params={"after": seq}, headers=headers).json()
    assert [each["kind"] for each in later] == ["report_ready"]


def test_hundred_runs_need_a_constant_number_of_queries(
    client: httpx.Client, scene: Scene, sessions: SessionFactory
) -> None:
    """The number of queries does not depend on the number of runs, and environments of boots are left out."""
    scene.devices()
    number = scene.submission()
    first = scene.run_id(number)
    scene.boot(first)
    counts = [_queries(client, sessions, number)]
    with transaction(sessions) as session:
        whole = {each.key: getattr(session.get_one(Run, first), each.key) for each in inspect(Run).column_attrs}
        boot = session.scalars(select(Boot)).one()
        facts = {column.key: getattr(boot, column.key) for column in Boot.__table__.columns}
        for _ in range(99):
            run = Run(**{name: value for name, value in whole.items() if name not in {"id", "kind"}})
            session.add(run)
            session.flush()
            session.add(
                Boot(**{name: value for name, value in facts.items() if name not in {"id", "run_id"}}, run_id=run.id)
            )
    counts.append(_queries(client, sessions, number))
    assert counts[0] == counts[1]
    answer = client.get(f"{URL}/{number}/steps")
    assert len(answer.json()["runs"]) == 100
    assert "clocksource" not in answer.text
    assert len(answer.content) < len(client.get(f"{URL}/{number}").content)


def _queries(client: httpx.Client, sessions: SessionFactory, number: int) -> int:
    statements: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        statements.append(statement)

    engine = sessions.kw["bind"]
    event.listen(engine, "before_cursor_execute", note)
    steps(client, number)
    event.remove(engine, "before_cursor_execute", note)
    return len(statements)
