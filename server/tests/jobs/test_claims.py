"""The claim protocol over HTTP: one holder at a time, stale fences refused, requests repeatable."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from sqlalchemy import func, select, update

from wqlab_contracts.celery_names import ADVANCE
from wqlab_contracts.enums import ArtifactKind, JobKind, JobState, Outcome
from wqlab_contracts.messages import BlockFinished
from wqlab_server.http.problems import MEDIA_TYPE
from wqlab_server.models import Boot, Build, Job, Run

from ..support.lab import NOW, LabUnderTest, RunSession

pytestmark = pytest.mark.integration


def test_expired_build_claim_is_requeued(lab: LabUnderTest) -> None:
    submission_id = lab.submit("locks@device")
    lab.work(JobKind.APPLY, "wqlab.advance")
    build_id = next(m.id for m in lab.sent if m.task == JobKind.BUILD)
    assert build_id is not None
    assert lab.worker.claim(build_id) is not None
    lab.sent[:] = [message for message in lab.sent if message.id != build_id]
    lab.tick()
    assert not [m for m in lab.sent if m.id == build_id and m.task == JobKind.BUILD], "a claimed job gets no message"
    lab.expire(build_id)
    assert lab.finished(submission_id).outcome is Outcome.PASSED


def test_second_claim_is_refused(lab: LabUnderTest, run: RunSession) -> None:
    answer = lab.worker.request("POST", f"jobs/{run.job.run_id}/claim", json={"worker": "test/2", "lab": "local"})
    assert answer.status_code == 409
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert answer.json()["type"].endswith("not-claimable")


def test_claim_with_the_same_nonce_is_repeated(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    submission_id = lab.submit("locks@single")

    def claim(job_id: int, nonce: str | None, expect: int) -> Any:
        body = {"worker": "test/1", "lab": "local", "nonce": nonce}
        answer = lab.worker.request("POST", f"jobs/{job_id}/claim", json=body)
        assert answer.status_code == expect, answer.text
        return answer.json()

    def check(job_id: int) -> Any:
        first, second = (claim(job_id, "our-nonce-1", 200) for _ in range(2))
        assert second == first
        claim(job_id, "other-nonce", 409)
        claim(job_id, None, 409)
        return first

    def requeue(kind: JobKind) -> None:
        with lab.transaction() as session:
            session.execute(update(Job).where(Job.kind == kind).values(state=JobState.QUEUED, expires_at=None))

    check(1)
    requeue(JobKind.APPLY)
    lab.work(JobKind.APPLY, ADVANCE)
    with lab.transaction() as session:
        build_id = session.scalars(select(Build.id).where(Build.state == JobState.QUEUED)).first()
    assert build_id is not None
    check(build_id)
    requeue(JobKind.BUILD)
    lab.work(JobKind.BUILD, ADVANCE)
    run_id = lab.runs(submission_id)[0].id
    check(run_id)
    with lab.transaction() as session:
        assert session.scalar(select(Run.attempts).where(Run.id == run_id)) == 1
        session.execute(update(Job).values(expires_at=func.now()))
    claim(run_id, "our-nonce-1", 409)


def test_only_one_of_concurrent_claims_succeeds(lab: LabUnderTest) -> None:
    lab.submit("locks@device")
    start, answers = threading.Barrier(6), []

    def claim() -> None:
        start.wait()
        answers.append(lab.worker.claim(1))

    threads = [threading.Thread(target=claim) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([answer for answer in answers if answer is not None]) == 1


def test_stale_fence_is_refused_by_every_endpoint(lab: LabUnderTest, run: RunSession) -> None:
    lab.expire(run.job.run_id)
    lab.tick()
    refusals = [
        run.send(BlockFinished(at=NOW, block=0, attempt=0), expect=409),
        run.finish(expect=409),
        lab.worker.post(f"jobs/{run.job.run_id}/heartbeat", {"fence": run.fence}, 409),
    ]
    run.console(run.first_key, 0, b"late", expect=409)
    lab.worker._fence = (run.job.run_id, run.fence)
    lab.worker.upload(ArtifactKind.RAW_OUTPUT, "late", b"late", expect=409)
    assert {answer.json()["type"] for answer in refusals} == {"urn:wqlab:problem:stale-fence"}
    assert lab.runs(1)[0].state is JobState.QUEUED


def test_fences_never_repeat(lab: LabUnderTest) -> None:
    lab.submit("locks@device")
    lab.until_idle()
    with lab.transaction() as session:
        fences = [*session.scalars(select(Run.fence)), *session.scalars(select(Boot.fence).distinct())]
    assert len(set(fences)) == 2  # the check and the run, each with its boots
