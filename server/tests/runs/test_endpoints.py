"""Endpoints of runs: boots, samples, consoles, values."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from sqlalchemy import func, select, text

from wqlab_comparison.csvfile import read_csv
from wqlab_contracts.api.runs import RunView, SampleRow
from wqlab_contracts.api.steps import (
    CellValues,
)
from wqlab_contracts.enums import (
    Arm,
    ArtifactKind,
    FindingKind,
    Scope,
)
from wqlab_contracts.messages import Artifact
from wqlab_server.models import Artifact as StoredArtifact
from wqlab_server.models import ArtifactLink, Boot, BootValue, Sample
from wqlab_server.storage.db import SessionFactory, transaction

from ..support.live_server import Live, expect
from ..support.scene import Scene

pytestmark = pytest.mark.integration
LOCKS = {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0}


def test_only_artifacts_of_the_run_are_listed_and_sent(client: httpx.Client, scene: Scene, run_id: int) -> None:
    url = f"/api/v1/runs/{run_id}/artifacts"
    assert expect(client.get(url)).json() == []
    raw = scene.artifact(ArtifactKind.RAW_OUTPUT, "block-1-baseline.txt", "what fio said\n")
    other = scene.artifact(ArtifactKind.RAW_OUTPUT, "other.txt", "of nobody\n")
    with transaction(scene.sessions) as session:
        for one in (raw, other):
            session.merge(StoredArtifact(sha256=one.sha256, size=one.size))
        session.flush()
        session.add(ArtifactLink(sha256=raw.sha256, job_id=run_id, kind=raw.kind, name=raw.name))
    assert [Artifact.model_validate(each) for each in expect(client.get(url)).json()] == [raw]
    sent = expect(client.get(f"{url}/{raw.sha256}"))
    assert sent.content == b"what fio said\n"
    assert sent.headers["content-disposition"].startswith("attachment")
    assert expect(client.get(f"{url}/{other.sha256}"), 404).json()["detail"]


@pytest.fixture
def run_id(scene: Scene) -> int:
    scene.devices()
    number = scene.submission()
    scene.builds(number)
    return scene.measured(number, LOCKS)


def test_run_shows_boots_and_findings(client: httpx.Client, run_id: int) -> None:
    run = RunView.model_validate_json(expect(client.get(f"/api/v1/runs/{run_id}")).content)
    assert (run.blocks_planned, run.blocks_completed, run.device) == (2, 2, "tiny-1")
    assert [boot.valid for boot in run.boots] == [False, True, True, True, True]
    assert [(finding.kind, finding.arm) for finding in run.findings] == [(FindingKind.PANIC, Arm.CANDIDATE)]


def test_json_samples_are_of_valid_boots_by_default(client: httpx.Client, scene: Scene, run_id: int) -> None:
    lost = scene.boot(run_id, block=1, attempt=9, valid=False, values={"locks": 1.0})
    url = f"/api/v1/runs/{run_id}/samples"
    rows = [SampleRow.model_validate(each) for each in expect(client.get(url)).json()]
    assert len(rows) == 4 * 2 * 2 * 3
    assert lost not in {row.boot_id for row in rows}
    everything = expect(client.get(url, params={"discarded": True})).json()
    assert lost in {row["boot_id"] for row in everything}
    assert client.get(url, params={"format": "csv", "discarded": True}).status_code == 422


@pytest.mark.nightly
def test_samples_are_streamed_and_slow_readers_leave_threads_for_others(live: Live, scene: Scene, run_id: int) -> None:
    with transaction(scene.sessions) as session:
        session.execute(
            text(
                "INSERT INTO samples (run_id, boot_id, scenario, setting, repetition, metric, value, warmup) SELECT"
                " :run, first.boot_id, 'fsync', 'scope=system', number, 'locks', number, false"
                " FROM (SELECT min(boot_id) AS boot_id FROM samples WHERE run_id = :run) first,"
                " generate_series(1000, 120999) number"
            ),
            {"run": run_id},
        )
    url = f"/api/v1/runs/{run_id}/samples"
    with ExitStack() as stack:
        slow, other = (stack.enter_context(live.client(scope)) for scope in (Scope.READ, Scope.ADMIN))
        for format_ in ("json", "csv", "json"):
            unread = stack.enter_context(slow.stream("GET", url, params={"format": format_}))
            assert (unread.status_code, unread.headers["transfer-encoding"]) == (200, "chunked")
        refused = slow.get(url)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert "3 reports and exports in progress" in refused.json()["detail"]
        assert len(expect(other.get(url)).json()) >= 120_000
        lines = expect(other.get(url, params={"format": "csv"})).text.splitlines()
    assert len(lines) >= 120_000
    assert [number for number, line in enumerate(lines) if line.startswith("device_type,")] == [0]


def test_csv_samples_can_be_compared(client: httpx.Client, run_id: int, tmp_path: Path) -> None:
    answer = expect(client.get(f"/api/v1/runs/{run_id}/samples", params={"format": "csv"}))
    assert answer.headers["content-type"].startswith("text/csv")
    file = tmp_path / "run.csv"
    file.write_text(answer.text)
    samples = read_csv(file)
    assert len(samples) == 48
    assert set(samples.role.words) == {"primary", "explanatory"}
    assert set(samples.evidence.words) == {"mechanism", "none"}
    assert samples.value.max() == 101.0
    assert int(samples.warmup.sum()) == 16


def test_csv_samples_before_the_first_boot_are_a_header(client: httpx.Client, scene: Scene) -> None:
    run_id = scene.run_id(scene.submission())
    text = expect(client.get(f"/api/v1/runs/{run_id}/samples", params={"format": "csv"})).text
    assert text.startswith("device_type,device,plan,")
    assert text.count("\n") == 1


def test_console_is_sent_from_any_offset(client: httpx.Client, scene: Scene, run_id: int) -> None:
    boot = scene.boot(run_id, block=7)
    for offset in range(0, 400, 4):
        scene.console(boot, offset, b"a\xff\0\n")
    url = f"/api/v1/runs/{run_id}/console"
    whole = expect(client.get(url, params={"boot": boot}))
    assert whole.content == b"a\xff\0\n" * 100
    assert whole.headers["content-type"].startswith("text/plain")
    assert expect(client.get(url, params={"boot": boot, "offset": 398})).content == b"\0\n"
    assert expect(client.get(url, params={"boot": boot, "offset": 400})).content == b""
    newest = expect(client.get(url))
    assert (newest.headers["x-wqlab-boot"], newest.content) == (str(boot), whole.content)


def test_followed_console_of_a_finished_run_ends(live: Live, scene: Scene, run_id: int) -> None:
    boot = scene.boot(run_id, block=7, finished=False)
    scene.console(boot, 0, b"one ")
    with (
        live.client(Scope.READ) as client,
        client.stream("GET", f"/api/v1/runs/{run_id}/console", params={"boot": boot, "follow": True}) as answer,
    ):
        pieces = answer.iter_bytes()
        assert next(pieces) == b"one "
        assert list(pieces) == []


def test_console_is_followed_while_it_grows(live: Live, scene: Scene) -> None:
    scene.devices()
    run_id = scene.run_id(scene.submission())
    boot = scene.boot(run_id, finished=False)
    scene.console(boot, 0, b"one ")
    with (
        live.client(Scope.READ) as client,
        client.stream("GET", f"/api/v1/runs/{run_id}/console", params={"boot": boot, "follow": True}) as answer,
    ):
        pieces = answer.iter_bytes()
        assert next(pieces) == b"one "
        threading.Thread(target=scene.console, args=(boot, 4, b"two")).start()
        assert next(pieces) == b"two"
        scene.end_boot(boot)
        assert list(pieces) == []


def test_missing_consoles_are_not_found(client: httpx.Client, scene: Scene, run_id: int) -> None:
    waiting = scene.run_id(scene.submission())
    assert "no boot yet" in expect(client.get(f"/api/v1/runs/{waiting}/console"), 404).json()["detail"]
    other = client.get(f"/api/v1/runs/{run_id}").json()["boots"][0]["id"]
    assert client.get(f"/api/v1/runs/{waiting}/console", params={"boot": other}).status_code == 404


def cell(client: httpx.Client, run_id: int, **query: str) -> CellValues:
    answer = client.get(f"/api/v1/runs/{run_id}/values", params={"scenario": "fsync", **query})
    assert answer.status_code == 200, answer.text
    return CellValues.model_validate_json(answer.content)


def test_cell_values_are_listed_by_boot(client: httpx.Client, scene: Scene, sessions: SessionFactory) -> None:
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


def test_value_of_a_boot_is_the_compared_one_or_the_median(
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


def test_unknown_cells_are_not_found(client: httpx.Client, scene: Scene) -> None:
    scene.devices()
    run_id = scene.measured(scene.submission(), {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0})
    wrong = client.get(f"/api/v1/runs/{run_id}/values", params={"scenario": "fsync", "metric": "lock"})
    assert wrong.status_code == 404
    assert "did you mean" in wrong.json()["detail"]
    assert client.get(f"/api/v1/runs/{run_id}/values", params={"scenario": "x", "metric": "locks"}).status_code == 404
    assert client.get("/api/v1/runs/9999/values", params={"scenario": "x", "metric": "y"}).status_code == 404
    assert client.get(f"/api/v1/runs/{run_id}/values", params={"metric": "locks"}).status_code == 422
