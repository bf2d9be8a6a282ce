"""Watches by REST: who may change them, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from wqlab_contracts.enums import Scope
from wqlab_server.intake import watches
from wqlab_server.storage.db import SessionFactory, transaction

from ..support.live_server import Live, expect

pytestmark = pytest.mark.integration
PATH = "/api/v1/watches"
TREE: dict[str, Any] = {
    "kind": "tree", "name": "next", "tree": "t", "branches": ["for-next"], "targets": ["flush@tiny"], "owner": "submit",
}  # fmt: skip
LIST: dict[str, Any] = {
    "kind": "list", "name": "wq", "archive": "ours", "tree": "t", "targets": ["flush@tiny"], "owner": "submit",
}  # fmt: skip
ARCHIVES = """\
archives:
  - {name: ours, summary: s, list: wq@lists.example.org, url: "https://lore.example.org/wq/{message_id}/",
     epochs: "https://lore.example.org/wq/{epoch}"}
"""


@pytest.fixture
def scene_data_dir(scene_data_dir: Path) -> Path:
    (scene_data_dir / "intake/archives.yaml").write_text(ARCHIVES)
    return scene_data_dir


@pytest.fixture
def sync(live: Live, sessions: SessionFactory) -> Callable[[str], None]:
    """Write the file of the watch next (remove it if the text is empty), and take it in."""

    def write(text: str) -> None:
        file = live.app.state.settings.data_dir / "intake/watches/next.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        if not text:
            file.unlink()
        live.app.state.data._checked_at = float("-inf")
        with transaction(sessions) as session:
            watches.sync_files(session, live.app.state.data.current())

    return write


def details(response: httpx.Response, status: int = 422) -> str:
    return "\n".join(f"{error['pointer']}: {error['detail']}" for error in expect(response, status).json()["errors"])


def test_administrators_change_watches_maintainers_switch_them_and_readers_see_them(live: Live) -> None:
    with live.client() as administrator, live.client(Scope.MAINTAIN) as maintainer, live.client(Scope.READ) as reader:
        expect(maintainer.post(PATH, json=TREE), 403)
        made = expect(administrator.post(PATH, json=TREE), 201).json()
        assert (made["enabled_at"], made["from_file"], made["created_by"]) == (None, False, "admin")
        assert made["repository"]["heads"] == {} and made["mailing_list"] is None
        for method in ("PUT", "DELETE"):
            expect(maintainer.request(method, f"{PATH}/next", json=TREE), 403)
        for act in ("enable", "check", "disable"):
            expect(reader.post(f"{PATH}/next/{act}"), 403)
            expect(maintainer.post(f"{PATH}/next/{act}"))
        expect(maintainer.post(f"{PATH}/next/disable"))
        assert [each["spec"]["name"] for each in expect(reader.get(PATH)).json()] == ["next"]
        assert expect(reader.get(f"{PATH}/next/heads")).json()["items"] == []
        entries = expect(administrator.get("/api/v1/audit", params={"limit": 200})).json()["items"]
    mine = [entry["action"] for entry in entries if (entry["resource"], entry["outcome"]) == ("watch/next", "done")]
    assert mine == ["watch.disable", "watch.check", "watch.enable", "watch.create"], (
        "the second disable changed nothing"
    )


@pytest.mark.parametrize(
    ("spec", "change", "text"),
    [
        (TREE, {"kind": "trees"}, "/kind: Input tag 'trees' found"),
        (TREE, {"kind": None}, "/kind: Input tag 'None' found"),
        (TREE, {"tree": "linus"}, "/tree: no tree 'linus'"),
        (TREE, {"tree": 5}, "/tree: Input should be a valid string"),
        (TREE, {"url": "https://ada:secret@git.example.org/x.git"}, "credentials"),
        (TREE, {"url": "/etc"}, "/url: local path '/etc' is not allowed"),
        (TREE, {"targets": ["flush@tiny", "flusch@tiny"]}, "/targets/1: no plan 'flusch'; did you mean flush?"),
        (TREE, {"targets": ["flush@tyni"]}, "no device type 'tyni'"),
        (TREE, {"owner": "read"}, "/owner: the account read may not submit; give it the role submitter"),
        (TREE, {"owner": "nobody"}, "no account 'nobody'; an administrator makes it with `wqlab-server user create`"),
        (TREE, {"branches": []}, "name branches, tags or both"),
        (TREE, {"paths": ["kernel/"]}, "/paths: unknown field 'paths'; remove it"),
        (TREE, {"enabled": True}, "/enabled: a new watch is disabled"),
        (LIST, {"archive": "lkml"}, "/archive: no archive 'lkml'; there are: ours"),
        (LIST, {"branches": ["for-next"]}, "/branches: unknown field"),
        (LIST, {"targets": []}, "the watch has to say what is measured"),
    ],
)
def test_mistakes_are_refused(client: httpx.Client, spec: dict[str, Any], change: dict[str, Any], text: str) -> None:
    assert text in details(client.post(PATH, json=spec | change))


def test_kind_is_required(client: httpx.Client) -> None:
    assert details(client.post(PATH, json={"name": "next"})) == "/kind: 'kind' is required"


def test_name_is_taken_until_the_watch_is_removed(client: httpx.Client) -> None:
    expect(client.post(PATH, json=TREE), 201)
    assert "there is a watch next already" in expect(client.post(PATH, json=TREE), 409).json()["detail"]
    for change, text in (
        (TREE | {"name": "other"}, "/name: must be next; make a new watch to change the name"),
        (LIST | {"name": "next"}, "/kind: must be tree; make a new watch to change the kind"),
        (TREE | {"enabled": True}, "/enabled: change this with POST /api/v1/watches/next/enable or /disable"),
    ):
        assert details(client.put(f"{PATH}/next", json=change)) == text
    expect(client.post(f"{PATH}/next/enable"))
    changed = expect(client.put(f"{PATH}/next", json=TREE | {"batch": "all", "enabled": True})).json()
    assert (changed["spec"]["batch"], changed["spec"]["enabled"]) == ("all", True) and changed["enabled_at"]
    expect(client.post(f"{PATH}/next/disable"))
    assert expect(client.get(f"{PATH}/next")).json()["repository"]["next_look_at"] is None
    expect(client.post(f"{PATH}/next/check"), 409)
    expect(client.delete(f"{PATH}/next"), 204)
    expect(client.get(f"{PATH}/next"), 404)
    expect(client.post(PATH, json=TREE), 201)


def test_what_a_kind_does_not_have_is_refused(client: httpx.Client) -> None:
    for spec in (TREE, LIST):
        expect(client.post(PATH, json=spec), 201)
    assert "is of a tree" in expect(client.get(f"{PATH}/next/preview"), 409).json()["detail"]
    assert expect(client.get(f"{PATH}/next/decisions")).json()["items"] == []
    for answer in (client.get(f"{PATH}/wq/heads"), client.post(f"{PATH}/wq/check")):
        assert "is of a list" in expect(answer, 409).json()["detail"]


def test_watch_with_a_mistake_says_so_and_is_not_enabled(live: Live, client: httpx.Client) -> None:
    expect(client.post(PATH, json=LIST), 201)
    (live.app.state.settings.data_dir / "intake/archives.yaml").write_text("archives: []\n")
    live.app.state.data._checked_at = float("-inf")
    assert expect(client.get(f"{PATH}/wq")).json()["problems"] == ["archive: no archive 'ours'; there are: none"]
    assert details(client.post(f"{PATH}/wq/enable")) == "/archive: no archive 'ours'; there are: none"


def test_watch_of_the_data_folder_is_switched_but_not_changed(
    client: httpx.Client, sync: Callable[[str], None]
) -> None:
    file = "kind: tree\nname: next\ntree: t\nbranches: [for-next]\ntargets: [flush@tiny]\nowner: submit\n"
    sync(f"{file}enabled: true\n")
    for method in ("PUT", "DELETE"):
        refused = expect(client.request(method, f"{PATH}/next", json=TREE), 409)
        assert "intake/watches/next.yaml" in refused.json()["detail"]
    expect(client.post(f"{PATH}/next/disable"))
    sync(f"{file}enabled: true\n")
    assert expect(client.get(f"{PATH}/next")).json()["enabled_at"] is None, "until the file changes"
    sync(f"{file}enabled: true\nbatch: all\n")
    assert expect(client.get(f"{PATH}/next")).json()["enabled_at"] is not None
    sync("")
    expect(client.get(f"{PATH}/next"), 404)


def test_file_replaces_a_watch_of_its_name_also_of_another_kind(
    client: httpx.Client, sync: Callable[[str], None]
) -> None:
    expect(client.post(PATH, json=LIST | {"name": "next"}), 201)
    before = expect(client.post(f"{PATH}/next/enable")).json()["enabled_at"]
    file = "kind: tree\nname: next\ntree: t\nbranches: [for-next]\ntargets: [flush@tiny]\nowner: submit\n"
    sync(f"{file}enabled: true\n")
    found = expect(client.get(f"{PATH}/next")).json()
    assert (found["spec"]["kind"], found["from_file"]) == ("tree", True) and found["enabled_at"] > before
    sync(f"{file}enabled: false\n")
    assert expect(client.get(f"{PATH}/next")).json()["enabled_at"] is None
