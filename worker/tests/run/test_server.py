"""The worker's requests: what is repeated, and how long; leases that are kept; jobs that are claimed and given back."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from wqlab_contracts.enums import ArtifactKind, ErrorKind, Outcome
from wqlab_contracts.messages import Artifact, BuildResult, Failure, Progress, RunClaim, RunEvent, RunJob, RunResult
from wqlab_worker.claims.heartbeats import Heartbeats, Stop
from wqlab_worker.claims.jobs import ProgressTeller, Stopped, finish, run_claimed
from wqlab_worker.claims.server import ArtifactCorrupt, JobRef, Lease, ServerRefused

from .fakelab import REF, Answer, FakeLab, event, server
from .scripted import job as run_job

TAKEN = httpx.Response(204)


def test_a_claim_that_somebody_else_has_is_none_and_never_repeated() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        assert request.headers["Authorization"] == "Bearer secret"
        body = json.loads(request.content)
        assert (body["worker"], body["lab"], len(body["nonce"])) == ("w/1", "local", 16)
        return httpx.Response(409, json={"title": "Conflict"})

    assert server(answer).claim_run(7) is None
    assert asked == ["/api/worker/v1/runs/7/claim"]


def test_a_repeated_claim_has_the_same_nonce_and_a_new_one_has_not() -> None:
    nonces: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        nonces.append(json.loads(request.content)["nonce"])
        return httpx.Response(502 if len(nonces) == 1 else 409, json={"detail": "restarting"})

    claiming = server(answer)
    assert claiming.claim_run(7) is None
    assert claiming.claim_run(7) is None
    assert nonces[0] == nonces[1] != nonces[2]


def test_errors_of_the_server_and_of_the_network_are_repeated() -> None:
    answers: Iterator[object] = iter([503, httpx.ConnectError("no"), 502, 200])

    def answer(request: httpx.Request) -> httpx.Response:
        now = next(answers)
        if isinstance(now, Exception):
            raise now
        assert isinstance(now, int)
        return httpx.Response(now, json={"expires_in_s": 1.0, "cancel": False})

    server(answer, patience_s=20).finish_run(REF, RunResult(outcome=Outcome.PASSED))
    assert next(answers, None) is None


def test_patience_ends() -> None:
    with pytest.raises(httpx.TransportError):
        server(lambda request: httpx.Response(500), patience_s=0.5).finish_run(REF, RunResult(outcome=Outcome.PASSED))


def test_a_refusal_is_an_error_at_once() -> None:
    asked: list[int] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(1)
        return httpx.Response(422, json={"detail": "block 9 of 2"})

    with pytest.raises(ServerRefused, match="block 9 of 2"):
        server(answer).finish_run(REF, RunResult(outcome=Outcome.PASSED))
    assert len(asked) == 1


def test_upload_streams_with_its_fence(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 3_000_000)
    tries: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        tries.append(request.read())
        assert (request.headers["X-Fence-Job"], request.headers["X-Fence"]) == ("runs/7", "3")
        assert dict(request.url.params) == {"kind": "raw_output", "name": "log.txt"}
        return httpx.Response(500 if len(tries) == 1 else 200)

    artifact = server(answer).upload(REF, path, ArtifactKind.RAW_OUTPUT, "log.txt")
    assert tries == [path.read_bytes()] * 2, "a repeated upload starts at its first byte"
    assert artifact.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_fetch_checks_every_byte(tmp_path: Path) -> None:
    data = b"kernel"
    artifact = Artifact(sha256=hashlib.sha256(data).hexdigest(), size=6, kind=ArtifactKind.KERNEL, name="kernel")
    asked: list[int] = []

    def good(request: httpx.Request) -> httpx.Response:
        asked.append(1)
        return httpx.Response(200, content=data)

    path = server(good).fetch(artifact, tmp_path)
    server(good).fetch(artifact, tmp_path)
    assert (path.read_bytes(), len(asked)) == (data, 1)
    path.write_bytes(b"evil!!")
    assert server(good).fetch(artifact, tmp_path).read_bytes() == data, "a damaged copy is fetched again"
    path.unlink()
    with pytest.raises(ArtifactCorrupt):
        server(lambda request: httpx.Response(200, content=b"swapped")).fetch(artifact, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_leases_are_read_leniently() -> None:
    row = {"device": "u", "run_id": 1, "fence": 2, "holder": "w", "expires_in_s": 3.0}
    answer = {"leases": [{**row, "later": "field"}]}
    assert server(lambda request: httpx.Response(200, json=answer)).leases("local") == [Lease(**row)]


def heartbeats(answer: Answer, lease_s: float) -> tuple[Heartbeats, Stop]:
    stop = Stop()
    return Heartbeats(server(answer), REF, lease_s, time.monotonic(), stop), stop


def test_heartbeats_extend_the_lease() -> None:
    beats, stop = heartbeats(lambda request: httpx.Response(200, json={"expires_in_s": 1.5, "cancel": False}), 1.5)
    with beats:
        assert not stop.wait(3.2)


@pytest.mark.parametrize("status", [0, 500])
def test_work_stops_before_a_lease_that_cannot_be_extended_ends(status: int) -> None:
    def away(request: httpx.Request) -> httpx.Response:
        if status:
            return httpx.Response(status)
        raise httpx.ConnectError("no", request=request)

    claimed = time.monotonic()
    beats, stop = heartbeats(away, 2.0)
    with beats:
        assert stop.wait(5)
        assert time.monotonic() - claimed < 2.0
    assert stop.failure and stop.failure.kind is ErrorKind.INFRASTRUCTURE


def test_cancel_and_stale_fences_stop_the_work() -> None:
    for answer, kind in (
        (httpx.Response(200, json={"expires_in_s": 60, "cancel": True}), ErrorKind.CANCELED),
        (httpx.Response(409), ErrorKind.INFRASTRUCTURE),
    ):
        beats, stop = heartbeats(lambda request, answer=answer: answer, 2.0)  # type: ignore[misc]
        with beats:
            assert stop.wait(5)
        assert stop.failure and stop.failure.kind is kind


def test_the_first_reason_to_stop_stays() -> None:
    stop = Stop()
    stop.request(Failure(kind=ErrorKind.CANCELED, summary="first"))
    stop.request(Failure(kind=ErrorKind.INFRASTRUCTURE, summary="second"))
    assert stop.failure and stop.failure.summary == "first"


def test_progress_stops_a_canceled_job_and_survives_an_outage() -> None:
    stop = Stop()
    tell = ProgressTeller(server(lambda request: httpx.Response(500)), JobRef("builds", 1, 1), stop)
    tell("compiling", 1, 10)
    stop.request(Failure(kind=ErrorKind.CANCELED, summary="canceled"))
    with pytest.raises(Stopped):
        tell("compiling", 2, 10)


class _Backend:
    def __init__(self, work: Callable[..., RunResult]) -> None:
        self.execute = work


def claim(job: RunJob, completed: list[int]) -> RunClaim:
    return RunClaim(job=job, fence=3, expires_in_s=60, completed_blocks=completed)


def test_a_claimed_run_gets_the_blocks_that_are_left() -> None:
    lab = FakeLab()

    def work(job: RunJob, remaining: list[object], emit: object, cancel: object) -> RunResult:
        assert [plan.block for plan in remaining] == [1]  # type: ignore[attr-defined]
        emit.event(event(1))  # type: ignore[attr-defined]
        return RunResult(outcome=Outcome.PASSED)

    result = run_claimed(claim(run_job(), [0]), REF, server(lab), _Backend(work), Stop())
    assert result.outcome is Outcome.PASSED
    assert lab.blocks == [1], "everything arrived before the result"


def test_an_error_of_the_worker_is_infrastructure() -> None:
    def work(*_: object) -> RunResult:
        raise RuntimeError("disk full")

    result = run_claimed(claim(run_job(), []), REF, server(FakeLab()), _Backend(work), Stop())
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "disk full" in result.failure.summary


def test_a_refused_event_stops_the_run() -> None:
    lab = FakeLab()
    lab.status = 422
    lab.broken.set()
    stop = Stop()

    def work(job: RunJob, remaining: object, emit: object, cancel: Stop) -> RunResult:
        emit.event(Progress(at=datetime.now(UTC), text="x"))  # type: ignore[attr-defined]
        assert cancel.wait(10)
        assert cancel.failure
        return RunResult(outcome=Outcome.FAILED, failure=cancel.failure)

    result = run_claimed(claim(run_job(), []), REF, server(lab), _Backend(work), stop)
    assert result.failure and "refused" in result.failure.summary


def test_every_run_event_fits_the_outbox() -> None:
    kinds = RunEvent.__args__[0].__args__  # type: ignore[attr-defined]
    assert len(kinds) == 10, "a new event kind: does the outbox count its size?"


def test_a_refused_result_fails_the_job_with_the_reason() -> None:
    taken: list[dict[str, object]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        taken.append(json.loads(request.content)["result"])
        return httpx.Response(422, json={"detail": "vmlinux was not uploaded"}) if len(taken) == 1 else TAKEN

    finish(server(answer).finish_build, JobRef("builds", 1, 3), BuildResult(outcome=Outcome.PASSED))
    result = BuildResult.model_validate(taken[-1])
    assert [one["outcome"] for one in taken] == ["passed", "failed"]
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "vmlinux was not uploaded" in result.failure.summary


def test_a_stale_result_is_dropped_and_a_refused_failure_is_an_error() -> None:
    asked: list[httpx.Request] = []

    def answering(status: int) -> Answer:
        def answer(request: httpx.Request) -> httpx.Response:
            asked.append(request)
            return httpx.Response(status, json={"detail": "no"})

        return answer

    result = RunResult(outcome=Outcome.PASSED)
    finish(server(answering(409)).finish_run, REF, result)
    assert len(asked) == 1
    with pytest.raises(ServerRefused):
        finish(server(answering(422)).finish_run, REF, result)
    assert len(asked) == 3
