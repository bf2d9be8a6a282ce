"""Polls find what no event has told, and measure it as if its event had arrived; old heads stay unmeasured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from wqlab_contracts.forges_file import find_forge
from wqlab_contracts.messages.forge_listings import ForgeListing
from wqlab_server.http.forge_api import ForgeApi
from wqlab_server.intake.forges import list_heads as lists
from wqlab_server.intake.forges.list_heads import list_heads
from wqlab_server.intake.forges.poll import nudge_due, order, poll
from wqlab_server.models import ForgeChange

from ...support.forge import TOKEN, Fault, StubForge, stub_forge
from .hub import API, OPENED, Hub, github, github_only_by_default, hub, labeled
from .recorded import NEW, OLD, load

__all__ = ["github", "hub", "labeled"]

pytestmark = pytest.mark.integration
NEWER = "c" * 40


def add_pull(hub: Hub, number: int, head: str) -> None:
    """Add an open pull request of which no event tells."""
    pull = load(API[hub.stub.kind])
    changed = {"sha": head, "iid": number} if hub.stub.kind == "gitlab" else {
        "number": number, "head": {**pull["head"], "sha": head, "ref": f"topic-{number}"},
    }  # fmt: skip
    hub.stub.pulls[number] = {**pull, **changed}


def changes(hub: Hub) -> list[str]:
    with hub.lab.transaction() as session:
        return list(session.scalars(select(ForgeChange.key).order_by(ForgeChange.key)))


def test_what_was_there_at_the_first_poll_is_not_measured(hub: Hub) -> None:
    hub.stub.branches = {"for-next": OLD, "wq/wake-one": OLD}
    for _ in range(2):
        row = hub.poll()
    assert (hub.jobs, changes(hub), row.missed, row.problem) == ([], [], 0, "")
    assert row.start == {"pull/7": OLD, "branch/for-next": OLD, "branch/wq/wake-one": OLD}
    assert row.polled_at is not None


def test_lost_events_of_pull_requests_are_made_good_once(hub: Hub) -> None:
    hub.poll()
    add_pull(hub, 8, NEW)
    hub.set_head(NEWER)
    row = hub.poll()
    assert {(job.head, job.base_branch) for job in hub.jobs} == {(NEW, "for-next"), (NEWER, "for-next")}
    assert (row.missed, len(hub.submissions)) == (2, 2)
    assert {each["commit"] for each in hub.stub.statuses} == {NEW, NEWER}
    # Neither another poll nor the event itself, which arrives late, measures it again.
    assert hub.poll().missed == 2
    hub.event(OPENED[hub.stub.kind])
    assert (len(hub.submissions), len(hub.jobs), hub.repository().missed) == (2, 2, 2)


@github_only_by_default
def test_lost_pushes_closed_pull_requests_and_deleted_branches_are_found(hub: Hub) -> None:
    hub.poll()
    hub.stub.branches["wq/wake-one"] = NEW
    hub.event(OPENED[hub.stub.kind])
    hub.poll()
    assert [(job.head, job.base_branch) for job in hub.jobs] == [(OLD, "for-next"), (NEW, "")]
    assert [each.cancel_requested_at for each in hub.submissions] == [None, None]
    hub.stub.pulls[7] = {**hub.stub.pulls[7], "state": "closed", "updated_at": "2026-01-12T12:00:00Z"}
    del hub.stub.branches["wq/wake-one"]
    assert hub.poll().missed == 3
    assert [each.cancel_requested_at is not None for each in hub.submissions] == [True, True]
    assert {each.reason for each in hub.heads()} == {"the pull request was closed", "the branch was deleted"}
    hub.poll()
    assert hub.repository().missed == 3
    # Opened again and not told: it is measured again.
    hub.set_head(OLD, "2026-01-12T13:00:00Z", state="opened" if hub.stub.kind == "gitlab" else "open")
    hub.poll()
    assert len(hub.submissions) == 3


def test_a_change_of_the_base_branch_is_found(hub: Hub) -> None:
    hub.event(OPENED[hub.stub.kind])
    base: dict[str, Any] = (
        {"target_branch": "master"}
        if hub.stub.kind == "gitlab"
        else {"base": {**hub.stub.pulls[7]["base"], "ref": "master"}}
    )
    hub.stub.pulls[7] = {**hub.stub.pulls[7], **base, "updated_at": "2026-01-12T12:00:00Z"}
    hub.poll()
    assert [job.base_branch for job in hub.jobs] == ["for-next", "master"]


def test_forks_that_polls_find_are_as_safe_as_those_of_events(labeled: Hub) -> None:
    """A stranger's head waits for the label, which counts for the commit of its event."""
    labeled.stub.pulls.clear()
    labeled.poll()
    labeled.stub.pulls[7] = load(f"{API[labeled.stub.kind]}-fork")
    labeled.poll()
    assert labeled.jobs == []
    assert labeled.stub.last_status()[2].startswith("waits for the label 'wqlab: ok'")
    labeled.set_labels("wqlab: ok")
    assert labeled.poll().missed == 1
    assert labeled.jobs == []


def test_unchanged_pages_are_not_sent_again(hub: Hub) -> None:
    hub.stub.branches["for-next"] = OLD
    hub.poll()
    hub.poll()
    assert hub.stub.unchanged == (0 if hub.stub.kind == "gitea" else 2)
    add_pull(hub, 8, NEW)
    hub.poll()
    assert hub.stub.unchanged == (0 if hub.stub.kind == "gitea" else 3)
    assert [job.head for job in hub.jobs] == [NEW]


def test_a_limit_of_requests_delays_the_next_poll(github: Hub) -> None:
    github.poll()
    github.stub.faults = [Fault(429, {"message": "slow down"}, {"Retry-After": "7200"})]
    row = github.poll()
    assert row.problem == "the forge limits requests; the next one is possible in 7200 s"
    assert row.due_at is not None and row.problem_at is not None
    assert (row.due_at - row.problem_at).total_seconds() == pytest.approx(7200, abs=5)
    github.stub.faults = [Fault(502)]
    row = github.poll()
    assert row.problem == "the open pull requests: the API answered 502"
    assert row.due_at is not None and row.problem_at is not None
    assert (row.due_at - row.problem_at).total_seconds() == pytest.approx(900, abs=30)
    assert github.poll().problem == ""


@pytest.fixture
def stub() -> Iterator[StubForge]:
    with stub_forge("github") as stub:
        yield stub


@pytest.mark.parametrize("prefix", ["x-ratelimit-", "ratelimit-"])
def test_the_last_tenth_of_the_requests_is_left_to_events(stub: StubForge, tmp_path: Path, prefix: str) -> None:
    few = {f"{prefix}limit": "5000", f"{prefix}remaining": "499", f"{prefix}reset": "99999999999"}
    stub.faults = [
        Fault(200, headers=few | {f"{prefix}remaining": "500"}, only_headers=True),
        Fault(200, headers=few, only_headers=True),
    ]
    api = ForgeApi(stub.config(tmp_path), TOKEN)
    with pytest.raises(lists.ApiFailed, match="few requests are left") as caught:
        list_heads(api, None)
    assert caught.value.wait_s is not None and caught.value.wait_s > 1e6
    assert len(stub.requests) == 2


def test_all_pages_are_read_up_to_a_limit(stub: StubForge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub.branches = {f"b{number:04}": OLD for number in range(120)}
    api = ForgeApi(stub.config(tmp_path), TOKEN)
    first = list_heads(api, None)
    assert (len(first.heads), len(first.pages), first.is_complete) == (120, 4, True)
    stub.branches["b0119"] = NEW
    again = list_heads(api, first)
    assert stub.unchanged == 3
    assert [head.head for head in again.heads if head.key == "branch/b0119"] == [NEW]
    assert ForgeListing.model_validate_json(again.model_dump_json()) == again
    monkeypatch.setattr(lists, "PAGES", 2)
    assert not list_heads(api, None).is_complete


def test_branches_of_a_repository_with_too_many_are_not_taken_for_new(
    github: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deleted branch moves an old one into the pages that are read."""
    monkeypatch.setattr(lists, "PAGES", 1)
    github.stub.branches = {f"b{number:04}": OLD for number in range(60)}
    github.poll()
    del github.stub.branches["b0000"]
    github.poll()
    assert (changes(github), github.jobs) == ([], [])


def test_another_repository_under_the_same_name_begins_anew(github: Hub, data_dir: Path) -> None:
    github.poll()
    forge = find_forge(data_dir, "hub")
    assert forge is not None
    with github.lab.transaction() as session:
        nudge_due(session, github.lab.settings, [forge.model_copy(update={"repository": "wq/other"})])
    row = github.repository()
    assert (row.listing, row.start, row.url[-8:]) == (None, {}, "wq/other")


def test_a_repository_that_is_no_longer_listed_is_forgotten(github: Hub) -> None:
    github.poll()
    with github.lab.transaction() as session:
        nudge_due(session, github.lab.settings, [])
    add_pull(github, 8, NEW)
    assert github.poll().missed == 0
    assert github.jobs == []


def test_polls_that_are_switched_off_are_made_on_request(github: Hub) -> None:
    settings = github.lab.settings.model_copy(update={"forge_poll_s": 0.0})
    forges = github.lab.data.forges
    with github.lab.transaction() as session:
        nudge_due(session, settings, forges)
    assert github.repository().due_at is None
    with github.lab.transaction() as session:
        order(session, forges[0])
    with github.lab.transaction() as session:
        nudge_due(session, settings, forges)
    poll(github.lab.sessions, settings, github.repository().id)
    row = github.repository()
    assert row.polled_at is not None
    assert row.due_at is None
