"""Events of the three kinds of forges: what is taken from them, and which are not verified or ignored."""

from __future__ import annotations

import json

import pytest

from wqlab_contracts.specs import Forge, ForgeKind
from wqlab_server.intake.forges import verify
from wqlab_server.intake.forges.payloads import Hint, Ignored, Unreadable, read

from ...support.forge import BOT, REPOSITORIES
from .recorded import FOLDER, NEW, OLD, SECRET, event_headers, load

KINDS = ("github", "gitlab", "gitea")


def forge(kind: str, **more: object) -> Forge:
    values = {"name": "hub", "url": "https://forge.example.org", "secret_file": "/s", "token_file": "/t", "user": BOT}
    return Forge.model_validate(
        {**values, "kind": kind, "repository": REPOSITORIES[kind], "tree": "t", "owner": "dev", "label": "wqlab: ok"}
        | more
    )


def described(kind: str, event: str) -> str:
    headers = {name.lower(): text for name, text in event_headers(kind, event, b"").items()}
    return verify.describe(ForgeKind(kind), headers).event


@pytest.mark.parametrize(
    ("name", "event", "number", "head", "sender", "label_set"),
    [
        ("github-pull_request-opened", "pull_request", 7, OLD, "ada", False),
        ("github-pull_request-synchronize", "pull_request", 7, NEW, "ada", False),
        ("github-pull_request-closed", "pull_request", 7, NEW, "ada", False),
        ("github-pull_request-reopened", "pull_request", 7, NEW, "ada", False),
        ("github-pull_request-labeled", "pull_request", 7, OLD, "wendy", True),
        ("github-push", "push", None, NEW, "ada", None),
        ("gitea-pull_request-opened", "pull_request", 7, OLD, "ada", False),
        ("gitea-pull_request-synchronized", "pull_request", 7, NEW, "ada", False),
        ("gitea-pull_request-closed", "pull_request", 7, NEW, "ada", False),
        ("gitea-pull_request-label_updated", "pull_request", 7, OLD, "wendy", None),
        ("gitea-push", "push", None, NEW, "ada", None),
        ("gitlab-merge_request-open", "pull_request", 7, OLD, "ada", False),
        ("gitlab-merge_request-update", "pull_request", 7, NEW, "ada", False),
        ("gitlab-merge_request-close", "pull_request", 7, NEW, "ada", False),
        ("gitlab-merge_request-labeled", "pull_request", 7, OLD, "wendy", True),
        ("gitlab-push", "push", None, NEW, "ada", None),
    ],
)
def test_what_has_changed(
    name: str, event: str, number: int | None, head: str, sender: str, label_set: bool | None
) -> None:
    kind = name.partition("-")[0]
    hint = read(forge(kind), described(kind, event), load(name))
    assert isinstance(hint, Hint)
    assert (hint.number, hint.head, hint.sender, hint.label_set) == (number, head, sender, label_set)
    assert hint.key == ("pull/7" if number else "branch/wq/wake-one")
    assert hint.sender_id in {11, 12}


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("github-status", "status"),
        ("github-issue_comment-created", "issue_comment"),
        ("github-ping", "ping"),
        ("gitea-status", "status"),
        ("gitlab-pipeline", "Pipeline Hook"),
        ("gitlab-note", "Note Hook"),
    ],
)
def test_echoes_of_statuses_and_comments_are_ignored(name: str, event: str) -> None:
    kind = name.partition("-")[0]
    assert isinstance(read(forge(kind), described(kind, event), load(name)), Ignored)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_labs_own_account_does_is_ignored(kind: str) -> None:
    (name,) = [path.stem for path in FOLDER.glob(f"{kind}-*-open*.json")]
    hint = read(forge(kind, user="Ada"), described(kind, "pull_request"), load(name))
    assert hint == Ignored("caused by the lab's own account Ada")


def test_actions_and_references_that_change_nothing_are_ignored() -> None:
    payload = load("github-pull_request-opened")
    assert isinstance(read(forge("github"), "pull_request", payload | {"action": "assigned"}), Ignored)
    tag = load("github-push") | {"ref": "refs/tags/v6.19"}
    assert read(forge("github"), "push", tag) == Ignored("the push is not to a branch")
    deleted = read(forge("github"), "push", load("github-push") | {"after": "0" * 40})
    assert isinstance(deleted, Hint)
    assert deleted.head == ""


def test_another_label_allows_nothing() -> None:
    payload = load("github-pull_request-labeled")
    payload["label"]["name"] = "bug"
    hint = read(forge("github"), "pull_request", payload)
    assert isinstance(hint, Hint)
    assert hint.label_set is False


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"repository": {"full_name": "other/linux"}}, "the event is of other/linux, and forge hub is for wq/linux"),
        ({"repository": None}, "the event has no text repository.full_name"),
        ({"pull_request": {"number": True}}, "the event has no number pull_request.number"),
        ({"pull_request": {"number": 2**31}}, "the event has no number pull_request.number"),
        ({"pull_request": {"number": 7, "head": {"sha": "HEAD"}}}, "'HEAD' is not a commit id"),
        ({"sender": {"login": "a\0b"}}, "the event has no text sender.login"),
    ],
)
def test_events_that_are_not_as_documented(change: dict[str, object], problem: str) -> None:
    with pytest.raises(Unreadable, match=problem):
        read(forge("github"), "pull_request", load("github-pull_request-opened") | change)


@pytest.mark.parametrize("kind", KINDS)
def test_signatures(kind: str) -> None:
    body = json.dumps({"a": 1}).encode()
    headers = {name.lower(): text for name, text in event_headers(kind, "push", body).items()}
    verify.check(ForgeKind(kind), headers, body, SECRET)
    for wrong in (SECRET + "x", SECRET[:-1], ""):
        with pytest.raises(verify.NotVerified, match="secret_file"):
            verify.check(ForgeKind(kind), headers, body, wrong)
    name = "x-gitlab-token" if kind == "gitlab" else "x-hub-signature-256"
    for bad in ("", "sha256=", "sha1=" + "0" * 40, "é"):
        with pytest.raises(verify.NotVerified, match="(?i)" + name):
            verify.check(ForgeKind(kind), headers | {name: bad}, body, SECRET)
    if kind != "gitlab":
        with pytest.raises(verify.NotVerified, match="does not match the body"):
            verify.check(ForgeKind(kind), headers, body + b" ", SECRET)


def test_a_missing_header_is_named() -> None:
    with pytest.raises(verify.NoDelivery, match="x-github-event"):
        verify.describe(ForgeKind.GITHUB, {})
    with pytest.raises(verify.NoDelivery, match="idempotency-key"):
        verify.describe(ForgeKind.GITLAB, {"x-gitlab-event": "Push Hook"})


def test_repeated_deliveries_of_gitlab_have_one_id() -> None:
    headers = {"x-gitlab-event": "Push Hook", "x-gitlab-event-uuid": "e"}
    assert verify.describe(ForgeKind.GITLAB, headers).delivery == "e"
    assert verify.describe(ForgeKind.GITLAB, headers | {"idempotency-key": "k"}).delivery == "k"
