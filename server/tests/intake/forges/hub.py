"""A lab with one forge, a stub of its API, and a scripted worker that reads heads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from sqlalchemy import func, select, update

from wqlab_contracts.celery_names import DELIVER, FORGE_POLL, FORGE_SYNC
from wqlab_contracts.enums import JobKind, Outcome
from wqlab_contracts.forges_file import FILE
from wqlab_contracts.messages.forge_readings import ForgeReadingJob, ForgeReadingResult
from wqlab_server.intake.forges.poll import poll
from wqlab_server.intake.forges.sync import sync
from wqlab_server.models import Delivery, ForgeChange, ForgeHead, ForgeRepository, Submission
from wqlab_server.outbox.send import deliver

from ...support.forge import StubForge, stub_forge
from ...support.lab import LabUnderTest
from .recorded import event_headers, load

CONFIG = "targets: [locks@single]\nbranches: ['wq/*']\n"
BASE = "d" * 40
OPENED = {
    "github": "github-pull_request-opened",
    "gitea": "gitea-pull_request-opened",
    "gitlab": "gitlab-merge_request-open",
}
API = {"github": "github-api-pull", "gitea": "gitea-api-pull", "gitlab": "gitlab-api-merge_request"}
LABELED = {
    "github": "github-pull_request-labeled",
    "gitea": "gitea-pull_request-label_updated",
    "gitlab": "gitlab-merge_request-labeled",
}


class Hub:
    """A lab with one forge, whose worker reads `config` from each head."""

    def __init__(self, lab: LabUnderTest, stub: StubForge) -> None:
        self.lab, self.stub = lab, stub
        self.result = ForgeReadingResult(
            outcome=Outcome.PASSED, merge_base=BASE, config=CONFIG, paths=["kernel/workqueue.c"]
        )
        self.jobs: list[ForgeReadingJob] = []
        self.deliveries = 0

    def post(
        self, name: str, event: str = "pull_request", delivery: str | None = None, payload: Any = None, **headers: str
    ) -> httpx2.Response:
        self.deliveries += 1
        body = json.dumps(load(name) if payload is None else payload).encode()
        sent = event_headers(self.stub.kind, event, body, delivery or str(self.deliveries)) | headers
        answer: httpx2.Response = self.lab.client.post("/api/v1/forges/hub/events", content=body, headers=sent)
        return answer

    def event(self, name: str, event: str = "pull_request", **more: Any) -> None:
        """Post an event, and do all that follows except the measurement."""
        answer = self.post(name, event, **more)
        assert answer.status_code == 202, answer.text
        assert answer.json()["result"].startswith("taken: ")
        self.settle()

    def settle(self) -> None:
        self._handle()
        for _ in range(3):
            left = len(self.lab.sent)
            self.lab.tick()
            if len(self.lab.sent) == left:
                break
            self._handle()

    def _handle(self) -> None:
        kept = []
        while self.lab.sent:
            message = self.lab.sent.pop(0)
            if message.task == FORGE_SYNC and message.id:
                sync(self.lab.sessions, self.lab.settings, message.id)
            elif message.task == FORGE_POLL:
                pass  # a test polls when it wants to
            elif message.task == JobKind.READ_HEAD and message.id:
                self._read(message.id)
            elif message.task == DELIVER and message.id:
                deliver(self.lab.sessions, self.lab.settings, message.id)
            else:
                kept.append(message)
        self.lab.sent.extend(kept)

    def _read(self, head_id: int) -> None:
        claim = self.lab.worker.claim(head_id)
        if claim is not None:
            self.jobs.append(ForgeReadingJob.model_validate(claim["job"]))
            self.lab.worker.finish(head_id, claim["fence"], self.result)

    def measure(self) -> None:
        """Finish all submissions, and tell the forge."""
        self.lab.until_idle()
        with self.lab.transaction() as session:
            session.execute(update(Delivery).values(nudged_at=None))
        self.settle()

    def poll(self) -> ForgeRepository:
        """Poll the repository now, do what follows, and return what is known of it."""
        self.lab.tick()
        with self.lab.transaction() as session:
            session.execute(update(ForgeRepository).values(due_at=func.now()))
            number = session.scalars(select(ForgeRepository.id)).one()
        poll(self.lab.sessions, self.lab.settings, number)
        self.settle()
        return self.repository()

    def repository(self) -> ForgeRepository:
        with self.lab.transaction() as session:
            return session.scalars(select(ForgeRepository)).one()

    def all_due(self) -> None:
        """Make failed attempts due."""
        past = func.now() - timedelta(hours=3)
        with self.lab.transaction() as session:
            session.execute(update(ForgeChange).where(ForgeChange.due_at.is_not(None)).values(due_at=past))
            session.execute(update(Delivery).where(Delivery.next_at.is_not(None)).values(next_at=past, nudged_at=None))

    def set_head(self, commit: str, updated: str = "2026-01-12T11:00:00Z", **more: Any) -> None:
        pull = self.stub.pulls[7]
        head = {"sha": commit} if self.stub.kind == "gitlab" else {"head": {**pull["head"], "sha": commit}}
        self.stub.pulls[7] = {**pull, **head, "updated_at": updated, **more}

    def set_labels(self, *labels: str) -> None:
        named = list(labels) if self.stub.kind == "gitlab" else [{"name": label} for label in labels]
        self.stub.pulls[7] = {**self.stub.pulls[7], "labels": named}

    @property
    def submissions(self) -> list[Submission]:
        with self.lab.transaction() as session:
            return list(session.scalars(select(Submission).order_by(Submission.id)))

    def heads(self) -> list[ForgeHead]:
        with self.lab.transaction() as session:
            return list(session.scalars(select(ForgeHead).order_by(ForgeHead.id)))

    def sent(self) -> list[Delivery]:
        with self.lab.transaction() as session:
            return list(session.scalars(select(Delivery).order_by(Delivery.id)))


def make_hub(request: pytest.FixtureRequest, kind: str, data_dir: Path, folder: Path, **more: Any) -> Iterator[Hub]:
    with stub_forge(kind) as stub:
        forge = stub.config(folder, **more).model_dump(mode="json", exclude_defaults=True)
        (data_dir / FILE).write_text(yaml.safe_dump({"forges": [forge]}))
        lab: LabUnderTest = request.getfixturevalue("lab")
        lab.mark_all_good()
        stub.pulls[7] = load(API[kind])
        yield Hub(lab, stub)
        assert lab.tick_errors() == {}


github_only_by_default = pytest.mark.parametrize(
    "hub",
    ["github", *(pytest.param(each, marks=pytest.mark.nightly) for each in ("gitlab", "gitea"))],
    indirect=True,
)
"""For a slow test: one kind of forge in the default suite, all in the nightly one."""


@pytest.fixture(params=["github", "gitlab", "gitea"])
def hub(request: pytest.FixtureRequest, data_dir: Path, tmp_path: Path) -> Iterator[Hub]:
    yield from make_hub(request, request.param, data_dir, tmp_path)


@pytest.fixture
def github(request: pytest.FixtureRequest, data_dir: Path, tmp_path: Path) -> Iterator[Hub]:
    yield from make_hub(request, "github", data_dir, tmp_path)


@pytest.fixture(params=["github", "gitlab", "gitea"])
def labeled(request: pytest.FixtureRequest, data_dir: Path, tmp_path: Path) -> Iterator[Hub]:
    """A forge whose label `wqlab: ok` allows a commit; its pull request is from a fork."""
    for hub in make_hub(request, request.param, data_dir, tmp_path, label="wqlab: ok"):
        hub.stub.pulls[7] = load(f"{API[request.param]}-fork")
        hub.stub.writers |= {"wendy", "12"}
        yield hub
