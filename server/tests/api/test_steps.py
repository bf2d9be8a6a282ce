"""A submission's page in one answer, its versions, two of them side by side, the cells behind their figures."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter
from sqlalchemy import event, func, select

from wqlab_contracts.api.steps import (
    BlockState,
    CellValues,
    FigureChange,
    SubmissionComparison,
    SubmissionSteps,
    SubmissionVersion,
)
from wqlab_contracts.enums import Arm, EventKind, JobState, Outcome, Scope, Verdict
from wqlab_contracts.messages import Failure
from wqlab_server.models import Apply, Boot, BootValue, Run, Sample, Submission
from wqlab_server.storage.db import SessionFactory, transaction

from .conftest import Live
from .scene import PANIC, REQUEST, Scene

pytestmark = pytest.mark.integration
URL = "/api/v1/submissions"


def steps(client: httpx.Client, number: int) -> SubmissionSteps:
    answer = client.get(f"{URL}/{number}/steps")
    assert answer.status_code == 200, answer.text
    return SubmissionSteps.model_validate_json(answer.content)


def test_everything_is_there_at_once(client: httpx.Client, scene: Scene) -> None:
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
    ], "the discarded block says it once, its boot says no more"


def test_failures_of_builds_and_devices_are_told_in_order(
    client: httpx.Client, scene: Scene, sessions: SessionFactory
) -> None:
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
    assert len(build.failure.excerpt) == 2_000
    assert (boot.what, boot.run_id, boot.failure.summary) == ("run", run_id, "panic in flush")


def test_the_states_of_blocks(client: httpx.Client, scene: Scene, sessions: SessionFactory) -> None:
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


def test_events_go_on_where_the_answer_ends(client: httpx.Client, scene: Scene) -> None:
    scene.devices()
    number = scene.submission()
    seq = steps(client, number).event_seq
    scene.emit(number, EventKind.REPORT_READY)
    headers = {"Accept": "application/json"}
    later = client.get(f"{URL}/{number}/events", params={"after": seq}, headers=headers).json()
    assert [each["kind"] for each in later] == ["report_ready"]


def test_a_hundred_runs_are_one_light_answer(client: httpx.Client, scene: Scene, sessions: SessionFactory) -> None:
    """As many queries for many runs as for one, and nothing of what boots report of themselves."""
    scene.devices()
    number = scene.submission()
    first = scene.run_id(number)
    scene.boot(first)
    counts = [_queries(client, sessions, number)]
    with transaction(sessions) as session:
        whole = {column.key: getattr(session.get_one(Run, first), column.key) for column in Run.__table__.columns}
        boot = session.scalars(select(Boot)).one()
        facts = {column.key: getattr(boot, column.key) for column in Boot.__table__.columns}
        for _ in range(99):
            run = Run(**{name: value for name, value in whole.items() if name != "id"})
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


# --- versions ---------------------------------------------------------------------------------------------------


def versions(client: httpx.Client, number: int) -> list[SubmissionVersion]:
    answer = client.get(f"{URL}/{number}/versions")
    assert answer.status_code == 200, answer.text
    return TypeAdapter(list[SubmissionVersion]).validate_json(answer.content)


def pair(client: httpx.Client, first: int, second: int) -> SubmissionComparison:
    answer = client.get(f"{URL}/{first}/compare/{second}")
    assert answer.status_code == 200, answer.text
    return SubmissionComparison.model_validate_json(answer.content)


@pytest.fixture
def two(scene: Scene, sessions: SessionFactory) -> tuple[int, int]:
    """v1 made it better; v2, on another base, did not."""
    scene.devices()
    numbers = []
    for candidate in (5.0, 40.0):
        number = scene.submission()
        scene.builds(number)
        scene.measured(number, {Arm.BASELINE: 33.0, Arm.CANDIDATE: candidate})
        scene.finish(number)
        numbers.append(number)
    with transaction(sessions) as session:
        apply = session.scalars(select(Apply).where(Apply.submission_id == numbers[1])).one()
        assert apply.result is not None
        assert apply.result.baseline is not None
        moved = apply.result.baseline.model_copy(update={"base_commit": "e" * 40})
        apply.result = apply.result.model_copy(update={"baseline": moved})
    return numbers[0], numbers[1]


def test_versions_of_one_series(client: httpx.Client, scene: Scene, two: tuple[int, int]) -> None:
    study = scene.submission(request=REQUEST | {"series": None})
    other = scene.submission(request=REQUEST | {"series": {"git": {"url": "https://example.org/x.git", "ref": "x"}}})
    found = versions(client, two[0])
    assert [version.id for version in found] == [two[1], two[0]]
    assert [version.base_commit for version in found] == ["e" * 40, "a" * 40]
    assert {version.tree_oid for version in found} == {"c" * 40}
    assert [version.id for version in versions(client, study)] == [study], "studies of a tree are no versions"
    assert [version.id for version in versions(client, other)] == [other]
    assert client.get(f"{URL}/9999/versions").status_code == 404


def test_two_versions_side_by_side(client: httpx.Client, two: tuple[int, int]) -> None:
    found = pair(client, *two)
    assert (found.first.id, found.second.id) == two
    assert "not paired" in found.notes[0]
    assert any("different base commits" in note for note in found.notes)
    assert any("same code" in note for note in found.notes)
    (target,) = found.targets
    assert target.first is not None
    assert target.second is not None
    assert target.first.run_id != target.second.run_id
    (figure,) = found.figures
    assert figure.first is not None
    assert figure.second is not None
    assert (figure.first.candidate.mean, figure.second.candidate.mean) == (5.0, 40.0)  # type: ignore[union-attr]
    assert figure.change is FigureChange.SAME, "the scene gives both the verdict improvement"


def test_what_cannot_be_compared(client: httpx.Client, two: tuple[int, int]) -> None:
    assert client.get(f"{URL}/{two[0]}/compare/{two[0]}").status_code == 422
    assert client.get(f"{URL}/{two[0]}/compare/9999").status_code == 404


def test_an_unfinished_one_is_said_to_be(client: httpx.Client, scene: Scene, two: tuple[int, int]) -> None:
    number = scene.submission()
    found = pair(client, two[0], number)
    assert any(f"Submission {number} is not finished" in note for note in found.notes)
    assert [figure.change for figure in found.figures] == [FigureChange.ONLY_FIRST]


# --- cells ------------------------------------------------------------------------------------------------------


def cell(client: httpx.Client, run_id: int, **query: str) -> CellValues:
    answer = client.get(f"/api/v1/runs/{run_id}/values", params={"scenario": "fsync", **query})
    assert answer.status_code == 200, answer.text
    return CellValues.model_validate_json(answer.content)


def test_the_boots_behind_a_cell(client: httpx.Client, scene: Scene, sessions: SessionFactory) -> None:
    scene.devices()
    run_id = scene.measured(scene.submission(), {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0})
    found = cell(client, run_id, metric="locks", setting="scope=system")
    assert (found.unit, found.metric) == ("locks", "locks")
    assert [(point.block, point.position, point.arm, point.value) for point in found.points] == [
        (0, 0, Arm.BASELINE, 33.0),
        (0, 1, Arm.CANDIDATE, 5.0),
        (1, 0, Arm.BASELINE, 33.0),
        (1, 1, Arm.CANDIDATE, 5.0),
    ]
    assert [point.repetitions for point in found.points] == [[33.0] * 2, [5.0] * 2, [33.0] * 2, [5.0] * 2]
    assert {point.setting for point in cell(client, run_id, metric="locks").points} == {"scope=cache", "scope=system"}


def test_a_boots_value_is_the_compared_one_or_the_median(
    client: httpx.Client, scene: Scene, sessions: SessionFactory
) -> None:
    scene.devices()
    run_id = scene.measured(scene.submission(), {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0})
    with transaction(sessions) as session:
        boot_id = session.scalar(select(func.min(Boot.id)).where(Boot.valid))
        for value in session.scalars(select(BootValue).where(BootValue.boot_id == boot_id)):
            value.value = 34.0
        sample = session.get_one(Sample, (boot_id, "fsync", "scope=cache", 2, "locks"))
        sample.value = 43.0
    by_setting = {
        point.setting: point.value for point in cell(client, run_id, metric="locks").points if point.boot_id == boot_id
    }
    assert by_setting == {"scope=system": 34.0, "scope=cache": 38.0}


def test_cells_that_are_not_there(client: httpx.Client, scene: Scene) -> None:
    scene.devices()
    run_id = scene.measured(scene.submission(), {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0})
    wrong = client.get(f"/api/v1/runs/{run_id}/values", params={"scenario": "fsync", "metric": "lock"})
    assert wrong.status_code == 404
    assert "did you mean" in wrong.json()["detail"]
    assert client.get(f"/api/v1/runs/{run_id}/values", params={"scenario": "x", "metric": "locks"}).status_code == 404
    assert client.get("/api/v1/runs/9999/values", params={"scenario": "x", "metric": "y"}).status_code == 404
    assert client.get(f"/api/v1/runs/{run_id}/values", params={"metric": "locks"}).status_code == 422


# --- plans and trees --------------------------------------------------------------------------------------------


def test_a_plan_with_its_files(client: httpx.Client, scene: Scene) -> None:
    folder = scene.settings.data_dir / "testplans/flush"
    (folder / "README.md").write_text("What it measures.\n")
    (folder / "lib.sh").write_text("helper() { :; }\n")
    plan = client.get("/api/v1/plans/flush").json()
    assert plan["script"] == "echo measuring\n"
    assert (plan["files"], plan["readme"]) == ({"lib.sh": "helper() { :; }\n"}, "What it measures.\n")


def test_what_is_known_of_a_trees_head(client: httpx.Client, scene: Scene, sessions: SessionFactory) -> None:
    def tree() -> Any:
        return client.get("/api/v1/trees").json()[0]

    assert (tree()["base_commit"], tree()["resolved_at"]) == (None, None)
    number = scene.submission(request=REQUEST | {"series": None})
    with transaction(sessions) as session:
        apply = session.scalars(select(Apply).where(Apply.submission_id == number)).one()
        apply.state, apply.outcome, apply.finished_at = JobState.FINISHED, Outcome.PASSED, func.now()
        apply.result = _resolved(scene, "a" * 40)
    found = tree()
    assert (found["base_commit"], found["release"], found["failure"]) == ("a" * 40, "6.12.0", None)
    assert found["resolved_at"] is not None
    with transaction(sessions) as session:
        gone = Failure(kind="infrastructure", summary="cannot reach the tree")
        session.add(
            Apply(
                tree=scene.data.current().trees["t"], toolchain="gcc", state=JobState.FINISHED,
                outcome=Outcome.FAILED, failure=gone,
            )
        )  # fmt: skip
    assert tree()["failure"]["summary"] == "cannot reach the tree"
    assert tree()["base_commit"] == "a" * 40, "what was known stays known"


def _resolved(scene: Scene, commit: str) -> Any:
    from wqlab_contracts.messages import ApplyResult, Source

    tree = scene.data.current().trees["t"]
    source = Source(tree=tree, base_commit=commit, tree_oid="b" * 40, commit=commit, release="6.12.0")
    return ApplyResult(outcome=Outcome.PASSED, baseline=source, toolchain="gcc 12")


def test_nobody_reads_without_a_token(live: Live, scene: Scene) -> None:
    scene.devices()
    number = scene.submission()
    run_id = scene.run_id(number)
    with live.client(None) as nobody, live.client(Scope.READ) as reader:
        for path in (
            f"/submissions/{number}/steps",
            f"/submissions/{number}/versions",
            f"/runs/{run_id}/values?scenario=fsync&metric=locks",
            "/queue",
            "/lab/timeline",
            "/devices/tiny-1/history",
        ):
            assert nobody.get(f"/api/v1{path}").status_code == 401
            assert reader.get(f"/api/v1{path}").status_code == 200, path


def test_a_run_keeps_the_reports_verdict(client: httpx.Client, scene: Scene, sessions: SessionFactory) -> None:
    """What lists and steps say of a target is what its report says."""
    from wqlab_contracts.enums import SubmissionState
    from wqlab_server.pipeline import advance as pipeline

    scene.devices()
    number = scene.submission()
    scene.builds(number)
    scene.measured(number, {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0})
    with transaction(sessions) as session:
        session.get_one(Submission, number).state = SubmissionState.COMPARING
    pipeline.advance(sessions, scene.settings, number)
    (target,) = client.get(f"{URL}/{number}/report").json()["targets"]
    (summary,) = client.get(f"{URL}/{number}").json()["targets"]
    assert (summary["verdict"], summary["headline"]) == (target["verdict"], target["headline"])
    assert [row["id"] for row in client.get(URL, params={"verdict": summary["verdict"]}).json()["items"]] == [number]
    others = [verdict for verdict in Verdict if verdict.value != summary["verdict"]]
    assert all(client.get(URL, params={"verdict": verdict.value}).json()["items"] == [] for verdict in others)
    assert json.loads(client.get(f"{URL}/{number}/steps").text)["submission"]["targets"] == [summary]
