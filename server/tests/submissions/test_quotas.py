"""Quotas of submitters."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from wqlab_contracts.api.quotes import Quota, QuotaName, Quote
from wqlab_contracts.enums import Arm, ArtifactKind, JobState, Outcome, Scope, SubmissionState
from wqlab_server.models import Apply, Artifact, ArtifactLink, Build, Run, RunAttempt, Submission, SubmissionBuild
from wqlab_server.storage.db import clock, transaction

from ..support.live_server import Live, expect
from ..support.scene import REQUEST, Scene

pytestmark = pytest.mark.integration
URL = "/api/v1/submissions"


def set_quotas(live: Live, **limits: float) -> None:
    none = dict.fromkeys(("quota_waiting", "quota_device_minutes", "quota_build_minutes", "quota_bytes"), 0)
    live.app.state.settings = live.app.state.settings.model_copy(update=none | limits)


def refusal(client: httpx.Client, path: str = URL, **more: Any) -> tuple[dict[str, Any], int]:
    answer = expect(client.post(path, **({"json": REQUEST} | more)), 429)
    assert answer.json()["type"] == "urn:wqlab:problem:quota"
    return answer.json(), int(answer.headers["retry-after"])


def quotas_of(client: httpx.Client) -> dict[QuotaName, Quota]:
    found = [Quota.model_validate(each) for each in expect(client.get("/api/v1/quota")).json()]
    return {quota.name: quota for quota in found}


def test_unfinished_submissions_are_limited(live: Live, scene: Scene) -> None:
    scene.devices()
    set_quotas(live, quota_waiting=2)
    with live.client(Scope.SUBMIT) as submitter, live.client(Scope.MAINTAIN) as maintainer:
        first = expect(submitter.post(URL, json=REQUEST, headers={"Idempotency-Key": "a"}), 201).json()["id"]
        expect(submitter.post(URL, json=REQUEST), 201)
        problem, _ = refusal(submitter)
        assert "2 of 2 unfinished submissions are used" in problem["detail"]
        assert problem["errors"][0]["quota"] == "submissions_waiting"
        again = expect(submitter.post(URL, json=REQUEST, headers={"Idempotency-Key": "a"}), 201)
        assert again.json()["id"] == first, "a repeated request creates nothing"
        quote = Quote.model_validate_json(expect(submitter.post("/api/v1/quotes", json=REQUEST)).content)
        assert [(quota.name, quota.left) for quota in quote.quotas] == [(QuotaName.SUBMISSIONS_WAITING, 0)]
        for _ in range(4):
            expect(maintainer.post(URL, json=REQUEST), 201)
        assert quotas_of(maintainer) == {}
        expect(submitter.post(f"{URL}/{first}/cancel"))
        scene.finish(first, Outcome.CANCELED)
        expect(submitter.post(f"{URL}/{first}/retry"), 201)
        refusal(submitter, f"{URL}/{first}/retry", json=None)


def test_used_up_submissions_say_when_the_first_will_have_finished(live: Live, scene: Scene) -> None:
    scene.devices()
    set_quotas(live, quota_waiting=1)
    past = scene.submission()
    scene.builds(past)
    scene.measured(past, {Arm.BASELINE: 33.0, Arm.CANDIDATE: 5.0})
    scene.finish(past)
    with live.client(Scope.SUBMIT) as submitter:
        number = expect(submitter.post(URL, json=REQUEST), 201).json()["id"]
        scene.builds(number)
        with transaction(scene.sessions) as session:
            session.get_one(Submission, number).state = SubmissionState.RUNNING
            session.scalars(select(Run).where(Run.submission_id == number)).one().state = JobState.QUEUED
        eta = expect(submitter.get(f"{URL}/{number}")).json()["eta"]["finish_at"]
        quota = quotas_of(submitter)[QuotaName.SUBMISSIONS_WAITING]
        assert quota.available_at is not None
        assert abs(quota.available_at - datetime.fromisoformat(eta)) < timedelta(seconds=60)
        problem, wait_s = refusal(submitter)
        assert "available again at" in problem["detail"]
        assert wait_s > 0


def test_concurrent_submissions_do_not_exceed_the_quota(live: Live, scene: Scene) -> None:
    scene.devices()
    set_quotas(live, quota_waiting=3)
    statuses: list[int] = []

    def submit() -> None:
        with live.client(Scope.SUBMIT) as submitter:
            statuses.append(submitter.post(URL, json=REQUEST).status_code)

    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [201] * 3 + [429] * 5


def test_device_minutes_of_a_day_are_limited_and_return(live: Live, scene: Scene) -> None:
    scene.devices()
    set_quotas(live, quota_device_minutes=120)
    with live.client(Scope.SUBMIT) as submitter:
        number = expect(submitter.post(URL, json=REQUEST), 201).json()["id"]
        planned = quotas_of(submitter)[QuotaName.DEVICE_MINUTES].used
        assert planned == 4, "four boots of a plan that was never measured"
        with transaction(scene.sessions) as session:
            now = clock(session)
            run = session.scalars(select(Run).where(Run.submission_id == number)).one()
            for attempt, (hours, minutes) in enumerate([(20, 60), (10, 100), (40, 600)], 1):
                start = now - timedelta(hours=hours)
                session.add(
                    RunAttempt(
                        run_id=run.id, number=attempt, device_name="tiny-1", fence=attempt, outcome=Outcome.PASSED,
                        started_at=start, finished_at=start + timedelta(minutes=minutes),
                    )
                )  # fmt: skip
        quota = quotas_of(submitter)[QuotaName.DEVICE_MINUTES]
        assert (round(quota.used), quota.left) == (164, 0), "what ended more than a day ago does not count"
        problem, wait_s = refusal(submitter)
        # 44 minutes have to leave the window: those of the attempt that began 20 hours ago.
        expected = now + timedelta(hours=4, minutes=44)
        assert quota.available_at is not None
        assert abs(quota.available_at - expected) < timedelta(minutes=2)
        assert abs(datetime.fromisoformat(problem["errors"][0]["available_at"]) - expected) < timedelta(minutes=2)
        assert abs(wait_s - (4 * 3600 + 44 * 60)) < 120
        assert "minutes of device time in 24 hours are used; available again at" in problem["detail"]
        scene.finish(number)


def test_build_minutes_and_bytes_of_a_day_are_limited(live: Live, scene: Scene) -> None:
    scene.devices()
    with live.client(Scope.SUBMIT) as submitter:
        set_quotas(live, quota_build_minutes=30, quota_bytes=10_000)
        number = expect(submitter.post(URL, json=REQUEST), 201).json()["id"]
        assert quotas_of(submitter)[QuotaName.BUILD_MINUTES].used == 0
        scene.builds(number)
        with transaction(scene.sessions) as session:
            submission = session.get_one(Submission, number)
            for part in session.scalars(select(SubmissionBuild).where(SubmissionBuild.submission_id == number)):
                build = session.get_one(Build, part.build_id)
                build.created_at = build.started_at = submission.created_at
                build.finished_at = submission.created_at + timedelta(minutes=20)
        problem, _ = refusal(submitter)
        assert problem["errors"][0]["quota"] == "build_minutes"
        set_quotas(live, quota_bytes=10_000)
        before = quotas_of(submitter)[QuotaName.BYTES].used
        with transaction(scene.sessions) as session:
            apply = session.scalars(select(Apply).where(Apply.submission_id == number)).one()
            session.add(Artifact(sha256="e" * 64, size=20_000))
            session.flush()
            session.add(ArtifactLink(sha256="e" * 64, job_id=apply.id, kind=ArtifactKind.BUNDLE, name="b"))
        assert quotas_of(submitter)[QuotaName.BYTES].used == before + 20_000
        problem, wait_s = refusal(submitter)
        assert problem["errors"][0]["quota"] == "bytes"
        assert abs(wait_s - 86_400) < 300
