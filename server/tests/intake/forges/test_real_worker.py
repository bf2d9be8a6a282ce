"""A pull request's event over HTTP: the real worker reads its head and applies its commits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from sqlalchemy import select

from wqlab_contracts.enums import JobState, Outcome, Scope, UserRole
from wqlab_contracts.forges_file import FILE
from wqlab_server.intake.forges.sync import sync
from wqlab_server.models import Apply, ForgeChange, ForgeHead, HeadReading
from wqlab_server.pipeline.forges import read_forges
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, transaction
from wqlab_server.storage.live_data import LiveData
from wqlab_server.tick.run_sources import admit_orders, place_orders
from wqlab_worker.claims import jobs
from wqlab_worker.settings import Settings as WorkerSettings

from ...support.forge import StubForge, stub_forge
from ...support.live_server import Live, expect
from ...support.people import add_user
from ..test_real_worker import Kernel
from .recorded import event_headers, load

pytestmark = pytest.mark.integration


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path / "linux")


@pytest.fixture
def stub() -> Iterator[StubForge]:
    with stub_forge("gitea") as stub:
        yield stub


@pytest.fixture
def scene_data_dir(scene_data_dir: Path, stub: StubForge, kernel: Kernel, tmp_path: Path) -> Path:
    (scene_data_dir / "kernels/trees.yaml").write_text(
        f"default: t\ntrees: [{{name: t, summary: s, url: {kernel.path}}}]\n"
    )
    forge = stub.config(tmp_path).model_dump(mode="json", exclude_defaults=True)
    forge |= {"tree": "t", "owner": "forge-owner", "git": str(kernel.path)}
    (scene_data_dir / "intake").mkdir(exist_ok=True)
    (scene_data_dir / FILE).write_text(yaml.safe_dump({"forges": [forge]}))
    return scene_data_dir


def test_head_is_read_and_applied(
    live: Live,
    client: httpx.Client,
    sessions: SessionFactory,
    stub: StubForge,
    kernel: Kernel,
    scene_data_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel.git("branch", "for-next")
    kernel.git("switch", "--quiet", "-c", "wake-one")
    kernel.edit("512", "1024")
    (kernel.path / ".wqlab.yaml").write_text("targets: [flush@tiny]\npaths: [kernel/]\n")
    kernel.commit("workqueue: raise max_active\n\nSigned-off-by: Ada Tester <ada@example.org>")
    head = kernel.git("rev-parse", "HEAD").strip()
    kernel.git("switch", "--quiet", "master")
    pull = load("gitea-api-pull")
    stub.pulls[7] = pull | {"head": pull["head"] | {"sha": head}}
    with transaction(sessions) as session:
        add_user(session, "forge-owner", UserRole.SUBMITTER)

    body = json.dumps(load("gitea-pull_request-opened")).encode()
    headers = event_headers("gitea", "pull_request", body)
    answer = expect(client.post("/api/v1/forges/hub/events", content=body, headers=headers), 202)
    assert answer.json() == {"result": "taken: pull/7"}
    configured: Settings = live.app.state.settings
    settings = configured.model_copy(update={"data_dir": scene_data_dir, "local_git_paths": str(kernel.path)})
    with transaction(sessions) as session:
        change_id = session.scalars(select(ForgeChange.id)).one()
    sync(sessions, settings, change_id)

    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setenv("WQLAB_CACHE", str(cache))
    monkeypatch.setenv("WQLAB_LOCAL_GIT_PATHS", str(kernel.path))
    worker = WorkerSettings(
        server_url=live.url, worker_token=live.secrets[Scope.WORKER], cache=cache, state=tmp_path / "state"
    )
    read_forges(sessions, settings, LiveData(scene_data_dir).current())
    with transaction(sessions) as session:
        head_id, reading_id = session.execute(select(ForgeHead.id, HeadReading.id).join(ForgeHead.reading)).one()
    jobs.process(reading_id, worker)
    place_orders(sessions, settings, LiveData(scene_data_dir).current())
    admit_orders(sessions, settings, LiveData(scene_data_dir).current())
    with transaction(sessions) as session:
        row = session.get_one(ForgeHead, head_id)
        reading = session.get_one(HeadReading, reading_id)
        assert (reading.state, reading.outcome, row.reason) == (JobState.FINISHED, Outcome.PASSED, "")
        assert reading.result is not None
        assert reading.result.paths == [".wqlab.yaml", "kernel/workqueue.c"]
        apply_id = session.scalars(select(Apply.id).where(Apply.submission_id == row.submission_id)).one()
    jobs.process(apply_id, worker)
    with transaction(sessions) as session:
        apply = session.get_one(Apply, apply_id)
        assert apply.outcome is Outcome.PASSED, apply.failure
        assert apply.result is not None
        assert [patch.subject for patch in apply.result.patches] == ["workqueue: raise max_active"]
