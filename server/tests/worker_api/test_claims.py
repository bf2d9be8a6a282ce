"""The claim protocol over HTTP: one holder at a time, stale ones refused, everything repeatable."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, update

from wqlab_contracts.celery_names import ADVANCE, APPLY, BUILD
from wqlab_contracts.enums import Arm, ArtifactKind, JobState, Outcome, Scope
from wqlab_contracts.messages import ApplyJob, BlockFinished, BootKey, BuildResult, Progress, RunResult
from wqlab_server.http.auth import create_token
from wqlab_server.http.problems import MEDIA_TYPE
from wqlab_server.models import Apply, ArtifactLink, BlockAttempt, Boot, Build, ConsoleChunk, Event, Run, Sample
from wqlab_server.storage.live_data import LiveData

from ..support.lab import NOW, LabUnderTest, RunSession, passing_apply

pytestmark = pytest.mark.integration


@pytest.fixture
def run(lab: LabUnderTest) -> Iterator[RunSession]:
    """A claimed run on a device."""
    lab.all_good()
    submission_id = lab.submit("locks@single")
    lab.work(APPLY, BUILD, ADVANCE)
    claimed = lab.worker.claim_run(lab.runs(submission_id)[0].id)
    assert claimed is not None
    yield claimed


def first_key(run: RunSession) -> BootKey:
    return BootKey(block=0, position=0, arm=run.job.blocks[0].arms[0], attempt=0)


def test_a_second_claim_is_refused(lab: LabUnderTest, run: RunSession) -> None:
    answer = lab.worker.request("POST", f"runs/{run.job.run_id}/claim", json={"worker": "test/2", "lab": "local"})
    assert answer.status_code == 409
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert answer.json()["type"].endswith("not-claimable")


def test_a_claim_whose_answer_was_lost_is_answered_again(lab: LabUnderTest) -> None:
    lab.all_good()
    submission_id = lab.submit("locks@single")

    def claim(kind: str, job_id: int, nonce: str | None, expect: int) -> Any:
        body = {"worker": "test/1", "lab": "local", "nonce": nonce}
        answer = lab.worker.request("POST", f"{kind}/{job_id}/claim", json=body)
        assert answer.status_code == expect, answer.text
        return answer.json()

    def check(kind: str, job_id: int) -> Any:
        first, second = (claim(kind, job_id, "our-nonce-1", 200) for _ in range(2))
        left = [one["job"].pop("previous_holder", None) for one in (first, second)]
        assert second == first
        assert left in ([None, None], [False, True])
        claim(kind, job_id, "other-nonce", 409)
        claim(kind, job_id, None, 409)
        return first

    def give_back(job: type[Apply] | type[Build]) -> None:
        with lab.transaction() as session:
            session.execute(update(job).values(state=JobState.QUEUED, expires_at=None))

    check("applies", 1)
    give_back(Apply)
    lab.work(APPLY, ADVANCE)
    with lab.transaction() as session:
        build_id = session.scalars(select(Build.id).where(Build.state == JobState.QUEUED)).first()
    assert build_id is not None
    check("builds", build_id)
    give_back(Build)
    lab.work(BUILD, ADVANCE)
    run_id = lab.runs(submission_id)[0].id
    check("runs", run_id)
    with lab.transaction() as session:
        assert session.scalar(select(Run.attempts).where(Run.id == run_id)) == 1
        session.execute(update(Run).values(expires_at=func.now()))
    claim("runs", run_id, "our-nonce-1", 409)


def test_of_many_claims_at_once_one_wins(lab: LabUnderTest) -> None:
    lab.submit("locks@device")
    start, answers = threading.Barrier(6), []

    def claim() -> None:
        start.wait()
        answers.append(lab.worker.claim("applies", 1))

    threads = [threading.Thread(target=claim) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([answer for answer in answers if answer is not None]) == 1


def test_another_labs_worker_gets_nothing(lab: LabUnderTest) -> None:
    lab.all_good()
    submission_id = lab.submit("locks@single")
    lab.work(APPLY, BUILD, ADVANCE)
    path = f"runs/{lab.runs(submission_id)[0].id}/claim"
    assert lab.worker.request("POST", path, json={"worker": "far/1", "lab": "far"}).status_code == 409
    with lab.transaction() as session:
        _, lab.worker.token = create_token(session, "far", [Scope.WORKER], lab="far")
    assert lab.worker.request("POST", path, json={"worker": "far/1", "lab": "local"}).status_code == 403
    assert lab.worker.request("POST", path, json={"worker": "far/1"}).status_code == 409
    assert lab.worker.request("GET", "labs/local/leases").status_code == 403
    assert lab.worker.request("GET", "labs/local/power").status_code == 403


def test_a_lab_is_told_which_of_its_devices_commands_switch(lab: LabUnderTest, data_dir: Path) -> None:
    path = data_dir / "device-types/single.yaml"
    commands = {"turn_on": "ipmitool power on", "turn_off": "ipmitool power off"}
    units = [
        {"name": name, "lab": where, "power": commands} for name, where in (("single-1", "local"), ("far-1", "far"))
    ]
    path.write_text(re.sub("units: .*", f"units: {json.dumps(units)}", path.read_text()))
    lab.app.state.data = LiveData(data_dir)
    assert lab.worker.request("GET", "labs/local/power").json() == {"power": {"single-1": commands}}


def test_another_labs_token_reports_nothing_of_this_labs_run(lab: LabUnderTest, run: RunSession) -> None:
    key = first_key(run)
    started = run.boot_events(key)[0]
    run.send(started)
    ours = lab.worker.token
    with lab.transaction() as session:
        _, theirs = create_token(session, "far", [Scope.WORKER], lab="far")
        _, lab.worker.token = create_token(session, "near", [Scope.WORKER], lab="local")
    run.heartbeat()
    run.console(key, 0, b"ours")
    lab.worker._fence = (f"runs/{run.job.run_id}", run.fence)
    lab.worker.upload(ArtifactKind.RAW_OUTPUT, "ours", b"ours")

    lab.worker.token = theirs
    run.send(started, expect=403)
    run.finish(expect=403)
    run.console(key, 4, b"theirs", expect=403)
    lab.worker.post(f"runs/{run.job.run_id}/heartbeat", {"fence": run.fence}, 403)
    lab.worker.upload(ArtifactKind.RAW_OUTPUT, "theirs", b"theirs", expect=403)

    lab.worker.token = ours
    run.heartbeat()
    with lab.transaction() as session:
        assert session.scalars(select(ConsoleChunk.data)).all() == [b"ours"]
        assert session.scalars(select(ArtifactLink.name).where(ArtifactLink.run_id == run.job.run_id)).all() == ["ours"]
        assert session.get_one(Run, run.job.run_id).outcome is None


def test_a_labs_token_takes_no_builds_applies_or_lookups(lab: LabUnderTest) -> None:
    lab.submit("locks@device")
    with lab.transaction() as session:
        _, lab.worker.token = create_token(session, "local", [Scope.WORKER], lab="local")
    for kind in ("applies", "builds", "lookups"):
        claimed = lab.worker.request("POST", f"{kind}/1/claim", json={"worker": "w/1", "lab": "local"})
        assert claimed.status_code == 403, kind
        assert "a build worker needs a token without a lab" in claimed.json()["detail"]
        result = {"fence": 1, "result": {"outcome": "failed"}}
        assert lab.worker.request("POST", f"{kind}/1/finish", json=result).status_code == 403, kind
    for kind in ("applies", "builds"):
        for what, body in (("heartbeat", {"fence": 1}), ("events", {"fence": 1, "events": []})):
            assert lab.worker.request("POST", f"{kind}/1/{what}", json=body).status_code == 403, (kind, what)
        lab.worker._fence = (f"{kind}/1", 1)
        lab.worker.upload(ArtifactKind.KERNEL, "bzImage", b"poison", expect=403)


def test_a_labs_token_fetches_what_its_runs_boot_and_nothing_else(lab: LabUnderTest, run: RunSession) -> None:
    kernel = run.job.kernels[Arm.CANDIDATE].image
    with lab.transaction() as session:
        bundle = session.scalars(select(ArtifactLink.sha256).where(ArtifactLink.kind == ArtifactKind.BUNDLE)).one()
        _, near = create_token(session, "near", [Scope.WORKER], lab="local")
        _, far = create_token(session, "far", [Scope.WORKER], lab="far")

    def ask(token: str, sha256: str, method: str = "GET") -> int:
        lab.worker.token = token
        return lab.worker.request(method, f"artifacts/{sha256}").status_code

    assert [ask(lab.worker_token, sha256) for sha256 in (kernel.sha256, bundle)] == [200, 200], "a build worker"
    assert [ask(near, sha256) for sha256 in (kernel.sha256, bundle, "0" * 64)] == [200, 403, 403]
    assert [ask(far, kernel.sha256, method) for method in ("GET", "HEAD")] == [403, 403]
    lab.expire("runs", run.job.run_id)
    lab.tick()
    assert ask(near, kernel.sha256) == 403, "its run was given back"


def test_an_artifact_is_fetched_from_where_it_was_cut_off(lab: LabUnderTest, run: RunSession) -> None:
    lab.worker._fence = (f"runs/{run.job.run_id}", run.fence)
    content = bytes(range(256)) * 5000
    artifact = lab.worker.upload(ArtifactKind.RAW_OUTPUT, "output.txt", content)
    path, same = f"artifacts/{artifact.sha256}", f'"{artifact.sha256}"'
    rest = lab.worker.request("GET", path, headers={"Range": "bytes=700000-", "If-Range": same})
    assert (rest.status_code, rest.content) == (206, content[700_000:])
    assert rest.headers["content-range"] == f"bytes 700000-{len(content) - 1}/{len(content)}"
    other = lab.worker.request("GET", path, headers={"Range": "bytes=700000-", "If-Range": '"another"'})
    assert (other.status_code, other.content) == (200, content)
    beyond = lab.worker.request("GET", path, headers={"Range": f"bytes={len(content)}-"})
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, f"bytes */{len(content)}")


def test_a_nul_byte_from_a_device_does_not_block_its_run(lab: LabUnderTest, run: RunSession) -> None:
    key = first_key(run)
    started, verified, samples, _ = run.boot_events(key)
    spoiled = verified.model_dump(mode="json") | {"environment": {"cpu\0model": "a\0b"}}
    told = samples.model_dump(mode="json") | {"facts": {"fio": "3.\0"}, "commands": {"c": "fio \0"}}
    body = {"fence": run.fence, "events": [started.model_dump(mode="json"), spoiled, told]}
    lab.worker.post(f"runs/{run.job.run_id}/events", body, 204)
    with lab.transaction() as session:
        boot = session.scalars(select(Boot)).one()
        assert boot.environment == {"cpu\ufffdmodel": "a\ufffdb", "fio": "3.\ufffd"}
        assert boot.commands == {"c": "fio \ufffd"}


def test_what_no_column_can_hold_is_the_requests_mistake(lab: LabUnderTest, run: RunSession) -> None:
    """A number that is too large, and a NUL outside of any message: 422, so that nobody repeats it for ever."""
    answer = run.send(Progress(at=NOW, text="x", done=1 << 70), expect=422)
    assert "cannot be stored" in answer.json()["detail"]
    assert lab.worker.request("GET", "labs/a%00b/leases").status_code == 422
    run.heartbeat()


def test_a_stale_fence_is_refused_everywhere(lab: LabUnderTest, run: RunSession) -> None:
    lab.expire("runs", run.job.run_id)
    lab.tick()
    refusals = [
        run.send(BlockFinished(at=NOW, block=0, attempt=0), expect=409),
        run.finish(expect=409),
        lab.worker.post(f"runs/{run.job.run_id}/heartbeat", {"fence": run.fence}, 409),
    ]
    run.console(first_key(run), 0, b"late", expect=409)
    lab.worker._fence = (f"runs/{run.job.run_id}", run.fence)
    lab.worker.upload(ArtifactKind.RAW_OUTPUT, "late", b"late", expect=409)
    assert {answer.json()["type"] for answer in refusals} == {"urn:wqlab:problem:stale-fence"}
    assert lab.runs(1)[0].state is JobState.QUEUED


def test_a_lease_is_over_when_the_database_says_so_not_when_a_tick_comes(lab: LabUnderTest, run: RunSession) -> None:
    lab.expire("runs", run.job.run_id)
    run.heartbeat(expect=409)
    assert lab.worker.request("GET", "labs/local/leases").json() == {"leases": []}


def test_heartbeats_extend_the_lease(lab: LabUnderTest, run: RunSession) -> None:
    lab.sql("UPDATE leases SET expires_at = now() + interval '1 second'")
    assert run.heartbeat() == {"expires_in_s": lab.settings.lease_s, "cancel": False}
    (lease,) = lab.worker.request("GET", "labs/local/leases").json()["leases"]
    assert lease["expires_in_s"] > lab.settings.lease_s - 5
    assert (lease["device"], lease["run_id"], lease["holder"]) == ("single-1", run.job.run_id, "test/1")
    assert lease["fence"] == run.fence


def test_fences_never_repeat(lab: LabUnderTest) -> None:
    lab.submit("locks@device")
    lab.until_idle()
    with lab.transaction() as session:
        fences = [*session.scalars(select(Run.fence)), *session.scalars(select(Boot.fence).distinct())]
    assert len(set(fences)) == 2  # the check and the run, each with its boots


def test_every_event_twice_is_recorded_once(lab: LabUnderTest, run: RunSession) -> None:
    for plan in run.remaining:
        run.block(plan, times=3)
    run.finish()
    lab.work(ADVANCE)
    with lab.transaction() as session:
        assert session.scalar(select(func.count()).select_from(Boot)) == 4
        assert session.scalar(select(func.count()).select_from(Sample)) == 4 * 2 * 2
        assert session.scalar(select(func.count()).select_from(BlockAttempt)) == 2
        kinds = list(session.scalars(select(Event.kind).where(Event.run_id == run.job.run_id)))
    assert kinds.count("block_finished") == 2
    assert kinds.count("boot_state") == 4 * 3
    assert lab.submission(1).outcome is Outcome.PASSED


def test_a_repeated_finish_is_accepted_and_another_result_is_not(lab: LabUnderTest, run: RunSession) -> None:
    for plan in run.remaining:
        run.block(plan)
    run.finish()
    run.finish()
    run.finish(RunResult(outcome=Outcome.CANCELED), expect=409)
    lab.work(ADVANCE)
    run.finish()
    assert lab.submission(1).outcome is Outcome.PASSED


def test_a_repeated_finish_of_an_apply(lab: LabUnderTest) -> None:
    lab.submit("locks@device")
    claim = lab.worker.claim("applies", 1)
    assert claim is not None
    lab.worker._fence = ("applies/1", claim["fence"])
    result = passing_apply(ApplyJob.model_validate(claim["job"]), lab.worker)
    for _ in range(2):
        lab.worker.finish("applies", 1, claim["fence"], result)
    lab.worker.finish("applies", 1, claim["fence"], result.model_copy(update={"title": "other"}), expect=409)


def test_a_build_cannot_pass_with_a_kernel_that_was_not_uploaded(lab: LabUnderTest) -> None:
    lab.submit("locks@device")
    lab.work(APPLY, ADVANCE)
    build_id = next(message.id for message in lab.sent if message.task == BUILD)
    assert build_id is not None
    claim = lab.worker.claim("builds", build_id)
    assert claim is not None
    kernel = {"sha256": "a" * 64, "size": 3, "kind": "kernel", "name": "bzImage"}
    result = BuildResult(outcome=Outcome.PASSED, build_id_gnu="b" * 40, artifacts=[kernel])  # type: ignore[list-item]
    answer = lab.worker.finish("builds", build_id, claim["fence"], result, expect=422)
    assert "was not uploaded" in answer.json()["detail"]


def test_events_for_a_boot_that_was_not_started_are_refused_whole(lab: LabUnderTest, run: RunSession) -> None:
    key = first_key(run)
    events = run.boot_events(key)
    run.send(*events[1:], expect=404)
    run.send(events[0], BlockFinished(at=NOW, block=7, attempt=0), expect=422)
    with lab.transaction() as session:
        assert session.scalar(select(func.count()).select_from(Boot)) == 0


def test_half_a_block_is_not_a_block(lab: LabUnderTest, run: RunSession) -> None:
    run.send(*run.boot_events(first_key(run)), BlockFinished(at=NOW, block=0, attempt=0))
    with lab.transaction() as session:
        attempt = session.scalars(select(BlockAttempt)).one()
        assert not attempt.finished
        assert attempt.failure is not None
        assert "1 boots are not the 2" in attempt.failure.summary
        assert not session.scalars(select(Boot.valid)).one()


def test_two_boots_with_one_boot_id_are_one_boot(lab: LabUnderTest, run: RunSession) -> None:
    plan = run.remaining[0]
    for position, arm in enumerate(plan.arms):
        key = BootKey(block=0, position=position, arm=arm, attempt=0)
        started, verified, *rest = run.boot_events(key)
        run.send(started, verified.model_copy(update={"kernel_boot_id": "same"}), *rest)
    run.send(BlockFinished(at=NOW, block=0, attempt=0))
    with lab.transaction() as session:
        failure = session.scalars(select(BlockAttempt.failure)).one()
    assert failure is not None
    assert "same kernel boot id" in failure.summary


# --- console ------------------------------------------------------------------------------------------------------


def test_console_chunks_join_overlap_and_leave_no_gap(lab: LabUnderTest, run: RunSession) -> None:
    key = first_key(run)
    run.send(run.boot_events(key)[0])
    assert run.console(key, 0, b"hello ")["next_offset"] == 6
    assert run.console(key, 0, b"hello ")["next_offset"] == 6, "a repeated chunk"
    assert run.console(key, 10, b"later")["next_offset"] == 6, "a gap: send from 6"
    assert run.console(key, 4, b"o world\x00\xff") == {"next_offset": 13, "truncated": False}
    with lab.transaction() as session:
        chunks = session.scalars(select(ConsoleChunk.data).order_by(ConsoleChunk.offset)).all()
    assert b"".join(chunks) == b"hello world\x00\xff"


def test_a_console_beyond_its_cap_is_cut_and_says_so(lab: LabUnderTest, run: RunSession) -> None:
    object.__setattr__(lab.settings, "console_limit", 8)
    key = first_key(run)
    run.send(run.boot_events(key)[0])
    assert run.console(key, 0, b"123456") == {"next_offset": 6, "truncated": False}
    assert run.console(key, 6, b"7890") == {"next_offset": 8, "truncated": True}
    assert run.console(key, 8, b"90") == {"next_offset": 8, "truncated": True}


def test_a_console_that_floods_is_cut(lab: LabUnderTest, run: RunSession) -> None:
    object.__setattr__(lab.settings, "console_rate", 16)
    key = first_key(run)
    run.send(run.boot_events(key)[0])
    answer = run.console(key, 0, b"x" * 1000)
    assert answer["truncated"] is True
    assert 16 <= answer["next_offset"] < 1000


# --- artifacts ----------------------------------------------------------------------------------------------------


def test_artifacts_are_hashed_again_and_come_back_whole(lab: LabUnderTest, run: RunSession) -> None:
    lab.worker._fence = (f"runs/{run.job.run_id}", run.fence)
    content = bytes(range(256)) * 20_000  # several pieces
    for _ in range(2):
        artifact = lab.worker.upload(ArtifactKind.RAW_OUTPUT, "output.txt", content)
    answer = lab.worker.request("GET", f"artifacts/{artifact.sha256}")
    assert (answer.content, answer.status_code) == (content, 200)
    head = lab.worker.request("HEAD", f"artifacts/{artifact.sha256}")
    assert (head.status_code, head.headers["content-length"]) == (200, str(len(content)))
    with lab.transaction() as session:
        links = session.scalars(select(ArtifactLink).where(ArtifactLink.run_id == run.job.run_id)).all()
        assert [(link.sha256, link.name) for link in links] == [(artifact.sha256, "output.txt")]


def test_bytes_that_are_not_what_they_claim_are_not_kept(lab: LabUnderTest, run: RunSession) -> None:
    headers = {"X-Fence-Job": f"runs/{run.job.run_id}", "X-Fence": str(run.fence)}
    path = f"artifacts/{'0' * 64}?kind=raw_output&name=x"
    answer = lab.worker.request("PUT", path, headers=headers, content=b"other")
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:wqlab:problem:hash-mismatch")
    assert lab.worker.request("GET", f"artifacts/{'0' * 64}").status_code == 404
    kept = [path for path in lab.settings.artifact_dir.rglob("*") if path.is_file() and "000000" in path.name]
    assert kept == []
    assert lab.worker.request("GET", "artifacts/..%2f..%2fetc").status_code in {404, 422}


# --- who may ------------------------------------------------------------------------------------------------------


def test_only_worker_tokens_speak_here(lab: LabUnderTest) -> None:
    assert lab.client.post("/api/worker/v1/applies/1/claim", json={"worker": "x"}).status_code == 401
    lab.worker.token = "wql_wrong"
    assert lab.worker.request("GET", "labs/local/leases").status_code == 401
    lab.worker.token = lab.token
    answer = lab.worker.request("GET", "labs/local/leases")
    assert answer.status_code == 403
    assert "scope worker" in answer.json()["detail"]


def test_a_revoked_token_is_no_token(lab: LabUnderTest) -> None:
    assert lab.worker.request("GET", "labs/local/leases").status_code == 200
    lab.sql("UPDATE tokens SET revoked_at = now() WHERE name = 'worker'")
    assert lab.worker.request("GET", "labs/local/leases").status_code == 401


def test_a_published_capacity_bounds_the_devices_in_use(lab: LabUnderTest) -> None:
    lab.all_good()
    lab.worker.post("labs/local/capacity", {"capacity": 1}, 204)
    first, second = lab.submit("locks@device"), lab.submit("locks@single")
    lab.work(APPLY, BUILD, ADVANCE)
    assert [lab.runs(i)[0].device_name is not None for i in (first, second)].count(True) == 1
    lab.worker.post("labs/local/capacity", {"capacity": 2}, 204)
    lab.tick()
    assert all(lab.runs(i)[0].device_name is not None for i in (first, second))


def test_arms_of_the_job_match_its_kernels(run: RunSession) -> None:
    assert set(run.job.kernels) == set(Arm)
    assert run.job.kernels[Arm.BASELINE].build_id_gnu != run.job.kernels[Arm.CANDIDATE].build_id_gnu
