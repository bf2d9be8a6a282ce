"""Series are read and applied by the real worker over HTTP: a Message-ID from a real public-inbox, and a branch."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

from wqlab_client.client import Client
from wqlab_client.errors import UsageError
from wqlab_contracts.api.submissions import SubmissionView
from wqlab_contracts.api.threads import ThreadPreview
from wqlab_contracts.celery_names import JOB
from wqlab_contracts.enums import JobState, Outcome, Scope
from wqlab_contracts.mail import OutgoingMail
from wqlab_contracts.messages import GitSeries, Series
from wqlab_server.models import Apply
from wqlab_server.pipeline.advance import advance
from wqlab_server.storage import source_mails
from wqlab_server.storage.db import Message, SessionFactory, make_factory, transaction
from wqlab_worker.claims import jobs
from wqlab_worker.settings import Settings as WorkerSettings

from ..support.live_server import Live, expect
from ..support.scene import Scene

WORKER_TESTS = Path(__file__).parents[3] / "worker" / "tests"
sys.path.insert(0, str(WORKER_TESTS))
from publicinbox import PublicInbox, public_inbox  # noqa: E402

pytestmark = pytest.mark.integration


class Kernel:
    """A developer's clone of the toy kernel."""

    def __init__(self, path: Path) -> None:
        self.path = path
        shutil.copytree(WORKER_TESTS / "fakekernel", path)
        self.git("init", "--quiet", "--initial-branch=master")
        self.commit("toy: start")

    def git(self, *arguments: str) -> str:
        identity = {
            f"GIT_{who}_{what}": f"ada{'@example.org' * (what == 'EMAIL')}"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": str(self.path), **identity}
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", message)

    def edit(self, old: str, new: str) -> None:
        file = self.path / "kernel/workqueue.c"
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))

    def mails(self, version: int) -> list[str]:
        """Return the branch's patches as mails with ids of their own, `vN-M@kernel.example`."""
        text = self.git(
            "format-patch", "--stdout", "--cover-letter", "--thread", f"-v{version}", "--base=master", "master.."
        )
        text = text.replace("*** SUBJECT HERE ***", "workqueue: more")
        ids = re.findall(r"(?im)^message-id: <(.*)>$", text)
        for number, each in enumerate(ids):
            text = text.replace(f"<{each}>", f"<v{version}-{number}@kernel.example>")
        return [f"{part.rstrip()}\n\n" for part in re.split(r"(?m)^(?=From [0-9a-f]{40} )", text)[1:]]


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[PublicInbox]:
    with public_inbox(tmp_path / "archive") as inbox:
        yield inbox


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path / "linux")


@pytest.fixture
def scene_data_dir(scene_data_dir: Path, inbox: PublicInbox, kernel: Kernel) -> Path:
    """The data folder of `scene`, with the toy kernel as its tree and the archive on loopback."""
    (scene_data_dir / "kernels/trees.yaml").write_text(
        f"default: t\ntrees: [{{name: t, summary: s, url: {kernel.path}}}]\n"
    )
    (scene_data_dir / "intake/archives.yaml").write_text(
        "archives:\n"
        f"  - {{name: ours, summary: s, private: true, url: '{inbox.url}/{{message_id}}/',"
        f" search: '{inbox.url}/?x=m&t=1&q={{query}}'}}\n"
    )
    return scene_data_dir


@pytest.fixture
def worker(live: Live, tmp_path: Path, kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> WorkerSettings:
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setenv("WQLAB_CACHE", str(cache))
    monkeypatch.setenv("WQLAB_LOCAL_GIT_PATHS", str(kernel.path))
    return WorkerSettings(
        server_url=live.url, worker_token=live.secrets[Scope.WORKER], cache=cache, state=tmp_path / "state"
    )


def submit(client: httpx.Client, message_id: str, revision: int | None = None) -> SubmissionView:
    body = {
        "series": {"thread": {"message_id": message_id, "revision": revision}},
        "tree": "t",
        "targets": [{"plan": "flush", "device_type": "tiny"}],
    }
    return SubmissionView.model_validate_json(expect(client.post("/api/v1/submissions", json=body), 201).content)


def apply_series(sessions: SessionFactory, submission_id: int, worker: WorkerSettings) -> None:
    """Let the worker apply the series of a submission."""
    with transaction(sessions) as session:
        job_id = session.scalars(select(Apply.id).where(Apply.submission_id == submission_id)).one()
    jobs.process(job_id, worker)


def test_message_id_becomes_an_applied_series(
    live: Live,
    client: httpx.Client,
    sessions: SessionFactory,
    worker: WorkerSettings,
    kernel: Kernel,
    inbox: PublicInbox,
) -> None:
    kernel.git("switch", "--quiet", "-c", "topic")
    kernel.edit("512", "1024")
    kernel.commit("workqueue: raise max_active")
    first = kernel.mails(1)
    kernel.edit("1024", "2048")
    kernel.git("commit", "--quiet", "--all", "--amend", "--no-edit")
    inbox.receive(first[0])  # as a mail server delivers them
    inbox.import_mails([*first[1:], *kernel.mails(2)])

    # The form shows what would be taken, found by the real worker.
    url = f"{inbox.url}/v1-1@kernel.example/T/#u"
    expect(client.get("/api/v1/archives/thread", params={"message_id": url, "wait_s": 0}))
    jobs.process(1, worker)
    answer = expect(client.get("/api/v1/archives/thread", params={"message_id": url}))
    seen = ThreadPreview.model_validate_json(answer.content)
    assert (seen.state, seen.outcome, seen.failure) == (JobState.FINISHED, Outcome.PASSED, None)
    assert seen.thread is not None and (seen.thread.revision, seen.thread.revisions) == (2, [1, 2])
    assert seen.inspection is not None and seen.inspection.usable and seen.inspection.insertions == 1

    # The submission takes the same mails.
    number = submit(client, url).id
    apply_series(sessions, number, worker)
    advance(sessions, live.app.state.settings, number)
    applied = SubmissionView.model_validate_json(expect(client.get(f"/api/v1/submissions/{number}")).content)
    assert (applied.apply.state, applied.apply.outcome, applied.apply.failure) == (
        JobState.FINISHED,
        Outcome.PASSED,
        None,
    )
    assert applied.apply.thread is not None
    assert [mail.message_id for mail in applied.apply.thread.mails] == ["v2-0@kernel.example", "v2-1@kernel.example"]
    assert applied.apply.thread.mails == seen.thread.mails
    assert (applied.title, applied.version) == ("workqueue: more", 2)
    assert len(applied.builds) == 2
    mail = OutgoingMail.model_validate_json(expect(client.get(f"/api/v1/submissions/{number}/mail")).content)
    assert (mail.in_reply_to, mail.subject[:4]) == ("v2-0@kernel.example", "Re: ")
    with transaction(sessions) as session:
        source = source_mails.find(session, number)
    assert source is not None and source.verified
    assert b"+int max_active = 2048;" in expect(client.get(f"/api/v1/submissions/{number}/mbox")).content
    series = expect(client.get(f"/api/v1/submissions/{number}/series")).text
    assert "+int max_active = 2048;" in series

    # An upload of v1 is a version of the same series.
    body = {
        "series": {"mbox": {"text": "".join(first)}},
        "tree": "t",
        "targets": [{"plan": "flush", "device_type": "tiny"}],
    }
    uploaded = expect(client.post("/api/v1/submissions", json=body), 201).json()["id"]
    apply_series(sessions, uploaded, worker)
    advance(sessions, live.app.state.settings, uploaded)
    versions = expect(client.get(f"/api/v1/submissions/{uploaded}/versions")).json()
    assert [(each["id"], each["version"]) for each in versions] == [(uploaded, 1), (number, 2)]


def test_targets_are_proposed_for_a_branch_that_the_worker_reads(
    live: Live, sessions: SessionFactory, scene: Scene, scene_data_dir: Path, worker: WorkerSettings, kernel: Kernel
) -> None:
    scene.devices()
    (scene_data_dir / "testplans/touches.yaml").write_text(
        "touches: [{name: wq, paths: [kernel/workqueue.c], symbols: [max_active], plans: ["
        "{plan: flush, asks: Does a flush take fewer locks?}]}]\n"
    )
    live.app.state.data._checked_at = float("-inf")  # it is read at most once a second
    kernel.git("switch", "--quiet", "-c", "topic")
    kernel.edit("512", "1024")
    kernel.commit("workqueue: raise max_active")
    work: list[Future[None]] = []
    with ThreadPoolExecutor(1) as pool, Client(live.url, live.secrets[Scope.SUBMIT]) as lab:

        def send(message: Message) -> None:
            assert message.task == JOB and message.id is not None
            work.append(pool.submit(jobs.process, message.id, worker))

        live.app.state.sessions = make_factory(sessions.kw["bind"], send)
        live.app.state.settings = live.app.state.settings.model_copy(update={"local_git_paths": str(kernel.path)})
        found = lab.touches(Series(git=GitSeries(url=str(kernel.path), ref="topic")), "t")
        with pytest.raises(UsageError, match="cannot fetch"):
            lab.touches(Series(git=GitSeries(url=str(kernel.path), ref="no-such-branch")))
    assert [(each.target.plan, each.because[0].symbols) for each in found.proposals] == [("flush", ["max_active"])]
    assert [each.result() for each in work] == [None, None]


def test_missing_message_fails_the_submission_with_a_user_error(
    live: Live, client: httpx.Client, sessions: SessionFactory, worker: WorkerSettings
) -> None:
    number = submit(client, "nobody@kernel.example").id
    apply_series(sessions, number, worker)
    advance(sessions, live.app.state.settings, number)
    found = SubmissionView.model_validate_json(expect(client.get(f"/api/v1/submissions/{number}")).content)
    assert found.outcome is Outcome.FAILED and found.failure is not None
    assert found.failure.kind == "user"
    assert found.failure.summary == "no archive has a message nobody@kernel.example (asked: ours)"
    assert found.exit_code == 3
