"""Watched trees by REST: who may change them, and what is refused."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from wqlab_contracts.enums import Scope
from wqlab_server.intake import watched_trees
from wqlab_server.storage.db import SessionFactory, transaction

from ..support.live_server import Live, expect

pytestmark = pytest.mark.integration
PATH = "/api/v1/watched-trees"
SPEC: dict[str, Any] = {
    "name": "next", "tree": "t", "branches": ["for-next"], "targets": ["flush@tiny"], "owner": "submit",
}  # fmt: skip


def details(response: httpx.Response, status: int = 422) -> str:
    return "\n".join(error["detail"] for error in expect(response, status).json()["errors"])


def test_only_maintainers_change_watched_trees_and_readers_see_them(live: Live) -> None:
    with live.client(Scope.SUBMIT) as submitter, live.client(Scope.MAINTAIN) as maintainer:
        expect(submitter.post(PATH, json=SPEC), 403)
        made = expect(maintainer.post(PATH, json=SPEC), 201).json()
        assert (made["enabled"], made["from_file"], made["created_by"], made["heads"]) == (True, False, "maintain", {})
        for method, path in (
            ("POST", "check"), ("POST", "enable"), ("POST", "disable"), ("PUT", ""), ("DELETE", ""),
        ):  # fmt: skip
            expect(submitter.request(method, f"{PATH}/next/{path}".rstrip("/"), json=SPEC), 403)
        expect(maintainer.post(f"{PATH}/next/check"))
        with live.client(Scope.READ) as reader:
            assert [each["spec"]["name"] for each in expect(reader.get(PATH)).json()] == ["next"]
            assert expect(reader.get(f"{PATH}/next/heads")).json()["items"] == []
    with live.client() as administrator:
        entries = expect(administrator.get("/api/v1/audit", params={"limit": 200})).json()["items"]
    mine = [(entry["action"], entry["outcome"]) for entry in entries if entry["resource"] == "watched_tree/next"]
    assert ("watched_tree.create", "done") in mine and ("watched_tree.check", "done") in mine


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"tree": "linus"}, "no tree 'linus'"),
        ({"url": "https://ada:secret@git.example.org/x.git"}, "credentials"),
        ({"url": "/etc"}, "not allowed"),
        ({"targets": ["flusch@tiny"]}, "did you mean"),
        ({"targets": ["flush@tyni"]}, "no device type 'tyni'"),
        ({"owner": "read"}, "the account read may not submit; give it the role submitter"),
        ({"owner": "nobody"}, "no account 'nobody'; an administrator makes it with `wqlab-server user create`"),
        ({"branches": []}, "name branches, tags or both"),
    ],
)
def test_mistakes_are_refused(client: httpx.Client, change: dict[str, Any], text: str) -> None:
    assert text in details(client.post(PATH, json=SPEC | change))


def test_name_is_taken_until_the_tree_is_removed(client: httpx.Client) -> None:
    expect(client.post(PATH, json=SPEC), 201)
    assert "exists already" in expect(client.post(PATH, json=SPEC), 409).json()["detail"]
    assert "watched tree is called 'next'" in details(client.put(f"{PATH}/next", json=SPEC | {"name": "other"}))
    changed = expect(client.put(f"{PATH}/next", json=SPEC | {"batch": "all"})).json()
    assert changed["spec"]["batch"] == "all"
    expect(client.post(f"{PATH}/next/disable"))
    assert expect(client.get(f"{PATH}/next")).json()["next_look_at"] is None
    expect(client.post(f"{PATH}/next/check"), 409)
    expect(client.delete(f"{PATH}/next"))
    expect(client.get(f"{PATH}/next"), 404)
    expect(client.post(PATH, json=SPEC), 201)


def test_tree_of_the_data_folder_is_switched_but_not_changed(
    live: Live, client: httpx.Client, sessions: SessionFactory
) -> None:
    folder = live.app.state.settings.data_dir
    (folder / "intake").mkdir(exist_ok=True)
    (folder / "intake/watched-trees.yaml").write_text(
        "watched_trees: [{name: next, tree: t, branches: [for-next], targets: [flush@tiny], owner: submit}]\n"
    )

    def sync() -> None:
        live.app.state.data._checked_at = float("-inf")
        with transaction(sessions) as session:
            watched_trees.sync(session, live.app.state.data.current())

    sync()
    for method in ("PUT", "DELETE"):
        refused = expect(client.request(method, f"{PATH}/next", json=SPEC), 409)
        assert "intake/watched-trees.yaml" in refused.json()["detail"]
    expect(client.post(f"{PATH}/next/disable"))
    sync()
    assert expect(client.get(f"{PATH}/next")).json()["enabled"] is False, "until the file's entry changes"
