"""A list, a watched tree, a browser, an SMTP server and a webhook, all real, around one lab."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
import yaml
from playwright.sync_api import Browser, expect
from standardwebhooks import Webhook as Signer

from .browser import RUN_TIMEOUT_MS, Person
from .conftest import EXAMPLE, NOOP, ROOT, Lab, make_data, running_lab
from .user_git import git_daemon

sys.path[:0] = [str(ROOT), str(ROOT / "worker/tests")]

from publicinbox import PublicInbox, public_inbox  # noqa: E402

from server.tests.support.receiver import Answer, Receiver, receiver  # noqa: E402
from server.tests.support.smtp import MailServer, mail_server  # noqa: E402

pytestmark = [pytest.mark.scenario, pytest.mark.nightly]

COVER = "flush-lock-runs-0@wqlab.example"
ASK = "wqlab: test"
WATCH = {
    "kind": "list",
    "name": "workqueue",
    "summary": "workqueue series that ask",
    "archive": "loopback",
    "paths": ["kernel/workqueue.c"],
    "targets": ["xfs-fsync@tiny"],
    "tree": "linux-6.12",
    "owner": "admin",
}
T = TypeVar("T")


@dataclass(frozen=True)
class World:
    """What the lab is connected to."""

    lab: Lab
    inbox: PublicInbox
    smtp: MailServer
    hook: Receiver
    tree: Path
    """Repository with the watched branch `for-next`."""


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    state = Path(tempfile.mkdtemp(prefix="wqlab-e2e-", dir="/tmp"))
    data = make_data(state, "tiny")
    (state / "git").mkdir()
    with (
        public_inbox(state / "archive") as inbox,
        mail_server() as smtp,
        receiver(Answer(503, b"busy"), Answer(503, b"busy"), Answer(200)) as hook,
        git_daemon(state / "git") as git_url,
        watched_repository(state / "git/next.git") as tree,
    ):
        write_intake(data, inbox, f"{git_url}/next.git")
        settings = {
            "WQLAB_SMTP_HOST": "127.0.0.1",
            "WQLAB_SMTP_PORT": str(smtp.port),
            "WQLAB_SMTP_TLS": "none",
            "WQLAB_MAIL_FROM": "wqlab <wqlab@lab.example>",
            "WQLAB_MAIL_REVIEW": "all",
            "WQLAB_PUBLIC_URL": "http://lab.example",
            "WQLAB_PUBLIC_READING": "true",
            "WQLAB_PRIVATE_WEBHOOK_HOSTS": hook.host,
            "WQLAB_LIST_READ_S": "5",
        }
        with running_lab(state, data, settings) as lab:
            yield World(lab, inbox, smtp, hook, tree)


@contextmanager
def watched_repository(path: Path) -> Iterator[Path]:
    """Create a repository whose branch for-next is the lab's tree, and the lab's mirror of it without a download."""
    mirrors = Path(os.environ["WQLAB_CACHE"]) / "mirrors"
    copy = mirrors / "next.git"
    for target in (path, copy):
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run(["git", "clone", "-q", "--bare", "--shared", mirrors / "linux-6.12.git", target], check=True)
    git(path, "update-ref", "refs/heads/for-next", "HEAD")
    try:
        yield path
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def git(path: Path, *arguments: str) -> str:
    who = {f"GIT_{role}_{what}": "user@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **who, "GIT_INDEX_FILE": str(path / "push-index")}
    command = ["git", "-C", str(path), *arguments]
    return subprocess.run(command, env=environment, text=True, check=True, stdout=subprocess.PIPE).stdout.strip()


def write_intake(data: Path, inbox: PublicInbox, tree_url: str) -> None:
    """Write the operator's files: the archive, the tree and what is watched of it."""
    archive = inbox.archive(epochs=f"{inbox.url}/{{epoch}}").model_dump(mode="json", exclude_none=True)
    watched = {
        "kind": "tree",
        "name": "next",
        "enabled": True,
        "tree": "next",
        "branches": ["for-next"],
        "targets": ["xfs-fsync@tiny"],
        "blocks": 1,
        "owner": "admin",
        "every_minutes": 1440,
    }
    (data / "intake/watches").mkdir(parents=True)
    (data / "intake/archives.yaml").write_text(yaml.safe_dump({"archives": [archive]}))
    (data / "intake/watches/next.yaml").write_text(yaml.safe_dump(watched))
    trees = data / "kernels/trees.yaml"
    spec = yaml.safe_load(trees.read_text())
    spec["trees"].append({"name": "next", "summary": "a test's tree", "url": tree_url, "branch": "for-next"})
    trees.write_text(yaml.safe_dump(spec))


def mails(version: int) -> list[str]:
    """Return the mails of a revision of the example series, whose cover letter asks for a measurement."""
    text = EXAMPLE.read_text()
    if version > 1:
        text = text.replace("[PATCH ", f"[PATCH v{version} ").replace(
            "<flush-lock-runs-", f"<flush-lock-runs-v{version}-"
        )
    text = text.replace("Date: Sat, 21 Nov 2026 09:00:00 +0000", f"Date: {format_datetime(datetime.now(UTC))}")
    text = text.replace("\nFrom: ", "\nTo: wq@lists.example.org\nCc: Bo <bo@example.org>\nFrom: ")
    cover, *patches = [f"From {part}" for part in text.split("From 0000000000000000000000000000000000000000 ")[1:]]
    return [cover.replace("\nwqlab project (2):", f"\n{ASK}\n\nwqlab project (2):"), *patches]


def until(look: Callable[[], T | None]) -> T:
    """Return what `look` finds, asking again until it finds something: no event tells of it outside the lab."""
    while not (found := look()):
        time.sleep(0.5)
    return found


def documents(lab: Lab, *command: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(lab.wqlab(*command, "--json"))["items"]
    return found


def decisions(lab: Lab) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(lab.wqlab("watches", "show", "workqueue", "--json"))["decisions"]["items"]
    return found


def decided(lab: Lab, version: int) -> int | None:
    """Return the submission that the watch has made of a revision."""
    taken = [each for each in decisions(lab) if each["state"] == "taken"]
    return next((each["submission_id"] for each in taken if each["revision"] == version), None)


@pytest.fixture(scope="module")
def secret(world: World) -> str:
    """Add a webhook for accepted submissions; return its secret."""
    made = json.loads(
        world.lab.wqlab(
            "webhook", "add", world.hook.url, "--event", "submission.accepted", "--plan", "xfs-fsync", "--json"
        )
    )
    return str(made["secret"])


@pytest.fixture(scope="module")
def first(world: World, secret: str, tmp_path_factory: pytest.TempPathFactory) -> int:
    """Enable a watch and mail a series to the list; return the submission that the lab makes of it."""
    file = tmp_path_factory.mktemp("watch") / "workqueue.yaml"
    file.write_text(yaml.safe_dump(WATCH))
    world.lab.wqlab("watches", "add", str(file))
    world.lab.wqlab("watches", "enable", "workqueue", "--yes")
    for mail in mails(1):
        world.inbox.receive(mail)
    return until(lambda: decided(world.lab, 1))


def test_a_listed_series_is_measured_approved_and_answered_in_its_thread(
    world: World, first: int, chromium: Browser
) -> None:
    report = world.lab.finish(first)
    assert [target["verdict"] for target in report["targets"]] == ["improvement"]
    assert world.smtp.accepted == [], "nothing is sent before a maintainer has approved it"
    approve_in_a_browser(world, chromium)
    (sent,) = world.smtp.accepted
    assert sent["In-Reply-To"] == f"<{COVER}>"
    assert world.smtp.recipients == [["patches@wqlab.example"]], "a count goes to the author alone"
    world.inbox.receive(world.smtp.raw[0].decode().replace("\r\n", "\n"))
    answer = httpx.get(f"{world.inbox.url}/{COVER}/t.mbox.gz", timeout=None)
    thread = gzip.decompress(answer.raise_for_status().content).decode()
    assert thread.count("\nMessage-ID: ") + thread.count("\nMessage-Id: ") == 4
    assert "\nSubject: Re: [PATCH 0/2] workqueue: Fewer pool locks per flush\n" in thread
    assert "on an emulated 2-CPU guest (tiny)" in " ".join(thread.split())


def approve_in_a_browser(world: World, chromium: Browser) -> None:
    headers = {"Authorization": f"Bearer {world.lab.environment['WQLAB_TOKEN']}"}
    made = httpx.post(
        f"{world.lab.url}/api/v1/users", json={"name": "reviewer", "role": "maintainer"}, headers=headers, timeout=None
    ).raise_for_status()
    reviewer = Person(chromium, world.lab.url)
    reviewer.sign_in("reviewer", made.json()["password"])
    page = reviewer.page
    page.get_by_role("button", name="1 mail waits").click(timeout=RUN_TIMEOUT_MS)
    page.get_by_role("link", name="Review mails 1 mail waits").click()
    page.get_by_role("link", name="Re: [PATCH 0/2] workqueue: Fewer pool locks per flush").click()
    page.get_by_role("button", name="Approve").click()
    page.get_by_role("dialog").get_by_role("button", name="Approve and send").click()
    expect(page.get_by_text("The receiver has accepted it.")).to_be_visible(timeout=RUN_TIMEOUT_MS)
    reviewer.close()
    assert reviewer.errors == []


def test_a_later_revision_is_the_next_version_of_the_series(world: World, first: int) -> None:
    for mail in mails(2):
        world.inbox.receive(mail)
    second = until(lambda: decided(world.lab, 2))
    world.lab.finish(second)
    shown = [json.loads(world.lab.wqlab("show", str(number), "--json")) for number in (first, second)]
    assert [each["version"] for each in shown] == [1, 2]
    assert shown[0]["series_key"] == shown[1]["series_key"]
    assert len(decisions(world.lab)) == 2, "nothing is decided on twice"


def test_a_push_to_a_watched_tree_is_measured_against_the_head_before(world: World) -> None:
    def heads() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(world.lab.wqlab("watches", "show", "next", "--json"))["heads"]["items"]
        return found

    (start,) = until(heads)
    assert start["state"] == "start"
    git(world.tree, "read-tree", "for-next")
    git(world.tree, "apply", "--cached", str(NOOP))
    pushed = git(
        world.tree, "commit-tree", "-p", "for-next", "-m", "workqueue: The same", git(world.tree, "write-tree")
    )
    git(world.tree, "update-ref", "refs/heads/for-next", pushed)
    world.lab.wqlab("watches", "check", "next")
    head = until(lambda: next((each for each in heads() if each["state"] == "measured"), None))
    assert (head["commit"], head["compared_with"]["commit"]) == (pushed, start["commit"])


def test_a_signed_webhook_arrives_once_although_the_receiver_failed_twice(
    world: World, secret: str, first: int
) -> None:
    def delivered() -> dict[str, Any] | None:
        rows = documents(world.lab, "webhook", "deliveries")
        return next((row for row in rows if row["submission_id"] == first and row["state"] == "delivered"), None)

    row = until(delivered)
    assert row["tries"] == 3
    attempts = [each for each in world.hook.requests if each.headers["webhook-id"] == row["message_id"]]
    assert len(attempts) == 3, "none follows the one that was accepted"
    last = attempts[-1]
    # The library's own check refuses a signature after five minutes.
    at = datetime.fromtimestamp(int(last.headers["webhook-timestamp"]), tz=UTC)
    assert Signer(secret).sign(row["message_id"], at, last.body) in last.headers["webhook-signature"].split()
    assert json.loads(last.body)["data"]["submission"] == first
    assert {each.body for each in attempts} == {attempts[-1].body}
