"""The worker's side of the claim protocol, against a server that fails as servers do."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from wqlab_contracts.enums import Arm, ArtifactKind, ErrorKind, Outcome
from wqlab_contracts.messages import (
    Artifact,
    BlockFinished,
    BootKey,
    BuildResult,
    Failure,
    Progress,
    RunClaim,
    RunEvent,
    RunJob,
    RunResult,
)
from wqlab_worker.jobs import ProgressTeller, Stopped, finish, run_claimed
from wqlab_worker.leases import Heartbeats, Stop
from wqlab_worker.outbox import Outbox
from wqlab_worker.server import ArtifactCorrupt, JobRef, Lease, Server, ServerRefused, StaleFence

from .scripted import job as run_job

REF = JobRef("runs", 7, 3)
BOOT = BootKey(block=0, position=0, arm=Arm.BASELINE, attempt=0)
TAKEN = httpx.Response(204)
Answer = Callable[[httpx.Request], httpx.Response]


def server(answer: Answer, patience_s: float = 5.0) -> Server:
    return Server(
        "http://lab", "secret", worker="w/1", lab="local", patience_s=patience_s, transport=httpx.MockTransport(answer)
    )


def event(number: int) -> BlockFinished:
    return BlockFinished(at=datetime.now(UTC), block=number, attempt=0)


class FakeLab:
    """Takes what a real server takes, idempotently, unless `broken`."""

    def __init__(self) -> None:
        self.broken = threading.Event()
        self.lose_answers = False
        self.status = 500
        self.blocks: list[int] = []
        self.requests = 0
        self.console = bytearray()
        self.order: list[str] = []
        self.truncated_after = 1 << 30

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        if self.broken.is_set():
            if self.status:
                return httpx.Response(self.status, json={"detail": "away"})
            raise httpx.ConnectError("refused", request=request)
        body = json.loads(request.content)
        assert body["fence"] == 3
        if request.url.path.endswith("/events"):
            self.blocks += [e["block"] for e in body["events"] if e["block"] not in self.blocks]
            self.order += ["event"] * len(body["events"])
            answer = httpx.Response(204)
        else:
            data = base64.b64decode(body["data"])
            if body["offset"] <= len(self.console):
                self.console[body["offset"] : body["offset"] + len(data)] = data
            self.order.append("console")
            truncated = len(self.console) > self.truncated_after
            answer = httpx.Response(200, json={"next_offset": len(self.console), "truncated": truncated})
        if self.lose_answers and self.requests % 2:
            raise httpx.ReadTimeout("lost", request=request)
        return answer


# --- requests ---------------------------------------------------------------------------------------------------------


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


class FlakyDownloads:
    """A server of one artifact whose connection breaks after some bytes, as often as it is told to."""

    def __init__(self, data: bytes, *breaks: int, ranges: bool = True) -> None:
        self.data, self.breaks, self.ranges = data, list(breaks), ranges
        self.asked: list[str | None] = []
        self.sent = 0

    @property
    def artifact(self) -> Artifact:
        digest = hashlib.sha256(self.data).hexdigest()
        return Artifact(sha256=digest, size=len(self.data), kind=ArtifactKind.KERNEL, name="bzImage")

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(asked := request.headers.get("Range"))
        start = 0
        if asked and self.ranges and request.headers["If-Range"] == f'"{self.artifact.sha256}"':
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
        return httpx.Response(206 if start else 200, content=self._pieces(start))

    def _pieces(self, start: int) -> Iterator[bytes]:
        end = start + self.breaks.pop(0) if self.breaks else len(self.data)
        for at in range(start, end, 1000):
            piece = self.data[at : min(at + 1000, end)]
            self.sent += len(piece)
            yield piece
        if end < len(self.data):
            raise httpx.ReadError("cut off")


DATA = bytes(range(256)) * 200


def test_a_download_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    lab = FlakyDownloads(DATA, 20_000, 20_000)
    assert server(lab).fetch(lab.artifact, tmp_path).read_bytes() == DATA
    assert lab.asked == [None, "bytes=20000-", "bytes=40000-"]
    assert lab.sent == len(DATA), "no byte came twice"
    assert [path.name for path in tmp_path.iterdir()] == [lab.artifact.sha256]


def test_a_download_goes_on_in_another_process_of_the_worker(tmp_path: Path) -> None:
    lab = FlakyDownloads(DATA, 20_000)
    with pytest.raises(httpx.TransportError):
        server(lab, patience_s=0).fetch(lab.artifact, tmp_path)
    assert server(lab).fetch(lab.artifact, tmp_path).read_bytes() == DATA
    assert lab.asked[-1] == "bytes=20000-"


def test_a_line_that_moves_is_not_given_up(tmp_path: Path) -> None:
    lab = FlakyDownloads(DATA, *[10_000] * 5)
    assert server(lab, patience_s=0.8).fetch(lab.artifact, tmp_path).read_bytes() == DATA
    assert len(lab.asked) == 6


def test_a_server_without_ranges_is_asked_for_all_of_it(tmp_path: Path) -> None:
    lab = FlakyDownloads(DATA, 20_000, ranges=False)
    assert server(lab).fetch(lab.artifact, tmp_path).read_bytes() == DATA


@pytest.mark.parametrize("kept", [b"x" * 20_000, b"x" * len(DATA), DATA + b"more"])
def test_a_damaged_beginning_is_found_out_and_fetched_again(tmp_path: Path, kept: bytes) -> None:
    lab = FlakyDownloads(DATA)
    (tmp_path / f".partial-{lab.artifact.sha256}").write_bytes(kept)
    assert server(lab).fetch(lab.artifact, tmp_path).read_bytes() == DATA
    assert lab.asked[-1] is None


def test_sessions_that_want_the_same_at_once_fetch_it_once(tmp_path: Path) -> None:
    lab = FlakyDownloads(DATA)
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda _: server(lab).fetch(lab.artifact, tmp_path).read_bytes(), range(6)))
    assert found == [DATA] * 6
    assert lab.asked == [None]
    assert [path.name for path in tmp_path.iterdir()] == [lab.artifact.sha256]


def test_leases_are_read_leniently() -> None:
    row = {"device": "u", "run_id": 1, "fence": 2, "holder": "w", "expires_in_s": 3.0}
    answer = {"leases": [{**row, "later": "field"}]}
    assert server(lambda request: httpx.Response(200, json=answer)).leases("local") == [Lease(**row)]


# --- outbox -----------------------------------------------------------------------------------------------------------


def outbox(lab: FakeLab, refused: Callable[[Exception], None] = lambda error: None, **options: float) -> Outbox:
    return Outbox(server(lab), REF, refused, linger_s=0.01, retry_s=0.02, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [0, 500, 503])
def test_nothing_is_lost_or_disordered_by_an_outage(status: int) -> None:
    lab = FakeLab()
    lab.status = status
    box = outbox(lab)
    lab.broken.set()
    text = bytes(range(256)) * 100
    for number in range(300):
        box.event(event(number))
        box.console(BOOT, number * 80, text[number * 80 : number * 80 + 80])
    assert not box.flush(0.2)
    lab.broken.clear()
    assert box.flush(20)
    box.close()
    assert lab.blocks == list(range(300))
    assert bytes(lab.console) == text[: 300 * 80]


def test_lost_answers_are_sent_again_and_counted_once() -> None:
    lab = FakeLab()
    lab.lose_answers = True
    box = outbox(lab)
    for number in range(20):
        box.event(event(number))
    box.console(BOOT, 0, b"hello")
    assert box.flush(20)
    box.close()
    assert lab.blocks == list(range(20))
    assert bytes(lab.console) == b"hello"


def test_events_travel_in_batches() -> None:
    lab = FakeLab()
    box = outbox(lab)
    lab.broken.set()
    for number in range(1000):
        box.event(event(number))
    lab.broken.clear()
    assert box.flush(20)
    assert lab.blocks == list(range(1000))
    assert lab.requests < 30
    box.close()


def test_a_stale_fence_ends_the_outbox_and_says_so() -> None:
    refused: list[Exception] = []
    lab = FakeLab()
    lab.status = 409
    lab.broken.set()
    box = outbox(lab, refused.append)
    box.event(event(0))
    assert not box.flush(10)
    assert isinstance(refused[0], StaleFence)
    assert lab.requests == 1
    box.event(event(1))  # does not block
    box.close()


@pytest.mark.parametrize("status", [400, 403, 404, 413, 422])
def test_a_refusal_ends_the_outbox_instead_of_being_repeated(status: int) -> None:
    refused: list[Exception] = []
    lab = FakeLab()
    lab.status = status
    lab.broken.set()
    box = outbox(lab, refused.append)
    box.event(event(0))
    assert not box.flush(10)
    assert isinstance(refused[0], ServerRefused)
    assert lab.requests == 1
    box.close()


def test_what_cannot_be_sent_ends_the_outbox_and_blocks_nobody() -> None:
    refused: list[Exception] = []
    lab = FakeLab()
    box = outbox(lab, refused.append, limit_bytes=1000)
    box.event(Progress.model_construct(at=datetime.now(UTC), text="\ud800"))
    assert not box.flush(10)
    assert len(refused) == 1
    for number in range(10):
        box.event(event(number))  # does not block
    assert lab.blocks == []
    box.close()


def test_memory_is_bounded_by_blocking() -> None:
    lab = FakeLab()
    lab.broken.set()
    box = outbox(lab, limit_bytes=10_000)
    done = threading.Event()

    def fill() -> None:
        for number in range(40):
            box.console(BOOT, number * 1000, b"x" * 1000)
        done.set()

    threading.Thread(target=fill, daemon=True).start()
    assert not done.wait(0.3)
    lab.broken.clear()
    assert done.wait(20)
    assert box.flush(20)
    assert len(lab.console) == 40_000
    box.close()


def test_a_capped_console_is_not_sent_on() -> None:
    lab = FakeLab()
    lab.truncated_after = 10
    box = outbox(lab)
    box.console(BOOT, 0, b"x" * 20)
    assert box.flush(10)
    before = lab.requests
    box.console(BOOT, 20, b"x" * 20)
    assert box.flush(10)
    assert lab.requests == before
    box.close()


# --- leases -----------------------------------------------------------------------------------------------------------


def heartbeats(answer: Answer, lease_s: float) -> tuple[Heartbeats, Stop]:
    stop = Stop()
    return Heartbeats(server(answer), REF, lease_s, time.monotonic(), stop), stop


def test_heartbeats_extend_the_lease() -> None:
    beats, stop = heartbeats(lambda request: httpx.Response(200, json={"expires_in_s": 0.4, "cancel": False}), 0.4)
    with beats:
        assert not stop.wait(1.0)


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
        beats, stop = heartbeats(lambda request, answer=answer: answer, 0.4)  # type: ignore[misc]
        with beats:
            assert stop.wait(5)
        assert stop.failure and stop.failure.kind is kind


def test_the_first_reason_to_stop_stays() -> None:
    stop = Stop()
    stop.request(Failure(kind=ErrorKind.CANCELED, summary="first"))
    stop.request(Failure(kind=ErrorKind.INFRASTRUCTURE, summary="second"))
    assert stop.failure and stop.failure.summary == "first"


# --- jobs -------------------------------------------------------------------------------------------------------------


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
