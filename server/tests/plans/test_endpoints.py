"""Endpoints of plans and trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select

from wqlab_contracts.api.plans import PlanView, TreeView
from wqlab_contracts.enums import (
    JobState,
    Outcome,
)
from wqlab_contracts.messages import ApplyJob, ApplyResult, Failure
from wqlab_server.models import Apply
from wqlab_server.storage.db import SessionFactory, transaction

from ..support.live_server import Live, expect
from ..support.scene import REQUEST, TINY, Scene

pytestmark = pytest.mark.integration


def test_plans_have_their_script_and_trees_their_head(client: httpx.Client, scene: Scene) -> None:
    plans = [PlanView.model_validate(each) for each in expect(client.get("/api/v1/plans?files=true")).json()]
    assert [each.plan.name for each in plans] == ["flush", "health-check"]
    assert plans[0].script == "echo measuring\n"
    trees = [TreeView.model_validate(each) for each in expect(client.get("/api/v1/trees")).json()]
    assert [(each.tree.name, each.base_commit) for each in trees] == [("t", None)]
    scene.builds(scene.submission())
    assert client.get("/api/v1/trees").json()[0]["base_commit"] is None, "a series can have a base commit of its own"


def test_added_device_type_is_accepted_without_a_restart(live: Live, scene: Scene, scene_data_dir: Path) -> None:
    wanted = REQUEST | {"targets": [{"plan": "flush", "device_type": "other"}]}
    with live.client() as client:
        assert client.post("/api/v1/submissions", json=wanted).status_code == 422
        (scene_data_dir / "device-types" / "other.yaml").write_text(TINY.replace("tiny", "other"))
        live.app.state.data._checked_at = float("-inf")
        assert client.post("/api/v1/submissions", json=wanted).status_code == 201


def test_plan_has_its_files(client: httpx.Client, scene: Scene) -> None:
    folder = scene.settings.data_dir / "testplans/flush"
    (folder / "README.md").write_text("What it measures.\n")
    (folder / "lib.sh").write_text("helper() { :; }\n")
    (plan,) = client.get("/api/v1/plans?files=true&name=flush").json()
    assert plan["script"] == "echo measuring\n"
    assert (plan["files"], plan["readme"]) == ({"lib.sh": "helper() { :; }\n"}, "What it measures.\n")
    assert client.get("/api/v1/plans?files=true&name=none").json() == []
    without = client.get("/api/v1/plans?name=flush").json()
    assert without == [plan | {"script": "", "files": {}, "readme": ""}]


def test_names_are_those_of_the_data_folder(client: httpx.Client, scene: Scene) -> None:
    assert expect(client.get("/api/v1/names")).json() == {
        "plans": {"flush": ["locks", "bw"], "health-check": []},
        "device_types": ["tiny"],
        "trees": ["t"],
    }


def test_large_answers_are_compressed(client: httpx.Client) -> None:
    plain, packed = (
        client.get("/api/v1/plans?files=true", headers={"Accept-Encoding": coding}) for coding in ("identity", "gzip")
    )
    assert plain.json() == packed.json()
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content)


def test_tree_shows_the_last_resolved_commit(client: httpx.Client, scene: Scene, sessions: SessionFactory) -> None:
    def tree() -> Any:
        return client.get("/api/v1/trees").json()[0]

    assert (tree()["base_commit"], tree()["resolved_at"]) == (None, None)
    number = scene.submission(request=REQUEST | {"series": None})
    with transaction(sessions) as session:
        apply = session.scalars(select(Apply).where(Apply.submission_id == number)).one()
        apply.state, apply.outcome, apply.finished_at = JobState.FINISHED, Outcome.PASSED, func.now()
        apply.result = _resolved(scene, "a" * 40)
    found = tree()
    assert (found["base_commit"], found["release"], found["failure"]) == ("a" * 40, "6.12.0", None)
    assert found["resolved_at"] is not None
    with transaction(sessions) as session:
        gone = Failure(kind="infrastructure", summary="cannot reach the tree")
        session.add(
            Apply(
                payload=ApplyJob(submission_id=0, tree=scene.data.current().trees["t"], series=None),
                state=JobState.FINISHED, outcome=Outcome.FAILED, failure=gone,
            )
        )  # fmt: skip
    assert tree()["failure"]["summary"] == "cannot reach the tree"
    assert tree()["base_commit"] == "a" * 40, "the last resolved commit is kept"


def _resolved(scene: Scene, commit: str) -> Any:
    from wqlab_contracts.messages import Source

    tree = scene.data.current().trees["t"]
    source = Source(tree=tree, base_commit=commit, tree_oid="b" * 40, commit=commit, release="6.12.0")
    return ApplyResult(outcome=Outcome.PASSED, baseline=source, toolchain="gcc 12")
