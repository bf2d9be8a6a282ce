"""Claimed jobs: progress, runs and results."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from wqlab_contracts.enums import ErrorKind, JobKind, Outcome
from wqlab_contracts.messages import Artifact, BuildResult, Failure, Progress, RunJob, RunResult
from wqlab_worker.backends.cancellation import Stop
from wqlab_worker.claims.jobs import ProgressReporter, Stopped, finish
from wqlab_worker.claims.outcomes import failure_of
from wqlab_worker.claims.runs import run_claimed
from wqlab_worker.claims.server import JobRef, ServerRefused

from .fakelab import REF, CommandResult, FakeLab, event, run_job, server

TAKEN = httpx.Response(204)


def test_progress_stops_canceled_job_and_survives_outage() -> None:
    stop = Stop()
    report = ProgressReporter(server(lambda request: httpx.Response(500)), JobRef(JobKind.BUILD, 1, 1), stop)
    report("compiling", 1, 10)
    stop.request(Failure(kind=ErrorKind.CANCELED, summary="canceled"))
    with pytest.raises(Stopped):
        report("compiling", 2, 10)


def no_artifacts(artifact: Artifact) -> Path:
    raise FileNotFoundError(artifact.name)


class _Backend:
    def __init__(self, work: Callable[..., RunResult]) -> None:
        self.execute = work


def test_claimed_run_executes_remaining_blocks() -> None:
    lab = FakeLab()

    def work(job: RunJob, remaining: list[object], emit: object, cancel: object) -> RunResult:
        assert [plan.block for plan in remaining] == [1]  # type: ignore[attr-defined]
        emit.event(event(1))  # type: ignore[attr-defined]
        return RunResult(outcome=Outcome.PASSED)

    result = run_claimed(
        run_job().model_copy(update={"completed_blocks": [0]}),
        REF,
        server(lab),
        _Backend(work),
        Stop(),
        fetch=no_artifacts,
    )
    assert result.outcome is Outcome.PASSED
    assert lab.blocks == [1], "all events arrive before the result"


def test_worker_error_is_an_infrastructure_failure() -> None:
    def work(*_: object) -> RunResult:
        raise RuntimeError("disk full")

    result = run_claimed(run_job(), REF, server(FakeLab()), _Backend(work), Stop(), fetch=no_artifacts)
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "disk full" in result.failure.summary


def test_full_volume_of_the_worker_is_named() -> None:
    failure = failure_of(OSError(errno.ENOSPC, "No space left on device", "/var/cache/wqlab/scratch/build"))
    assert failure.kind is ErrorKind.INFRASTRUCTURE
    assert failure.summary == "the worker has no space left: /var/cache/wqlab/scratch/build"
    assert "wqlab-lab storage" in failure.advice


def test_refused_event_stops_the_run() -> None:
    lab = FakeLab()
    lab.status = 422
    lab.broken.set()
    stop = Stop()

    def work(job: RunJob, remaining: object, emit: object, cancel: Stop) -> RunResult:
        emit.event(Progress(at=datetime.now(UTC), text="x"))  # type: ignore[attr-defined]
        assert cancel.wait()
        assert cancel.failure
        return RunResult(outcome=Outcome.FAILED, failure=cancel.failure)

    result = run_claimed(run_job(), REF, server(lab), _Backend(work), stop, fetch=no_artifacts)
    assert result.failure and "refused" in result.failure.summary


def test_refused_result_fails_the_job_with_the_reason() -> None:
    taken: list[dict[str, object]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        taken.append(json.loads(request.content)["result"])
        return httpx.Response(422, json={"detail": "vmlinux was not uploaded"}) if len(taken) == 1 else TAKEN

    finish(server(answer), JobRef(JobKind.BUILD, 1, 3), BuildResult(outcome=Outcome.PASSED))
    result = BuildResult.model_validate(taken[-1])
    assert [one["outcome"] for one in taken] == ["passed", "failed"]
    assert result.failure and result.failure.kind is ErrorKind.INFRASTRUCTURE
    assert "vmlinux was not uploaded" in result.failure.summary


def test_stale_result_is_dropped_and_refused_failure_raises() -> None:
    requests: list[httpx.Request] = []

    def answering(status: int) -> CommandResult:
        def answer(request: httpx.Request) -> httpx.Response:
            requests.append(request)
            return httpx.Response(status, json={"detail": "no"})

        return answer

    result = RunResult(outcome=Outcome.PASSED)
    finish(server(answering(409)), REF, result)
    assert len(requests) == 1
    with pytest.raises(ServerRefused):
        finish(server(answering(422)), REF, result)
    assert len(requests) == 3
