"""Pull requests and pushes from event to submission to status and comment, against a stub of each forge's API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from wqlab_contracts.api.touches import TouchedFile
from wqlab_contracts.enums import ErrorKind, Outcome, SubmissionState
from wqlab_contracts.messages.forge_readings import ForgeReadingResult
from wqlab_server.models import ForgeChange

from ...support.forge import Fault
from ...support.lab import failed
from .hub import BASE, CONFIG, LABELED, OPENED, Hub, github, github_only_by_default, hub, labeled
from .recorded import NEW, OLD, load

__all__ = ["github", "hub", "labeled"]

pytestmark = pytest.mark.integration


def test_pull_request_is_measured_and_told(hub: Hub) -> None:
    hub.event(OPENED[hub.stub.kind])
    (job,) = hub.jobs
    assert (job.head, job.base_branch, job.config_from) == (OLD, "for-next", "head")
    (submission,) = hub.submissions
    assert submission.owner == "dev"
    assert submission.request.series is not None
    git = submission.request.series.git
    assert git is not None
    assert (git.url, git.ref, git.base) == ("https://git.example.org/wq/linux.git", OLD, BASE)
    assert submission.title.startswith("workqueue: wake one idle worker (")
    assert [each["state"] for each in hub.stub.statuses] == ["pending"]
    assert hub.stub.statuses[0]["target_url"] == f"http://lab.test/r/{submission.id}"
    hub.measure()
    state = hub.submissions[0]
    assert state.state is SubmissionState.FINISHED
    expected = {0: "success", 1: "failed" if hub.stub.kind == "gitlab" else "failure"}[state.exit_code or 0]
    commit, status, description = hub.stub.last_status()
    assert (commit, status) == (OLD, expected)
    assert description.startswith("locks@single: ")
    (comment,) = hub.stub.comments
    assert comment["body"].startswith("<!-- wqlab hub 7 -->\n")
    assert OLD in comment["body"]
    assert hub.stub.tokens == {f"{'token' if hub.stub.kind == 'gitea' else 'Bearer'} token-of-the-bot"}


@pytest.mark.parametrize("hub", ["gitea"], indirect=True)
@pytest.mark.parametrize("ref", ["mallory/topic", "for-next"])
def test_pull_request_whose_head_is_no_branch_there_is_not_the_repositorys(hub: Hub, ref: str) -> None:
    """AGit: whoever may read can push to refs/for/BRANCH/TOPIC, whatever name the API then shows."""
    pull = hub.stub.pulls[7]
    hub.stub.branches["for-next"] = "c" * 40
    hub.stub.pulls[7] = {**pull, "agit": True, "head": {**pull["head"], "ref": ref, "label": ref}}
    hub.event(OPENED["gitea"])
    assert hub.jobs == [] and hub.submissions == []


@github_only_by_default
def test_new_head_cancels_the_older_submission_and_edits_the_comment(hub: Hub) -> None:
    hub.event(OPENED[hub.stub.kind])
    hub.measure()
    hub.set_head(NEW)
    name = {
        "github": "pull_request-synchronize",
        "gitea": "pull_request-synchronized",
        "gitlab": "merge_request-update",
    }
    hub.event(f"{hub.stub.kind}-{name[hub.stub.kind]}")
    hub.set_head("c" * 40, "2026-01-12T12:00:00Z")
    hub.event(f"{hub.stub.kind}-{name[hub.stub.kind]}")
    assert [each.cancel_requested_at is not None for each in hub.submissions] == [False, True, False]
    hub.measure()
    assert hub.submissions[1].outcome is Outcome.CANCELED
    (comment,) = hub.stub.comments
    assert "c" * 40 in comment["body"]
    assert OLD not in comment["body"]
    states = [(each["commit"][0], each["state"]) for each in hub.stub.statuses]
    canceled = "canceled" if hub.stub.kind == "gitlab" else "error"
    assert ("b", canceled) in states
    assert states[-1][0] == "c"
    assert {each.series_key for each in hub.submissions} == {"hub pull/7"}, "heads of one pull request are versions"


def test_events_out_of_order_leave_the_head_that_the_api_says(hub: Hub) -> None:
    """The event of the newer head arrives first, then that of the older one, then the first again."""
    hub.set_head(NEW)
    hub.event(OPENED[hub.stub.kind])
    hub.event(OPENED[hub.stub.kind])
    assert [job.head for job in hub.jobs] == [NEW]
    assert len(hub.submissions) == 1


def test_an_older_answer_of_the_api_does_not_replace_a_newer_one(github: Hub) -> None:
    github.set_head(NEW, "2026-01-12T11:00:00Z")
    github.event(OPENED["github"])
    github.set_head(OLD, "2026-01-12T10:00:00Z")
    github.event(OPENED["github"])
    assert [job.head for job in github.jobs] == [NEW]


def test_closed_pull_request_cancels_and_reopened_measures_again(github: Hub) -> None:
    github.event(OPENED["github"])
    github.set_head(OLD, "2026-01-12T12:00:00Z", state="closed")
    github.event("github-pull_request-closed")
    assert github.submissions[0].cancel_requested_at is not None
    assert github.stub.last_status() == (OLD, "error", "the pull request was closed")
    github.set_head(OLD, "2026-01-12T13:00:00Z", state="open")
    github.event("github-pull_request-reopened")
    assert len(github.submissions) == 2
    assert github.stub.last_status()[1] == "pending"
    assert github.stub.comments == []


def test_repeated_delivery_does_nothing(hub: Hub) -> None:
    hub.event(OPENED[hub.stub.kind], delivery="same")
    requests = len(hub.stub.requests)
    answer = hub.post(OPENED[hub.stub.kind], delivery="same")
    assert (answer.status_code, answer.json()["result"][:9]) == (202, "repeated:")
    hub.settle()
    assert len(hub.stub.requests) == requests


@pytest.mark.parametrize(
    ("headers", "status", "says"),
    [
        ({"X-Hub-Signature-256": "sha256=" + "0" * 64}, 401, "does not match the body"),
        ({"X-Hub-Signature-256": ""}, 401, "no header X-Hub-Signature-256"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415, "content type to application/json"),
        ({"X-GitHub-Event": ""}, 400, "no header x-github-event"),
    ],
)
def test_events_that_are_refused(github: Hub, headers: dict[str, str], status: int, says: str) -> None:
    answer = github.post(OPENED["github"], **headers)
    assert answer.status_code == status
    assert says in answer.json()["detail"]
    github.settle()
    assert github.stub.requests == []
    assert github.heads() == []


def test_unknown_forge_wrong_repository_large_body_and_lost_secret(github: Hub, tmp_path: Path) -> None:
    assert github.lab.client.post("/api/v1/forges/other/events", json={}).status_code == 404
    other = load(OPENED["github"]) | {"repository": {"full_name": "other/linux"}}
    assert github.post("", payload=other).status_code == 422
    assert github.post("", payload={"x": "y" * 2_000_000}).status_code == 413
    assert github.post("", payload={"x": "y" * 200_000, **load(OPENED["github"])}).status_code == 202
    (tmp_path / "secret").unlink()
    answer = github.post(OPENED["github"])
    assert answer.status_code == 503
    assert "secret_file" in answer.json()["detail"]


def test_echoes_of_the_labs_own_statuses_and_comments_do_nothing(hub: Hub) -> None:
    names = {
        "github": [("github-status", "status"), ("github-issue_comment-created", "issue_comment")],
        "gitea": [("gitea-status", "status")],
        "gitlab": [("gitlab-pipeline", "Pipeline Hook"), ("gitlab-note", "Note Hook")],
    }
    for name, event in names[hub.stub.kind]:
        assert hub.post(name, event).json()["result"].startswith("ignored: ")
    hub.settle()
    assert hub.stub.requests == []


def test_fork_of_a_stranger_is_not_measured(github: Hub) -> None:
    github.stub.pulls[7] = load("github-api-pull-fork")
    github.event("github-pull_request-opened-fork")
    assert (github.jobs, github.submissions, github.stub.statuses) == ([], [], [])
    (head,) = github.heads()
    assert head.reason == "not measured: mallory may not write to the repository"


def test_fork_of_a_member_is_measured_by_the_base_branchs_file(github: Hub) -> None:
    github.stub.pulls[7] = load("github-api-pull-fork")
    github.stub.writers.add("mallory")
    github.event("github-pull_request-opened-fork")
    assert [job.config_from for job in github.jobs] == ["base"]
    assert len(github.submissions) == 1


def test_label_allows_the_commit_at_which_a_member_set_it(labeled: Hub) -> None:
    kind = labeled.stub.kind
    labeled.event(f"{OPENED[kind]}-fork")
    assert labeled.jobs == []
    assert labeled.stub.last_status()[1] == "pending"
    assert labeled.stub.last_status()[2].startswith("waits for the label 'wqlab: ok'")
    labeled.set_labels("wqlab: ok")
    labeled.event(LABELED[kind])
    assert [job.config_from for job in labeled.jobs] == ["base"]
    assert len(labeled.submissions) == 1
    # A commit that is pushed afterwards waits again, although the label is still set.
    labeled.set_head(NEW)
    labeled.event(OPENED[kind])
    assert len(labeled.jobs) == 1
    assert labeled.stub.last_status()[2].startswith("waits for the label")
    assert labeled.submissions[0].cancel_requested_at is not None


def test_label_by_somebody_without_write_access_allows_nothing(labeled: Hub) -> None:
    labeled.stub.writers.clear()
    labeled.set_labels("wqlab: ok")
    labeled.event(LABELED[labeled.stub.kind])
    assert labeled.jobs == []
    assert "may not write to the repository" in labeled.stub.last_status()[2]


@github_only_by_default
def test_push_is_measured_if_the_file_names_the_branch(hub: Hub) -> None:
    hub.stub.branches["wq/wake-one"] = NEW
    hub.event(f"{hub.stub.kind}-push", "push")
    (job,) = hub.jobs
    assert (job.head, job.base_branch) == (NEW, "")
    assert hub.submissions[0].title.startswith("wq/wake-one of ")
    assert hub.stub.statuses[-1]["name"] == "wqlab/push"
    hub.measure()
    assert hub.stub.comments == []
    del hub.stub.branches["wq/wake-one"]
    hub.result = hub.result.model_copy(update={"config": "targets: [locks@single]\n"})
    hub.event(f"{hub.stub.kind}-push", "push")
    hub.stub.branches["wq/wake-one"] = OLD
    hub.event(f"{hub.stub.kind}-push", "push")
    assert len(hub.submissions) == 1, "without `branches` no push is measured"


@pytest.mark.parametrize(
    ("change", "state", "says"),
    [
        ({"config": "targets:\n  - locks\n"}, "failure", ".wqlab.yaml:2: targets[0]: String should match"),
        ({"config": "targets: [lock@single]\n"}, "failure", ".wqlab.yaml: "),
        ({"config": f"{CONFIG}paths: [fs/]\n"}, "success", "no changed file is among the paths of .wqlab.yaml"),
        (
            {"outcome": Outcome.FAILED, "failure": failed(ErrorKind.USER, ".wqlab.yaml is not a regular file")},
            "failure",
            ".wqlab.yaml is not a regular file",
        ),
    ],
)
def test_what_cannot_be_measured_is_said_in_the_status(
    github: Hub, change: dict[str, Any], state: str, says: str
) -> None:
    github.result = github.result.model_copy(update=change)
    github.event(OPENED["github"])
    assert github.submissions == []
    assert github.stub.last_status()[:2] == (OLD, state)
    assert github.stub.last_status()[2].startswith(says)


@pytest.fixture
def table(data_dir: Path) -> None:
    """A lab that proposes locks@single for changes of two functions."""
    (data_dir / "testplans/touches.yaml").write_text(
        "touches: [{name: wq, paths: [kernel/workqueue.c], symbols: [wake_up_worker], plans: ["
        "{plan: locks, asks: Does a flush take fewer locks?}]}]\n"
    )


@pytest.mark.parametrize(
    ("config", "symbol", "measured", "says"),
    [
        ("what_it_touches: true\n", "wake_up_worker", ["locks@single"], ""),
        ("what_it_touches: true\ntargets: [locks@single]\n", "wake_up_worker", ["locks@single"], ""),
        ("what_it_touches: true\ntargets: [locks@other]\n", "wake_up_worker", [], "the lab would measure locks@single"),
        ("what_it_touches: true\n", "init", [], "the lab has no plan for the files and functions"),
    ],
)
@pytest.mark.usefixtures("table")
def test_what_the_commits_touch_is_measured(
    github: Hub, config: str, symbol: str, measured: list[str], says: str
) -> None:
    touched = [TouchedFile(path="kernel/workqueue.c", symbols=[symbol])]
    github.result = github.result.model_copy(update={"config": config, "touched": touched})
    github.event(OPENED["github"])
    targets = [f"{each.plan}@{each.device_type}" for made in github.submissions for each in made.request.targets]
    assert targets == measured
    if says:
        assert github.stub.last_status()[1] == "success"
        assert github.stub.last_status()[2].startswith(says)


def test_repository_without_the_file_is_told_nothing(github: Hub) -> None:
    github.result = github.result.model_copy(update={"config": None})
    github.event(OPENED["github"])
    assert (github.submissions, github.stub.statuses) == ([], [])


def test_lab_failures_are_tried_again_and_told_as_errors(github: Hub) -> None:
    failure = failed(ErrorKind.INFRASTRUCTURE, "the tree cannot be fetched")
    github.result = ForgeReadingResult(outcome=Outcome.FAILED, failure=failure)
    github.event(OPENED["github"])
    assert len(github.jobs) == 3
    assert github.stub.last_status() == (OLD, "error", "the tree cannot be fetched")


def test_api_that_fails_is_asked_again(github: Hub) -> None:
    github.stub.faults = [Fault(502), Fault(403, {"message": "rate limit"}, {"Retry-After": "120"})]
    github.event(OPENED["github"])
    github.all_due()
    github.settle()
    assert github.jobs == []
    with github.lab.transaction() as session:
        change = session.scalars(select(ForgeChange)).one()
        assert change.problem == "the forge limits requests; the next one is possible in 120 s"
    github.all_due()
    github.settle()
    assert len(github.submissions) == 1


def test_comment_without_a_stored_id_is_found_by_its_marker(hub: Hub) -> None:
    hub.stub.add_comment("mallory", "<!-- wqlab hub 7 -->\nforged")
    hub.event(OPENED[hub.stub.kind])
    hub.measure()
    with hub.lab.transaction() as session:
        assert session.scalar(select(ForgeChange.comment_id)) == "101"
        session.execute(update(ForgeChange).values(comment_id=None))
    hub.set_head(NEW)
    hub.event(OPENED[hub.stub.kind])
    hub.measure()
    assert len(hub.stub.comments) == 2
    assert NEW in hub.stub.comments[1]["body"]
    assert hub.stub.comments[0]["body"] == "<!-- wqlab hub 7 -->\nforged"


def test_a_status_that_is_late_does_not_replace_a_newer_one(github: Hub) -> None:
    """The forge is away when the measurement begins, and back when it has finished."""
    answer = github.post(OPENED["github"])
    assert answer.status_code == 202
    github.stub.faults = [None, Fault(503)]
    github.settle()
    assert github.stub.statuses == []
    github.measure()
    github.all_due()
    github.settle()
    assert [each["state"] for each in github.stub.statuses] == [github.stub.last_status()[1]]
    states = [(each.event, each.state.value) for each in github.sent() if each.kind.value == "forge_status"]
    assert states[0] == ("pending", "dropped")
    assert states[1][1] == "delivered"
