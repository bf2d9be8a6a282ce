"""Events that forges have sent: recorded from a real Gitea; those of GitHub and GitLab as others publish them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from wqlab_contracts.specs import Forge, ForgeKind
from wqlab_lab import web
from wqlab_server.intake.forges import verify
from wqlab_server.intake.forges.payloads import Hint, Ignored, read

GITEA = Path(__file__).parent / "recordings/gitea-1.25.4.jsonl"
GITHUB = "@octokit/webhooks-examples@7.6.1"
"""Payloads recorded from GitHub, in an npm package."""
GITHUB_SHA512 = bytes.fromhex(
    "0dee94dd707a3b70ed09aedb2a008ccd31dd7a8a6aa99e92362bcc6099caeb98"
    "9eaca2f5027348034b644580914bb970193efdd9df8fb3559b7c796ca3a3329d"
)
GITLAB = "golang-github-xanzy-go-gitlab-dev"
"""Payloads of GitLab, in the test data of a Debian package."""
CHANGES = {
    ForgeKind.GITHUB: {"opened", "reopened", "synchronize", "ready_for_review", "labeled", "unlabeled", "closed"},
    ForgeKind.GITEA: {"opened", "reopened", "synchronized", "label_updated", "closed"},
}
"""Actions of a pull request after which its head may have to be measured, or no longer has to be."""


def forge(kind: ForgeKind, repository: str) -> Forge:
    return Forge.model_validate(
        {"name": "hub", "url": "https://forge.example.org", "secret_file": "/s", "token_file": "/t", "user": "bot",
         "kind": kind, "repository": repository, "tree": "t", "owner": "dev", "label": "wqlab: ok"}
    )  # fmt: skip


def read_event(kind: ForgeKind, headers: dict[str, str], body: Any) -> Hint | Ignored:
    repository = body.get("repository", {}).get("full_name") or body["project"]["path_with_namespace"]
    return read(forge(kind, repository), verify.describe(kind, headers).event, body)


def check(kind: ForgeKind, event: str, body: Any, found: Hint | Ignored) -> None:
    """Compare what the lab takes from an event of GitHub or Gitea with the event."""
    if event.startswith("pull_request") and body.get("action") in CHANGES[kind] and "pull_request" in body:
        assert isinstance(found, Hint), found
        pull = body["pull_request"]
        assert (found.number, found.head) == (pull["number"], pull["head"]["sha"])
        assert (found.sender, found.sender_id) == (body["sender"]["login"], body["sender"]["id"])
        assert set(found.labels) == {label["name"] for label in pull["labels"]}
    elif event == "push" and body["ref"].startswith("refs/heads/") and set(body["after"]) != {"0"}:
        assert isinstance(found, Hint), found
        assert (found.branch, found.head) == (body["ref"].removeprefix("refs/heads/"), body["after"])
    else:
        assert isinstance(found, Ignored), found
        assert found.reason


def test_events_of_a_real_gitea() -> None:
    seen = []
    for line in GITEA.read_text().splitlines():
        recorded = json.loads(line)
        event = recorded["headers"]["x-gitea-event"]
        check(
            ForgeKind.GITEA, event, recorded["body"], read_event(ForgeKind.GITEA, recorded["headers"], recorded["body"])
        )
        seen.append((event, recorded["body"].get("action")))
    assert {("push", None), ("pull_request", "opened"), ("pull_request", "label_updated")} <= set(seen)


@pytest.fixture(scope="module")
def github(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Return event -> payloads."""
    folder = tmp_path_factory.mktemp("npm")
    archive = folder / web.npm(["pack", "--silent", GITHUB], folder).split()[-1]
    assert hashlib.sha512(archive.read_bytes()).digest() == GITHUB_SHA512
    with tarfile.open(archive) as packed:
        member = packed.extractfile("package/api.github.com/index.json")
        assert member is not None
        return {each["name"]: each["examples"] for each in json.load(member)}


@pytest.mark.parametrize("event", ["pull_request", "push", "issue_comment", "status", "ping", "create", "delete"])
def test_events_of_github(github: dict[str, list[Any]], event: str) -> None:
    assert github[event]
    for body in github[event]:
        if "repository" not in body:  # the ping of an organization
            continue
        headers = {"x-github-event": event, "x-github-delivery": "1"}
        check(ForgeKind.GITHUB, event, body, read_event(ForgeKind.GITHUB, headers, body))


@pytest.fixture(scope="module")
def gitlab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the payloads."""
    folder = tmp_path_factory.mktemp("deb")
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    subprocess.run(["apt-get", "download", "-q", GITLAB], cwd=folder, env=environment, check=True)
    (package,) = folder.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", str(package), str(folder / "content")], check=True)
    (webhooks,) = folder.glob("content/usr/share/gocode/src/*/*/go-gitlab/testdata/webhooks")
    return webhooks


def test_events_of_gitlab(gitlab: Path) -> None:
    def sent(file: str, event: str) -> tuple[Any, Hint | Ignored]:
        body = json.loads((gitlab / f"{file}.json").read_text())
        headers = {"x-gitlab-event": event, "x-gitlab-event-uuid": "1", "idempotency-key": "1"}
        return body, read_event(ForgeKind.GITLAB, headers, body)

    body, found = sent("merge_request", "Merge Request Hook")
    assert isinstance(found, Hint)
    assert (found.number, found.head) == (
        body["object_attributes"]["iid"],
        body["object_attributes"]["last_commit"]["id"],
    )
    assert (found.sender, found.sender_id) == (body["user"]["username"], body["user"]["id"])
    assert set(found.labels) == {label["title"] for label in body["labels"]}
    body, found = sent("push", "Push Hook")
    assert isinstance(found, Hint)
    assert (found.branch, found.head, found.sender) == ("master", body["after"], body["user_username"])
    for file, event in (
        ("note_merge_request", "Note Hook"),
        ("pipeline", "Pipeline Hook"),
        ("tag_push", "Tag Push Hook"),
    ):
        assert isinstance(sent(file, event)[1], Ignored)
