"""Submissions by Message-ID: what the worker is told, what is kept of its answer, and what a retry uses again."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from wqlab_contracts.api.submissions import SubmissionView
from wqlab_contracts.enums import ArtifactKind, ErrorKind, JobState, Outcome
from wqlab_contracts.messages import (
    ApplyJob,
    ApplyResult,
    Artifact,
    Failure,
    MboxSeries,
    Series,
    ThreadSeries,
    ThreadSource,
)
from wqlab_report.writers.html import render_html
from wqlab_report.writers.markdown import render_markdown
from wqlab_report.writers.text import render_text
from wqlab_server.models import Apply
from wqlab_server.models import Artifact as ArtifactRow

from ..support.lab import LabUnderTest, ScriptedWorker, passing_apply
from ..support.threads import taken_thread

pytestmark = pytest.mark.integration
SERIES = Series(thread=ThreadSeries(message_id="less-v1-1@x"))
MAILS = b"From x\nSubject: the mails\n\n"


def passing(job: ApplyJob, worker: ScriptedWorker) -> ApplyResult:
    """Take the mails, unless an earlier job has, and apply them."""
    taken = job.thread.taken if job.thread else None
    if taken is None:
        taken = taken_thread(worker.upload(ArtifactKind.SERIES, "thread.mbox", MAILS))
    else:
        assert worker.upload(ArtifactKind.SERIES, "thread.mbox", MAILS) == taken.mbox
    result = passing_apply(job, worker)
    return result.model_copy(update={"thread": taken, "title": taken.subject, "series_key": taken.series_key})


def failing(failure: Failure) -> object:
    def apply(job: ApplyJob, worker: ScriptedWorker) -> ApplyResult:
        mails = worker.upload(ArtifactKind.SERIES, "thread.mbox", MAILS)
        return ApplyResult(outcome=Outcome.FAILED, failure=failure, thread=taken_thread(mails))

    return apply


def source(lab: LabUnderTest, submission_id: int) -> ThreadSource:
    with lab.sessions() as session:
        found = session.scalars(select(Apply).where(Apply.submission_id == submission_id)).one().payload.thread
        assert found is not None
        return found


def view(lab: LabUnderTest, submission_id: int) -> SubmissionView:
    answer = lab.client.get(f"/api/v1/submissions/{submission_id}", headers={"Authorization": f"Bearer {lab.token}"})
    assert answer.status_code == 200, answer.text
    return SubmissionView.model_validate_json(answer.content)


def mbox(lab: LabUnderTest, submission_id: int) -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {lab.token}"}
    answer = lab.client.get(f"/api/v1/submissions/{submission_id}/mbox", headers=headers)
    return answer.status_code, answer.content


def test_submission_shows_which_mails_were_taken(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    lab.worker.on_apply = passing
    number = lab.submit("locks@device", series=SERIES)
    before = view(lab, number)
    assert (before.title, before.version, before.apply.thread) == ("<less-v1-1@x>", None, None)
    assert before.request.series is not None and before.request.series.thread == SERIES.thread
    assert mbox(lab, number)[0] == 404
    assert [archive.name for archive in source(lab, number).archives] == ["lore"]
    lab.until_idle()
    after = view(lab, number)
    assert after.outcome is Outcome.PASSED
    assert (after.title, after.version, after.series_key) == ("wq: less", 2, "wq: less")
    assert after.apply.thread is not None and after.apply.thread.revisions == [1, 2]
    assert mbox(lab, number) == (200, MAILS)
    report = lab.report(number)
    for text in (render_text(report), render_markdown(report), render_html(report)):
        flat = " ".join(text.split()).replace("\\", "")
        assert "v2 from archive lore, taken 2026-01-07 09:00 UTC (also in the archive: v1)" in flat
        assert "cover letter, 2 patches, 1 reply" in flat
        assert "https://lore.example.org/all/less-v2-0@x/" in text
        assert "v2 was sent 2 times" in flat
    assert "Reviewed-by: Bo" in render_markdown(report)
    assert "Reviewed-by:" not in render_text(report), "tools collect trailers from mails"
    assert 'href="https://lore.example.org/all/less-v2-2@x/"' in render_html(report)


def test_versions_by_message_id_and_by_upload_are_grouped(lab: LabUnderTest) -> None:
    lab.worker.on_apply = passing
    by_id = lab.submit("locks@device", series=SERIES)
    lab.work()

    def upload(job: ApplyJob, worker: ScriptedWorker) -> ApplyResult:
        return passing_apply(job, worker).model_copy(update={"title": "wq: less", "series_key": "wq: less"})

    lab.worker.on_apply = upload
    text = "From 0 Mon Sep 17 00:00:00 2001\nSubject: [PATCH v3] wq: less\n\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n"
    uploaded = lab.submit("locks@device", series=Series(mbox=MboxSeries(text=text)))
    lab.work()
    headers = {"Authorization": f"Bearer {lab.token}"}
    found = lab.client.get(f"/api/v1/submissions/{uploaded}/versions", headers=headers).json()
    assert [(each["id"], each["version"]) for each in found] == [(uploaded, 3), (by_id, 2)]


def test_series_that_does_not_apply_is_named_like_its_mails(lab: LabUnderTest) -> None:
    lab.worker.on_apply = failing(Failure(kind=ErrorKind.USER, summary="patch 1/2 does not apply"))
    number = lab.submit("locks@device", series=SERIES)
    lab.until_idle()
    found = view(lab, number)
    assert (found.outcome, found.title, found.version) == (Outcome.FAILED, "wq: less", 2)
    assert found.author == "Ada <ada@example.org>"
    assert found.apply.thread is not None
    assert mbox(lab, number) == (200, MAILS)


def test_next_attempt_uses_the_mails_of_the_last_one(lab: LabUnderTest) -> None:
    seen: list[ThreadSource | None] = []

    def apply(job: ApplyJob, worker: ScriptedWorker) -> ApplyResult:
        seen.append(job.thread)
        if len(seen) == 1:
            mails = worker.upload(ArtifactKind.SERIES, "thread.mbox", MAILS)
            failure = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="the mirror is gone")
            return ApplyResult(outcome=Outcome.FAILED, failure=failure, thread=taken_thread(mails))
        return passing(job, worker)

    lab.worker.on_apply = apply
    number = lab.submit("locks@device", series=SERIES)
    lab.work()
    assert view(lab, number).apply.outcome is Outcome.PASSED
    assert [each.taken is not None for each in seen if each] == [False, True]


def test_retry_tests_the_same_mails_while_they_are_stored(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    lab.worker.on_apply = passing
    number = lab.submit("locks@device", series=SERIES)
    lab.until_idle()
    lab.post(f"submissions/{number}/retry")
    taken = source(lab, number + 1).taken
    assert taken == view(lab, number).apply.thread
    assert view(lab, number + 1).apply.thread == taken  # shown before it is applied
    lab.until_idle()
    assert view(lab, number + 1).outcome is Outcome.PASSED
    with lab.transaction() as session:
        assert taken is not None
        row = session.get_one(ArtifactRow, taken.mbox.sha256)
        row.stored = False
    lab.post(f"submissions/{number}/retry")
    assert source(lab, number + 2).taken is None


def test_retry_of_a_series_that_was_not_applied_looks_for_it_again(lab: LabUnderTest) -> None:
    lab.worker.on_apply = failing(Failure(kind=ErrorKind.USER, summary="v2 is incomplete"))
    number = lab.submit("locks@device", series=SERIES)
    lab.until_idle()
    lab.post(f"submissions/{number}/retry")
    assert source(lab, number + 1).taken is None


def test_result_with_mails_that_were_not_uploaded_is_refused(lab: LabUnderTest) -> None:
    number = lab.submit("locks@device", series=SERIES)
    claim = lab.worker.claim(1)
    assert claim is not None
    ghost = taken_thread(Artifact(sha256="b" * 64, size=1, kind=ArtifactKind.SERIES, name="thread.mbox"))
    failure = Failure(kind=ErrorKind.USER, summary="no")
    lab.worker.finish(1, claim["fence"], ApplyResult(outcome=Outcome.FAILED, failure=failure, thread=ghost), expect=422)
    assert view(lab, number).apply.state is JobState.RUNNING


@pytest.mark.parametrize(
    ("series", "pointer", "detail"),
    [
        ({"thread": {"message_id": "nothing"}}, "/series/thread/message_id", "there is no Message-ID in 'nothing'"),
        ({"thread": {"message_id": "a@b", "revision": 0}}, "/series/thread/revision", "greater than or equal to 1"),
        ({"thread": {"message_id": "a@b"}, "mbox": {"text": "x"}}, "/series", "give one of git"),
        ({}, "/series", "give one of git"),
    ],
)
def test_wrong_request_is_refused(lab: LabUnderTest, series: dict[str, object], pointer: str, detail: str) -> None:
    body = {"series": series, "tree": "lab-tree", "targets": [{"plan": "locks", "device_type": "device"}]}
    answer = lab.client.post("/api/v1/submissions", headers={"Authorization": f"Bearer {lab.token}"}, json=body)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["pointer"] == pointer and detail in error["detail"]
