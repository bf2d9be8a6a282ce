"""What a maintainer sees of a forge: events, polls, statuses, errors, and heads with the reason why they wait."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from wqlab_contracts.api.forges import ForgeDetail, ForgeView
from wqlab_contracts.enums import AuditAction, DeliveryState, ForgeHeadState, UserRole
from wqlab_server.intake.forges.poll import poll
from wqlab_server.models import AuditEntry

from ...support.forge import Fault
from ...support.people import add_user
from .hub import API, LABELED, OPENED, Hub, github, hub, labeled
from .recorded import OLD, load

__all__ = ["github", "hub", "labeled"]

pytestmark = pytest.mark.integration


def get(hub: Hub, path: str = "", status: int = 200) -> Any:
    headers = {"Authorization": f"Bearer {hub.lab.token}"}
    answer = hub.lab.client.get(f"/api/v1/forges{path}", headers=headers)
    assert answer.status_code == status, answer.text
    return answer.json()


def shown(hub: Hub) -> ForgeDetail:
    return ForgeDetail.model_validate(get(hub, "/hub"))


def test_a_forge_that_has_told_nothing(github: Hub) -> None:
    (view,) = [ForgeView.model_validate(each) for each in get(github)]
    assert (view.name, view.repository, view.owner) == ("hub", "wq/linux", "dev")
    assert view.url == f"{github.stub.url}/wq/linux"
    assert view.next_poll_at is not None, "it is due"
    told = (view.last_event_at, view.polled_at, view.last_status, view.last_error, view.missed, view.heads)
    assert told == (None, None, None, None, 0, {})
    assert "the operator lists forges in intake/forges.yaml" in get(github, "/other", 404)["detail"]


def test_event_poll_and_status_are_shown(github: Hub) -> None:
    github.event(OPENED["github"])
    detail = shown(github)
    assert (detail.last_event, detail.last_event_answer) == ("pull_request", "taken: pull/7")
    assert detail.last_status is not None
    assert (detail.last_status.commit, detail.last_status.state) == (OLD, "pending")
    assert detail.last_status.delivery is DeliveryState.DELIVERED
    assert detail.heads == {ForgeHeadState.MEASURING: 1}
    (head,) = detail.waiting
    assert (head.change, head.author, head.commit, head.submission_id) == ("pull/7", "ada", OLD, 1)
    github.poll()
    github.measure()
    detail = shown(github)
    assert detail.polled_at is not None and detail.next_poll_at is not None
    assert (detail.heads, detail.waiting, detail.last_error) == ({ForgeHeadState.MEASURED: 1}, [], None)


def test_heads_that_wait_or_are_not_measured_say_why(labeled: Hub) -> None:
    kind = labeled.stub.kind
    labeled.event(f"{OPENED[kind]}-fork")
    (head,) = shown(labeled).waiting
    assert (head.state, head.from_fork) == (ForgeHeadState.WAITING, True)
    assert head.reason.startswith("waits for the label 'wqlab: ok' by somebody with write access: mallory")
    labeled.set_labels("wqlab: ok")
    labeled.result = labeled.result.model_copy(update={"config": None})
    labeled.event(LABELED[kind])
    detail = shown(labeled)
    assert detail.waiting == []
    assert [each.reason for each in detail.not_measured] == ["there is no .wqlab.yaml"]
    assert detail.heads == {ForgeHeadState.NOT_MEASURED: 1}


def test_strangers_are_listed_as_not_measured(github: Hub) -> None:
    github.stub.pulls[7] = load(f"{API['github']}-fork")
    github.event("github-pull_request-opened-fork")
    (head,) = shown(github).not_measured
    assert (head.author, head.reason) == ("mallory", "not measured: mallory may not write to the repository")


def test_the_last_error_is_named(github: Hub) -> None:
    assert github.post(OPENED["github"], **{"X-Hub-Signature-256": "sha256=0"}).status_code == 401
    error = shown(github).last_error
    assert error is not None and error.what == "event"
    assert error.problem.startswith("401: X-Hub-Signature-256 does not match the body")
    github.stub.faults = [Fault(404)]
    github.event(OPENED["github"])
    error = shown(github).last_error
    assert error is not None and error.what == "pull/7"
    assert error.problem == "pull request 7: the API answered 404: it does not exist, or the token may not read it"
    github.all_due()
    github.stub.faults = [None, Fault(403, {"message": "Resource not accessible"})]
    github.settle()
    error = shown(github).last_error
    assert error is not None and error.what == "delivery 1"
    assert "the token needs the right to write commit statuses" in error.problem
    github.stub.faults = [Fault(500)]
    github.poll()
    error = shown(github).last_error
    assert error is not None and error.what == "poll"


def test_a_maintainer_polls_now(github: Hub) -> None:
    github.poll()
    github.stub.branches["wq/wake-one"] = OLD
    github.lab.sent.clear()
    github.lab.post("forges/hub/poll")
    (message,) = github.lab.sent
    assert message.id is not None
    poll(github.lab.sessions, github.lab.settings, message.id)
    github.settle()
    assert [job.head for job in github.jobs] == [OLD]
    with github.lab.transaction() as session:
        entry = session.scalars(select(AuditEntry).where(AuditEntry.action == AuditAction.POLL_FORGE)).one()
        assert entry.resource == "forge/hub"


def test_submitters_do_not_see_forges(github: Hub) -> None:
    with github.lab.transaction() as session:
        add_user(session, "sub", UserRole.SUBMITTER)
    assert github.lab.client.get("/api/v1/forges").status_code == 401
