"""A look at what a submission by Message-ID would take, from the request to a worker's result."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import cast

import httpx
import pytest
from sqlalchemy import select

from wqlab_contracts.api.threads import ArchiveView, ThreadPreview
from wqlab_contracts.celery_names import JOB, LOOKUP_QUEUE
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.enums import ArtifactKind, JobState, Outcome, Scope
from wqlab_contracts.mails.inspection import inspect
from wqlab_contracts.messages import Artifact, ThreadSeries, protocol
from wqlab_contracts.messages.jobs import Claim, FinishJob
from wqlab_contracts.messages.thread_lookups import ThreadLookupJob, ThreadLookupResult
from wqlab_contracts.specs import Archive
from wqlab_server.http.archives import archive_problem
from wqlab_server.models import ThreadLookup
from wqlab_server.storage.db import Message, SessionFactory, make_factory

from ..support.live_server import Live
from ..support.scene import MBOX
from ..support.threads import taken_thread

pytestmark = pytest.mark.integration
THREAD = "/api/v1/archives/thread"
MAILS = Artifact(sha256="a" * 64, size=9, kind=ArtifactKind.SERIES, name="thread.mbox")


def preview(client: httpx.Client, message_id: str = "less-v1-1@x", wait_s: float = 0, **more: int) -> ThreadPreview:
    answer = client.get(THREAD, params={"message_id": message_id, "wait_s": wait_s, **more})
    assert answer.status_code == 200, answer.text
    return ThreadPreview.model_validate_json(answer.content)


def lookups(sessions: SessionFactory) -> list[ThreadLookup]:
    with sessions() as session:
        return list(session.scalars(select(ThreadLookup).order_by(ThreadLookup.id)))


class Worker:
    def __init__(self, live: Live) -> None:
        self.http = live.client(Scope.WORKER)
        self.http.headers.update(protocol.headers())

    def claim(self, number: int) -> Claim:
        answer = self.http.post(f"/api/worker/v1/jobs/{number}/claim", json={"worker": "w/1"})
        assert answer.status_code == 200, answer.text
        return Claim.model_validate_json(answer.content)

    def finish(self, number: int, fence: int, result: ThreadLookupResult) -> int:
        body = FinishJob(fence=fence, result=result).model_dump_json()
        headers = {"Content-Type": "application/json"}
        url = f"/api/worker/v1/jobs/{number}/finish"
        return self.http.post(url, content=body, headers=headers).status_code

    def answer(self, number: int) -> ThreadLookupResult:
        claim = self.claim(number)
        result = ThreadLookupResult(outcome=Outcome.PASSED, thread=taken_thread(MAILS), inspection=inspect(MBOX))
        assert self.finish(number, claim.fence, result) == 204
        return result


@pytest.fixture
def worker(live: Live) -> Worker:
    return Worker(live)


def test_archives_are_listed_in_their_order(client: httpx.Client) -> None:
    answer = client.get("/api/v1/archives")
    assert [ArchiveView.model_validate(each) for each in answer.json()] == [
        ArchiveView(
            name="lore",
            summary="all lists",
            url="https://lore.example.org/all/{message_id}/",
            list=None,
            searched=True,
            watchable=False,
        )
    ]


def test_request_waits_for_the_worker(live: Live, sessions: SessionFactory, worker: Worker) -> None:
    sent: list[Message] = []
    live.app.state.sessions = make_factory(sessions.kw["bind"], sent.append)
    with live.client(Scope.SUBMIT) as client:
        first = preview(client, "https://lore.kernel.org/all/less-v1-1@x/T/#t")
        assert (first.message_id, first.revision, first.state) == ("less-v1-1@x", None, JobState.QUEUED)
        assert (first.thread, first.inspection) == (None, None)
        assert sent == [Message(JOB, 1, LOOKUP_QUEUE)]
        answering = threading.Thread(target=worker.answer, args=[1])
        found: list[ThreadPreview] = []
        waiting = threading.Thread(target=lambda: found.append(preview(client, "<less-v1-1@x>", wait_s=20)))
        waiting.start()
        answering.start()
        answering.join()
        waiting.join()
    assert [(each.state, each.outcome) for each in found] == [(JobState.FINISHED, Outcome.PASSED)]
    assert found[0].thread == taken_thread(MAILS)
    assert found[0].inspection == inspect(MBOX)
    assert len(lookups(sessions)) == 1


def test_job_has_the_archives_and_the_revision(client: httpx.Client, worker: Worker) -> None:
    preview(client, revision=3)
    job = worker.claim(1).job
    assert isinstance(job, ThreadLookupJob)
    assert (job.series.message_id, job.series.revision) == ("less-v1-1@x", 3)
    assert [archive.name for archive in job.archives] == ["lore"]


def test_other_revisions_and_changed_archives_are_looked_up_anew(
    client: httpx.Client, sessions: SessionFactory, worker: Worker, live: Live
) -> None:
    preview(client)
    worker.answer(1)
    assert preview(client).state is JobState.FINISHED
    assert preview(client, revision=1).state is JobState.QUEUED
    archives = live.app.state.data.path / "intake/archives.yaml"
    archives.write_text(archives.read_text().replace("lore.example.org", "other.example.org"))
    live.app.state.data._checked_at = float("-inf")
    assert preview(client).state is JobState.QUEUED
    assert len(lookups(sessions)) == 3


@pytest.mark.parametrize(
    ("text", "detail"),
    [("nothing", "there is no Message-ID in 'nothing'"), ("https://lore.kernel.org/all/", "there is no Message-ID")],
)
def test_text_without_message_id_is_refused(client: httpx.Client, text: str, detail: str) -> None:
    answer = client.get(THREAD, params={"message_id": text})
    assert answer.status_code == 422 and detail in answer.json()["detail"]
    assert answer.json()["errors"][0]["parameter"] == "message_id"


def test_lab_without_archive_says_what_to_do(client: httpx.Client, live: Live) -> None:
    (live.app.state.data.path / "intake/archives.yaml").unlink()
    live.app.state.data._checked_at = float("-inf")
    answer = client.get(THREAD, params={"message_id": "a@b"})
    assert answer.status_code == 422 and "intake/archives.yaml" in answer.json()["detail"]
    assert client.get("/api/v1/archives").json() == []


def test_only_submitters_and_build_workers_have_access(live: Live) -> None:
    with live.client(Scope.READ) as reader:
        assert reader.get(THREAD, params={"message_id": "a@b"}).status_code == 403
        assert reader.post("/api/worker/v1/jobs/1/claim", json={"worker": "w"}).status_code == 403


@pytest.mark.parametrize(
    ("known", "named", "problem"),
    [
        ([], "12", "this lab does not know the Patchwork of series 12"),
        (["one"], "https://other.example.org/series/12/", "does not know the Patchwork of series https://other"),
        (
            ["one", "two"],
            "12",
            "this lab knows several Patchworks: write the URL of the series, such as https://one.ex",
        ),
        (["one", "two"], "https://two.example.org/api/1.3/series/12/", None),
        (["one"], "12", None),
    ],
)
def test_series_is_one_of_a_patchwork_that_the_lab_knows(known: list[str], named: str, problem: str | None) -> None:
    archives = [
        Archive(name=name, kind="patchwork", summary="", url=f"https://{name}.example.org") for name in ("lore", *known)
    ]
    archives[0] = Archive(name="lore", summary="", url="https://lore.example.org/all/{message_id}/")
    data = SimpleNamespace(archives=tuple(archives))
    found = archive_problem(cast(DataFolder, data), ThreadSeries(message_id=named))
    assert found is None if problem is None else found is not None and problem in found
