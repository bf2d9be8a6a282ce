"""A real Patchwork: a series is submitted by its URL, applied by the real worker, and its patch shows the checks.

It also compares the recorded answers, which the tests by day use, with those of the real Patchwork.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from sqlalchemy import create_engine, select, text

from wqlab_contracts.archives_file import FILE
from wqlab_contracts.celery_names import ADVANCE
from wqlab_contracts.enums import DeliveryKind, DeliveryState, Outcome
from wqlab_contracts.messages import Series, ThreadSeries
from wqlab_server.models import Apply, Delivery, Submission
from wqlab_server.outbox.send import deliver
from wqlab_server.settings import Settings
from wqlab_worker.claims import jobs
from wqlab_worker.settings import Settings as WorkerSettings

from ..conftest import Stores
from ..support.datafolder import write_data_folder
from ..support.lab import LabUnderTest
from ..support.live_server import serving
from ..support.patchwork import Patchwork, patchwork
from .test_real_worker import WORKER_TESTS, Kernel

sys.path.insert(0, str(WORKER_TESTS))
from thread_mails import mail, series

pytestmark = [pytest.mark.integration, pytest.mark.nightly]
READS = WORKER_TESTS / "intake/patchwork-3.2.1.json"
WRITES = Path(__file__).parents[1] / "outbox/patchwork-3.2.1.json"


@pytest.fixture(scope="module")
def server(postgres: str, stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Patchwork]:
    admin = create_engine(postgres.format("postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text("CREATE DATABASE patchwork"))
    admin.dispose()
    with patchwork(tmp_path_factory.mktemp("patchwork"), stores.folder) as running:
        for each in [*series("less"), *series("half", patches=3)[:2]]:
            running.receive(each.partition("\n")[2])
        reply = mail(
            "Re: [PATCH 1/2] less: part 1", "tag@x", to="less-v1-1@x", body="Reviewed-by: Bo <bo@example.org>\n"
        )
        running.receive(reply.partition("\n")[2])
        yield running


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path / "linux")


@pytest.fixture
def data_dir(tmp_path: Path, server: Patchwork, kernel: Kernel) -> Path:
    folder = tmp_path / "data"
    write_data_folder(folder)
    (folder / "kernels/trees.yaml").write_text(
        f"default: lab-tree\ntrees: [{{name: lab-tree, summary: s, url: {kernel.path}}}]\n"
    )
    configure(folder, server, "bot")
    return folder


def configure(folder: Path, server: Patchwork, account: str) -> None:
    (folder / "token").write_text(server.tokens[account])
    checks = {"project": "wq", "token_file": str(folder / "token"), "owners": ["dev"]}
    archive = {"name": "pw", "kind": "patchwork", "summary": "s", "url": server.url, "private": True, "checks": checks}
    (folder / FILE).write_text(yaml.safe_dump({"archives": [archive]}))


@pytest.fixture
def settings(settings: Settings, kernel: Kernel) -> Settings:
    return settings.model_copy(update={"local_git_paths": str(kernel.path)})


def send(lab: LabUnderTest) -> list[tuple[DeliveryState, str]]:
    """Send each check that waits; return its state and what the Patchwork answered to the last attempt."""
    with lab.transaction() as session:
        waiting = select(Delivery.id).where(
            Delivery.kind == DeliveryKind.PATCHWORK_CHECK, Delivery.state == DeliveryState.WAITING
        )
        numbers = session.scalars(waiting.order_by(Delivery.id)).all()
    results = [deliver(lab.sessions, lab.settings, number) for number in numbers]
    with lab.transaction() as session:
        states = [session.get_one(Delivery, number).state for number in numbers]
    return [(state, result.problem) for state, result in zip(states, results, strict=True) if result is not None]


def checks(server: Patchwork, message_id: str) -> list[tuple[str, str, str]]:
    """Return context, state and target of the checks that Patchwork shows, oldest first."""
    (patch,) = server.get(f"/api/1.3/patches/?msgid={message_id}").json()
    listed: list[dict[str, Any]] = server.get(f"/api/1.3/patches/{patch['id']}/checks/").json()
    return [(each["context"], each["state"], each["target_url"]) for each in listed]


def test_series_is_measured_and_its_last_patch_shows_the_checks(
    lab: LabUnderTest,
    server: Patchwork,
    kernel: Kernel,
    data_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab.mark_all_good()
    kernel.git("switch", "--quiet", "-c", "topic")
    for old, new in (("512", "1024"), ("1024", "2048")):
        kernel.edit(old, new)
        kernel.commit(f"workqueue: raise max_active to {new}")
    for each in kernel.mails(1):
        # Patchwork has one name for an address, that of the last mail; the recorded answers have another one.
        server.receive(each.partition("\n")[2].replace("ada@example.org", "grace@example.org"))
    number = server.get("/api/1.3/series/?order=-id").json()[0]["id"]

    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setenv("WQLAB_CACHE", str(cache))
    monkeypatch.setenv("WQLAB_LOCAL_GIT_PATHS", str(kernel.path))
    page = f"{server.url}/project/wq/list/?series={number}"
    submission = lab.submit("locks@single", series=Series(thread=ThreadSeries(message_id=page)))
    with lab.transaction() as session:
        job = session.scalars(select(Apply.id).where(Apply.submission_id == submission)).one()
    with serving(lab.app) as url:
        settings = WorkerSettings(server_url=url, worker_token=lab.worker_token, cache=cache, state=tmp_path / "state")
        jobs.process(job, settings)
    lab.work(ADVANCE)
    report = f"{lab.settings.public_url}/r/{submission}"
    assert send(lab) == [(DeliveryState.DELIVERED, "")]
    assert checks(server, "v1-2@kernel.example") == [("wqlab-locks-single", "pending", report)]
    assert checks(server, "v1-1@kernel.example") == []

    done = lab.finished(submission)
    assert (done.outcome, done.title, done.version) == (Outcome.PASSED, "workqueue: more", 1)
    with lab.transaction() as session:
        result = session.get_one(Apply, job).result
        assert result is not None and result.thread is not None and result.baseline is not None
        assert result.thread.url == page
        assert result.baseline.base_commit == kernel.git("rev-parse", "master").strip(), "base-commit: survives"
        assert [patch.subject for patch in result.patches] == [
            "workqueue: raise max_active to 1024", "workqueue: raise max_active to 2048",
        ]  # fmt: skip
        assert session.get_one(Submission, submission).author.startswith("ada")

    # The check is refused with a reason, and delivered once the operator has changed the token.
    configure(data_dir, server, "stranger")
    ((state, problem),) = send(lab)
    assert state is DeliveryState.WAITING and "403: You do not have permission to perform this action." in problem
    configure(data_dir, server, "bot")
    with lab.transaction() as session:
        for delivery in session.scalars(select(Delivery).where(Delivery.state == DeliveryState.WAITING)):
            delivery.next_at = delivery.created_at
    assert send(lab) == [(DeliveryState.DELIVERED, "")]
    assert checks(server, "v1-2@kernel.example")[1:] == [("wqlab-locks-single", "success", report)]


def test_recorded_answers_are_those_of_a_real_patchwork(server: Patchwork) -> None:
    for name, recorded in json.loads(READS.read_text()).items():
        answer = server.get(name.removeprefix("GET "))
        assert answer.status_code == recorded["status"], name
        if answer.status_code == 200:
            assert normalised(answer.text, server.url) == normalised(recorded["body"], "BASE"), name
    recorded = json.loads(WRITES.read_text())
    check = {"state": "warning", "context": "wqlab-x", "description": "d", "target_url": "https://lab.example.org/r/7"}
    for name, account, patch, change in (
        ("POST bot", server.tokens["bot"], 2, {}),
        ("POST stranger", server.tokens["stranger"], 2, {}),
        ("POST wrong token", "nonsense", 2, {}),
        ("POST bad context", server.tokens["bot"], 2, {"context": "a.b"}),
        ("POST deleted", server.tokens["bot"], 99999, {}),
    ):
        answer = httpx.post(
            f"{server.url}/api/1.3/patches/{patch}/checks/", json=check | change, timeout=None,
            headers={"Authorization": f"Token {account}"},
        )  # fmt: skip
        assert answer.status_code == recorded[name]["status"], name
        if answer.status_code >= 400:
            assert answer.json() == json.loads(recorded[name]["body"]), name


def normalised(answer: str, base: str) -> str:
    """Return an answer without the address of the server and the state of checks, which other tests change."""
    return re.sub(r'"check":"[a-z]+"', "", answer.replace(base, "BASE"))
