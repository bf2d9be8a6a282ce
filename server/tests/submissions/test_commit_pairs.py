"""Submissions of two commits of a tree, and targets that name their device."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.celery_names import ADVANCE
from wqlab_contracts.enums import DeviceHealth, JobKind, JobState
from wqlab_contracts.messages import ApplyJob, ApplyResult, CommitPair, Series, Target
from wqlab_server.http.problems import ApiProblem
from wqlab_server.models import Apply, Device
from wqlab_server.submissions import service

from ..support.lab import LabUnderTest, ScriptedWorker, oid, passing_apply
from ..support.watches import add_tree_watch

pytestmark = pytest.mark.integration
PAIR = CommitPair(baseline=oid("old"), candidate=oid("new"), ref="for-next")


def request(**target: str) -> SubmissionRequest:
    return SubmissionRequest(
        series=Series(commits=PAIR), tree="lab-tree", targets=[Target(plan="locks", device_type="device", **target)]
    )


def test_pair_is_applied_without_bundle_and_named_in_the_report(lab: LabUnderTest) -> None:
    jobs: list[ApplyJob] = []

    def apply(job: ApplyJob, worker: ScriptedWorker) -> ApplyResult:
        jobs.append(job)
        result = passing_apply(job.model_copy(update={"series": None}), worker)
        assert result.baseline is not None
        update = {"commit": PAIR.candidate, "base_commit": PAIR.candidate, "tree_oid": oid("new tree")}
        return result.model_copy(update={"candidate": result.baseline.model_copy(update=update), "title": "heads"})

    lab.worker.on_apply = apply
    lab.mark_all_good()
    submission = lab.finished(lab.submit("locks@device", series=Series(commits=PAIR)))
    assert jobs[0].seen == [], "nobody watches this tree"
    report = lab.report(submission.id)
    assert report.submission.request.series is not None and report.submission.request.series.commits == PAIR
    headers = {"Authorization": f"Bearer {lab.token}"}
    text = lab.client.get(f"/api/v1/submissions/{submission.id}/report?format=markdown", headers=headers).text
    assert f"{PAIR.candidate[:12]} of for-next against {PAIR.baseline[:12]}, lab-tree" in text
    kcidb = lab.client.get(f"/api/v1/submissions/{submission.id}/report?format=kcidb", headers=headers).json()
    assert PAIR.candidate in [checkout["git_commit_hash"] for checkout in kcidb["checkouts"]]
    assert [checkout["patchset_hash"] for checkout in kcidb["checkouts"]] == ["", ""]


def test_commits_that_the_lab_has_seen_as_heads_may_be_fetched_by_their_id(lab: LabUnderTest) -> None:
    with lab.transaction() as session:
        add_tree_watch(session, owner="dev", tree="lab-tree", target="locks@device")
    lab.sql(
        "INSERT INTO watched_heads (watch, ref, name, commit, state, reason, seen_at, verdicts, devices,"
        " cut, ranged) VALUES ('next', 'for-next', 'for-next', :commit, 'start', '', now(), '[]', '{}', '', false)",
        commit=PAIR.baseline,
    )
    lab.submit("locks@device", series=Series(commits=PAIR))
    claim = lab.worker.claim(1)
    assert claim is not None and claim["job"]["seen"] == [PAIR.baseline]


def test_retry_fetches_from_the_same_repository(lab: LabUnderTest) -> None:
    with lab.transaction() as session:
        other = lab.data.trees["lab-tree"].model_copy(update={"url": "https://git.example.org/other.git"})
        made = service.create(session, lab.data, lab.settings, request(), "dev", repository=other)
    with lab.transaction() as session:
        service.cancel(session, made.id)
    lab.until_idle()
    with lab.transaction() as session:
        again = service.retry(session, lab.data, lab.settings, made.id, "dev")
        apply = session.scalars(select(Apply).where(Apply.submission_id == again.id)).one()
        assert apply.payload.tree.url == "https://git.example.org/other.git"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"candidate": PAIR.baseline}, "is the baseline"),
        ({"ref": "a..b"}, "not a branch or tag"),
    ],
)
def test_mistakes_of_a_pair_are_told(lab: LabUnderTest, change: dict[str, str], text: str) -> None:
    with pytest.raises(ApiProblem) as refused, lab.transaction() as session:
        wrong = request().model_copy(update={"series": Series(commits=PAIR.model_copy(update=change))})
        service.create(session, lab.data, lab.settings, wrong, "dev")
    assert text in refused.value.errors[0]["detail"]


def test_named_device_is_waited_for_until_it_is_out_of_service(lab: LabUnderTest) -> None:
    with pytest.raises(ApiProblem) as refused, lab.transaction() as session:
        service.create(session, lab.data, lab.settings, request(device="single-1"), "dev")
    assert refused.value.errors[0]["pointer"] == "/targets/0/device"
    assert "device has no device 'single-1'" in refused.value.errors[0]["detail"]
    lab.mark_all_good()
    with lab.transaction() as session:
        session.get_one(Device, "device-2").health = DeviceHealth.UNKNOWN
        made = service.create(session, lab.data, lab.settings, request(device="device-2"), "dev")
    lab.work(JobKind.APPLY, JobKind.BUILD, ADVANCE)
    (run,) = lab.runs(made.id)
    assert (run.state, run.device_name) == (JobState.QUEUED, None), "device-1 is free, and not taken"
    lab.sql("UPDATE devices SET health = 'quarantined' WHERE name = 'device-2'")
    lab.sent.clear()
    lab.finished(made.id)
    assert lab.runs(made.id)[0].device_name == "device-1"
