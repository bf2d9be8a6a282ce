"""A real Gitea: pushes and pull requests arrive as signed events, and it shows statuses and one comment.

Heads are read by the real worker; builds and measurements are scripted. `WQLAB_RECORD_EVENTS=FOLDER` writes each event
and each answer of the API that the lab reads to a file, from which the payloads of the other tests are made.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import select
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wqlab_contracts.enums import ForgeHeadState, SubmissionState
from wqlab_contracts.forges_file import FILE
from wqlab_contracts.messages.forge_readings import ForgeReadingJob
from wqlab_server.models import Delivery, ForgeChange, ForgeEvent, ForgeHead
from wqlab_server.settings import Settings
from wqlab_worker.claims import jobs
from wqlab_worker.settings import Settings as WorkerSettings

from ...support.datafolder import write_data_folder
from ...support.gitea import Gitea, built, gitea
from ...support.lab import LabUnderTest
from ...support.live_server import serving
from ..test_real_worker import Kernel
from .hub import Hub
from .recorded import load

pytestmark = [pytest.mark.integration, pytest.mark.nightly]
CONFIG = "targets: [locks@single]\nbranches: ['wq/*']\npaths: [kernel/]\n"
HOSTILE = "targets: [affinity@device]\nblocks: 50\n"
LABEL = "wqlab: ok"
REPOSITORY = "wq/linux"
SECRET = "secret-of-this-webhook"


class Recorder:
    """Keeps the events that are posted to the application: kind of the event, headers, body."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.events: list[tuple[str, dict[str, str], Any]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].endswith("/events"):
            await self.app(scope, receive, send)
            return
        body = b""

        async def reading() -> Message:
            nonlocal body
            message = await receive()
            body += message.get("body", b"")
            return message

        await self.app(scope, reading, send)
        headers = {name.decode(): text.decode() for name, text in scope["headers"]}
        self.events.append((headers.get("x-gitea-event-type", ""), headers, json.loads(body)))


class RealHub(Hub):
    """A lab with a real Gitea and a real worker that reads heads."""

    stub: Any = None

    def __init__(self, lab: LabUnderTest, forge: Gitea, recorder: Recorder, worker: WorkerSettings) -> None:
        self.lab, self.forge, self.recorder, self.worker = lab, forge, recorder, worker
        self.jobs: list[ForgeReadingJob] = []

    def _read(self, head_id: int) -> None:
        jobs.process(head_id, self.worker)

    def until(self, condition: Callable[[], Any]) -> Any:
        """Let the lab work until a condition holds: Gitea posts its events when it gets to it."""
        while not (found := condition()):
            time.sleep(0.2)
            self.settle()
        return found

    def told(self) -> list[tuple[str, str]]:
        """Return kind and answer of each event."""
        with self.lab.transaction() as session:
            rows = session.scalars(select(ForgeEvent).order_by(ForgeEvent.received_at)).all()
            return [(row.event, row.answer) for row in rows]

    def change(self, key: str) -> ForgeChange | None:
        with self.lab.transaction() as session:
            return session.scalar(select(ForgeChange).where(ForgeChange.key == key))

    def head(self, commit: str) -> ForgeHead | None:
        """Return the current head of this commit once it is known what becomes of it."""
        with self.lab.transaction() as session:
            rows = select(ForgeHead).where(ForgeHead.head == commit, ForgeHead.withdrawn_at.is_(None))
            found = session.scalar(rows.order_by(ForgeHead.id.desc()))
        return found if found is not None and (found.submission_id or found.reason) else None

    def statuses(self, commit: str, context: str = "wqlab") -> list[tuple[str, str]]:
        """Return state and description of each status that Gitea has, oldest first."""
        found = self.forge.call("ada", "GET", f"/repos/{REPOSITORY}/commits/{commit}/statuses")
        ordered = sorted(found, key=lambda each: int(each["id"]))
        return [(each["status"], each["description"]) for each in ordered if each["context"] == context]

    def comments(self, number: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.forge.call("ada", "GET", f"/repos/{REPOSITORY}/issues/{number}/comments")
        return found

    def hook(self, **change: Any) -> None:
        (hook,) = self.forge.call("wq", "GET", f"/repos/{REPOSITORY}/hooks")
        self.forge.call("wq", "PATCH", f"/repos/{REPOSITORY}/hooks/{hook['id']}", change)

    def pull(self, account: str, head: str, title: str) -> int:
        body = {"head": head, "base": "for-next", "title": title}
        return int(self.forge.call(account, "POST", f"/repos/{REPOSITORY}/pulls", body)["number"])


class Author:
    """A developer's clone of the kernel, from which branches are pushed."""

    def __init__(self, kernel: Kernel, forge: Gitea) -> None:
        self.kernel, self.forge = kernel, forge
        self.lines = 512

    def commit(self, branch: str, config: str | None = None, *, start: str = "for-next") -> str:
        """Commit a change of the kernel on a branch, which begins at `start` if it is new; return the commit."""
        known = self.kernel.git("branch", "--list", branch).strip()
        self.kernel.git("switch", "--quiet", *([branch] if known else ["-c", branch, start]))
        text = (self.kernel.path / "kernel/workqueue.c").read_text()
        self.lines += 1
        (self.kernel.path / "kernel/workqueue.c").write_text(f"{text}\n/* {self.lines} */\n")
        if config is not None:
            (self.kernel.path / ".wqlab.yaml").write_text(config)
        self.kernel.commit(f"workqueue: say {self.lines}")
        return self.kernel.git("rev-parse", "HEAD").strip()

    def push(self, account: str, branch: str, repository: str = REPOSITORY) -> None:
        self.kernel.git("push", "--quiet", "--force", self.forge.remote(account, repository), f"{branch}:{branch}")


@pytest.fixture(scope="module")
def program() -> Path:
    return built(Path(os.environ["WQLAB_CACHE"]))


@pytest.fixture
def forge(program: Path, tmp_path: Path) -> Iterator[Gitea]:
    with gitea(program, tmp_path / "gitea") as forge:
        for name in ("wq", "ada", "mallory", "wqlab-bot"):
            forge.add_account(name)
        forge.call("wq", "POST", "/user/repos", {"name": "linux", "default_branch": "for-next"})
        forge.call("wq", "PUT", f"/repos/{REPOSITORY}/collaborators/ada", {"permission": "write"})
        forge.call("wq", "PUT", f"/repos/{REPOSITORY}/collaborators/wqlab-bot", {"permission": "admin"})
        forge.call("wq", "POST", f"/repos/{REPOSITORY}/labels", {"name": LABEL, "color": "#00aabb"})
        yield forge


@pytest.fixture
def author(forge: Gitea, kernel: Kernel) -> Author:
    author = Author(kernel, forge)
    kernel.git("branch", "for-next")
    author.commit("for-next", CONFIG)
    author.push("wq", "for-next")
    return author


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path / "linux")


@pytest.fixture
def data_dir(tmp_path: Path, forge: Gitea, kernel: Kernel) -> Path:
    folder = tmp_path / "data"
    write_data_folder(folder)
    (folder / "kernels/trees.yaml").write_text(
        f"default: lab-tree\ntrees: [{{name: lab-tree, summary: s, url: {kernel.path}}}]\n"
    )
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    (tmp_path / "token").write_text(f"{forge.tokens['wqlab-bot']}\n")
    entry = {
        "name": "hub",
        "kind": "gitea",
        "url": forge.url,
        "repository": REPOSITORY,
        "git": str(forge.repository(REPOSITORY)),
        "secret_file": str(tmp_path / "secret"),
        "token_file": str(tmp_path / "token"),
        "user": "wqlab-bot",
        "tree": "lab-tree",
        "owner": "dev",
        "label": LABEL,
        "private": True,
    }
    (folder / FILE).write_text(yaml.safe_dump({"forges": [entry]}))
    return folder


@pytest.fixture
def settings(settings: Settings, forge: Gitea, kernel: Kernel) -> Settings:
    return settings.model_copy(update={"local_git_paths": f"{forge.repository(REPOSITORY)}:{kernel.path}"})


@pytest.fixture
def hub(
    lab: LabUnderTest, forge: Gitea, kernel: Kernel, author: Author, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RealHub]:
    lab.mark_all_good()
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setenv("WQLAB_CACHE", str(cache))
    monkeypatch.setenv("WQLAB_LOCAL_GIT_PATHS", f"{forge.repository(REPOSITORY)}:{kernel.path}")
    recorder = Recorder(lab.app)
    with serving(lab.app, recorder) as url:
        worker = WorkerSettings(server_url=url, worker_token=lab.worker_token, cache=cache, state=tmp_path / "state")
        config = {"url": f"{url}/api/v1/forges/hub/events", "content_type": "json", "secret": SECRET}
        hook = {"type": "gitea", "config": config, "active": True, "events": list(EVENTS)}
        forge.call("wq", "POST", f"/repos/{REPOSITORY}/hooks", hook)
        hub = RealHub(lab, forge, recorder, worker)
        hub.poll()
        yield hub
        assert lab.tick_errors() == {}
        _write_records(hub)


EVENTS = ("push", "pull_request", "pull_request_sync", "pull_request_label", "pull_request_comment", "issue_comment",
          "status", "create", "delete")  # fmt: skip


def _write_records(hub: RealHub) -> None:
    """Write events and answers of the API to the folder WQLAB_RECORD_EVENTS, if it is set."""
    folder = os.environ.get("WQLAB_RECORD_EVENTS")
    if not folder:
        return
    before = len(list(Path(folder).iterdir()))
    for number, (kind, headers, body) in enumerate(hub.recorder.events, before):
        file = Path(folder) / f"{number:03}-{kind}-{body.get('action', '')}.json"
        file.write_text(json.dumps({"headers": headers, "body": body}, indent=2))
    for path in ("/pulls?state=all", "/branches"):
        answer = hub.forge.call("wqlab-bot", "GET", f"/repos/{REPOSITORY}{path}")
        (Path(folder) / f"{before:03}-api{path.partition('?')[0].replace('/', '-')}.json").write_text(
            json.dumps(answer, indent=2)
        )


def test_push_and_pull_request_are_measured_and_told(hub: RealHub, author: Author) -> None:
    # A push to a branch that .wqlab.yaml names.
    pushed = author.commit("wq/wake-one")
    author.push("ada", "wq/wake-one")
    hub.until(lambda: hub.statuses(pushed, "wqlab/push"))
    assert [state for state, _ in hub.statuses(pushed, "wqlab/push")] == ["pending"]
    hub.measure()
    assert len(hub.submissions) == 1
    assert hub.submissions[0].state is SubmissionState.FINISHED
    (first, last) = hub.statuses(pushed, "wqlab/push")
    assert (first[0], last[0]) == ("pending", "success" if hub.submissions[0].exit_code == 0 else "failure")
    assert last[1].startswith("locks@single: ")

    # A pull request of a member; the branch itself is not among `branches`.
    head = author.commit("wake-two")
    author.push("ada", "wake-two")
    number = hub.pull("ada", "wake-two", "workqueue: wake two")
    hub.until(lambda: hub.statuses(head))
    hub.measure()
    assert [state for state, _ in hub.statuses(head)] == ["pending", last[0]]
    (comment,) = hub.comments(number)
    assert comment["user"]["login"] == "wqlab-bot"
    assert head in comment["body"]

    # A newer head: the same comment is edited.
    newer = author.commit("wake-two")
    author.push("ada", "wake-two")
    hub.until(lambda: hub.statuses(newer))
    hub.measure()
    (edited,) = hub.comments(number)
    assert edited["id"] == comment["id"]
    assert newer in edited["body"] and head not in edited["body"]
    assert len(hub.submissions) == 3

    # What the lab itself did has come back, and was ignored.
    hub.until(lambda: {"status", "issue_comment"} <= {event for event, _ in hub.told()})
    assert all(answer.startswith("ignored: ") for event, answer in hub.told() if event not in {"push", "pull_request"})
    assert len(hub.submissions) == 3

    # Closing it while a newer head waits cancels that.
    last_head = author.commit("wake-two")
    author.push("ada", "wake-two")
    hub.until(lambda: hub.statuses(last_head))
    hub.forge.call("ada", "PATCH", f"/repos/{REPOSITORY}/pulls/{number}", {"state": "closed"})
    hub.until(lambda: hub.submissions[-1].cancel_requested_at)
    hub.measure()
    assert hub.statuses(last_head)[-1] == ("error", "the pull request was closed")
    (same,) = hub.comments(number)
    assert same["body"] == edited["body"]


def test_a_fork_of_a_stranger_waits_for_the_label_and_cannot_choose_what_is_measured(
    hub: RealHub, author: Author
) -> None:
    fork = "mallory/linux"
    hub.forge.call("mallory", "POST", f"/repos/{REPOSITORY}/forks", {})
    head = author.commit("innocent", HOSTILE)
    author.push("mallory", "innocent", fork)
    number = hub.pull("mallory", "mallory:innocent", "workqueue: harmless")
    hub.until(lambda: hub.statuses(head))
    ((state, description),) = hub.statuses(head)
    assert state == "pending"
    assert description.startswith(f"waits for the label '{LABEL}'")
    assert hub.submissions == []

    # The author of the pull request may not set labels; somebody with write access does.
    (label,) = hub.forge.call("wq", "GET", f"/repos/{REPOSITORY}/labels")
    path = f"/repos/{REPOSITORY}/issues/{number}/labels"
    hub.forge.call("mallory", "POST", path, {"labels": [label["id"]]}, status=403)
    hub.forge.call("ada", "POST", path, {"labels": [label["id"]]})
    hub.until(lambda: hub.submissions)
    (submission,) = hub.submissions
    assert [(each.plan, each.device_type) for each in submission.request.targets] == [("locks", "single")]
    assert submission.request.blocks is None, "the file of the fork counts for nothing"
    known = hub.head(head)
    assert known is not None and known.allowed == f"ada set the label '{LABEL}'"

    # A commit that is pushed afterwards was not looked at.
    sneaky = author.commit("innocent", HOSTILE)
    author.push("mallory", "innocent", fork)
    hub.until(lambda: hub.statuses(sneaky))
    assert hub.statuses(sneaky)[-1][0] == "pending"
    assert "the label was set at another commit" in hub.statuses(sneaky)[-1][1]
    assert len(hub.submissions) == 1
    assert hub.submissions[0].cancel_requested_at is not None


def test_lost_events_are_found_by_a_poll_and_a_wrong_secret_is_shown(
    hub: RealHub, author: Author, tmp_path: Path
) -> None:
    hub.hook(active=False)
    pushed = author.commit("wq/quiet")
    author.push("ada", "wq/quiet")
    head = author.commit("quiet-pull")
    author.push("ada", "quiet-pull")
    number = hub.pull("ada", "quiet-pull", "workqueue: nobody told")
    hub.settle()
    assert hub.submissions == []
    assert hub.poll().missed == 3, "two branches and a pull request"
    assert len(hub.submissions) == 2, "the branch quiet-pull is not among `branches`"
    hub.measure()
    assert [len(hub.statuses(pushed, "wqlab/push")), len(hub.statuses(head)), len(hub.comments(number))] == [2, 2, 1]
    assert hub.poll().missed == 3
    assert len(hub.submissions) == 2

    hub.hook(active=True)
    (tmp_path / "secret").write_text("not-the-secret-of-the-webhook\n")
    author.commit("wq/quiet")
    author.push("ada", "wq/quiet")
    hub.until(lambda: hub.repository().refused)
    answer = hub.lab.client.get("/api/v1/forges/hub", headers={"Authorization": f"Bearer {hub.lab.token}"}).json()
    assert answer["last_error"]["what"] == "event"
    assert "does not match the body" in answer["last_error"]["problem"]
    assert answer["heads"][ForgeHeadState.MEASURED] == 2
    with hub.lab.transaction() as session:
        assert {each.state.value for each in session.scalars(select(Delivery))} <= {"delivered", "dropped"}


RECORDED = {
    "gitea-push": ("push", ""),
    "gitea-pull_request-opened": ("pull_request", "opened"),
    "gitea-pull_request-label_updated": ("pull_request_label", "label_updated"),
    "gitea-pull_request-synchronized": ("pull_request_sync", "synchronized"),
    "gitea-pull_request-closed": ("pull_request", "closed"),
    "gitea-status": ("status", ""),
}
"""Payload of the other tests -> kind and action of the event."""


def test_recorded_events_are_like_those_of_this_gitea(hub: RealHub, author: Author) -> None:
    """The payloads of the other tests have only fields that Gitea sends, with the same types."""
    head = author.commit("wake-two")
    author.push("ada", "wake-two")
    number = hub.pull("ada", "wake-two", "workqueue: wake two")
    hub.until(lambda: hub.statuses(head))
    (label,) = hub.forge.call("wq", "GET", f"/repos/{REPOSITORY}/labels")
    hub.forge.call("ada", "POST", f"/repos/{REPOSITORY}/issues/{number}/labels", {"labels": [label["id"]]})

    def received(kind: str, action: str) -> list[Any]:
        return [body for each, _, body in hub.recorder.events if (each, body.get("action", "")) == (kind, action)]

    author.commit("wake-two")
    author.push("ada", "wake-two")
    pushed = RECORDED["gitea-pull_request-synchronized"]
    hub.until(lambda: received(*pushed))  # Gitea sends none once the pull request is closed
    hub.forge.call("ada", "PATCH", f"/repos/{REPOSITORY}/pulls/{number}", {"state": "closed"})

    for name, event in RECORDED.items():
        hub.until(lambda event=event: received(*event))
        assert_like(load(name), received(*event)[-1], name)
    assert_like(
        load("gitea-api-pull"), hub.forge.call("wqlab-bot", "GET", f"/repos/{REPOSITORY}/pulls/{number}"), "pull"
    )


def assert_like(recorded: Any, real: Any, where: str) -> None:
    """Check that whatever a recorded payload has is in the real one, with the same type."""
    if isinstance(recorded, dict):
        assert isinstance(real, dict), where
        for key, value in recorded.items():
            assert key in real, f"{where}.{key} is not sent"
            assert_like(value, real[key], f"{where}.{key}")
    elif isinstance(recorded, list) and isinstance(real, list):
        for value in recorded[:1] if real else []:
            assert_like(value, real[0], f"{where}[]")
    elif recorded is not None and real is not None:
        assert type(recorded) is type(real), f"{where}: {recorded!r} and {real!r}"
