"""Endpoints of bisections: what they refuse, what they complete, and what they show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, select

from wqlab_contracts.enums import JobKind, Scope, UserRole
from wqlab_server.bisections import service
from wqlab_server.http.auth import create_token
from wqlab_server.models import AuditEntry
from wqlab_server.settings import Settings

from ..support.bisection_rows import BROKEN, COMMITS, CULPRIT, add_bisection, oid
from ..support.lab import LabUnderTest
from ..support.people import add_user

pytestmark = pytest.mark.integration

BODY = {
    "tree": "lab-tree", "good": "v1", "bad": "for-next", "plan": "locks", "device_type": "device",
    "metric": "locks_per_flush",
}  # fmt: skip


@pytest.fixture
def lab(settings: Settings, engine: Engine) -> Iterator[LabUnderTest]:
    lab = LabUnderTest(settings, engine)
    with lab.client:
        yield lab


def token_of(lab: LabUnderTest, name: str, role: UserRole, scope: Scope) -> str:
    with lab.transaction() as session:
        return create_token(session, name, [scope], user=add_user(session, name, role))[1]


def ask(lab: LabUnderTest, method: str, path: str, status: int, body: Any = None, token: str | None = None) -> Any:
    headers = {"Authorization": f"Bearer {token or lab.token}"}
    answer = lab.client.request(method, f"/api/v1/bisections{path}", json=body, headers=headers)
    assert answer.status_code == status, answer.text
    return answer.json()


def mistakes(lab: LabUnderTest, **changed: Any) -> dict[str, str]:
    problem = ask(lab, "POST", "", 422, {**BODY, **changed})
    return {each["pointer"]: each["detail"] for each in problem["errors"]}


def test_request_is_completed_and_listed(lab: LabUnderTest) -> None:
    made = ask(lab, "POST", "", 201, BODY)
    assert (made["state"], made["owner"], made["commits"]) == ("listing", "dev", None)
    request = made["request"]
    assert (request["scenario"], request["setting"], request["blocks"]) == ("flush", "", 2)
    assert [message.task for message in lab.sent] == [JobKind.LIST_COMMITS]
    assert ask(lab, "GET", "?active=true", 200)["total"] == 1
    assert ask(lab, "GET", "?state=found", 200)["items"] == []
    assert ask(lab, "GET", "?owner=nobody", 200)["items"] == []
    with lab.transaction() as session:
        actions = session.scalars(select(AuditEntry.action).order_by(AuditEntry.id)).all()
    assert "bisection.create" in actions


def test_every_mistake_is_named(lab: LabUnderTest) -> None:
    found = mistakes(lab, tree="linus", plan="lokcs", device_type="devise", bad="v1", recipe="fast")
    assert set(found) == {"/tree", "/plan", "/device_type", "/bad", "/recipe"}
    assert "locks" in found["/plan"]
    found = mistakes(lab, scenario="fsync", setting="scope=cache", metric="lock_per_flush")
    assert set(found) == {"/scenario", "/setting", "/metric"}
    assert "locks_per_flush" in found["/metric"]
    assert "throughput is no evidence on device; locks_per_flush is" in mistakes(lab, metric="throughput")["/metric"]
    assert "gives no figures" in mistakes(lab, recipe="debug")["/recipe"]
    assert "either `metric`, or `failure: true`" in str(mistakes(lab, failure=True))
    assert mistakes(lab, metric=None)
    assert "/good" in mistakes(lab, good="--upload-pack=x")


def test_debug_kernels_are_for_failures(lab: LabUnderTest) -> None:
    made = ask(lab, "POST", "", 201, {**BODY, "metric": None, "failure": True, "recipe": "debug"})
    assert made["request"]["recipe"] == "debug"


def test_readers_begin_none_and_submitters_cancel_only_their_own(lab: LabUnderTest) -> None:
    reader = token_of(lab, "ray", UserRole.VIEWER, Scope.READ)
    assert ask(lab, "POST", "", 403, BODY, reader)
    submitter = token_of(lab, "sue", UserRole.SUBMITTER, Scope.SUBMIT)
    own = ask(lab, "POST", "", 201, BODY, submitter)["id"]
    other = ask(lab, "POST", "", 201, BODY)["id"]
    refused = ask(lab, "POST", f"/{other}/cancel", 403, token=submitter)
    assert refused["detail"] == f"bisection {other} belongs to dev; only its owner or a maintainer may cancel it"
    ask(lab, "POST", f"/{own}/cancel", 200, token=submitter)
    ask(lab, "POST", f"/{own}/cancel", 200)  # by the administrator; it changes nothing
    lab.tick()
    assert ask(lab, "GET", f"/{own}", 200)["state"] == "canceled"
    assert ask(lab, "GET", f"/{other}", 200)["state"] == "listing"
    ask(lab, "POST", "/77/cancel", 404)


def test_open_bisections_of_an_owner_are_bounded(lab: LabUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MOST_OPEN", 1)
    ask(lab, "POST", "", 201, BODY)
    assert "1 of your bisections go on" in ask(lab, "POST", "", 429, BODY)["detail"]
    submitter = token_of(lab, "sue", UserRole.SUBMITTER, Scope.SUBMIT)
    ask(lab, "POST", "", 201, BODY, submitter)


def test_commits_have_probabilities_and_what_they_measured(lab: LabUnderTest) -> None:
    submission = lab.submit("locks@device")
    with lab.transaction() as session:
        number = add_bisection(session, submission)
    seen = ask(lab, "GET", f"/{number}", 200)
    assert (seen["culprit"]["commit"], seen["effect_unit"], seen["boots"]) == (oid(CULPRIT), "locks", 10)
    (level,) = seen["levels"]
    commits = level["commits"]
    assert level["measured"] and len(commits) == COMMITS
    assert sum(each["probability"] for each in commits) == pytest.approx(1)
    assert max(commits, key=lambda each: each["probability"])["position"] == CULPRIT
    assert commits[BROKEN - 1]["unusable"] == f"commit {oid(BROKEN)[:12]} does not build: error"
    assert (commits[3]["effect"], commits[3]["blocks"], len(commits[3]["submissions"])) == (0, 4, 2)
    assert (commits[-1]["effect"], commits[0]["effect"]) == (6, None)
    assert [each["kind"] for each in seen["steps"]] == ["ends", *["probe"] * 5, "confirm"]


def test_a_submission_leads_to_its_bisections(lab: LabUnderTest) -> None:
    """Those that have made it, and the one that a person began with it."""
    step, seen, other = (lab.submit("locks@device") for _ in range(3))
    with lab.transaction() as session:
        number = add_bisection(session, step)
    begun = ask(lab, "POST", "", 201, {**BODY, "submission": seen})
    assert begun["request"]["submission"] == seen

    def of(submission: int) -> list[int]:
        return [each["id"] for each in ask(lab, "GET", f"?submission={submission}", 200)["items"]]

    assert (of(step), of(seen), of(other)) == ([number], [begun["id"]], [])
    assert mistakes(lab, submission=4711) == {"/submission": "no submission 4711"}
