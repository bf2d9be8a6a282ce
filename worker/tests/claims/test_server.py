"""Requests to the server: repetition, fences, uploads and downloads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from wqlab_contracts.enums import ArtifactKind, ErrorKind, Outcome
from wqlab_contracts.messages import Artifact, RunResult
from wqlab_worker.claims.outcomes import failure_of
from wqlab_worker.claims.server import ArtifactCorrupt, Lease, ServerRefused

from .fakelab import REF, server


def test_claim_of_another_worker_is_not_repeated() -> None:
    requests: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request.url.path)
        assert request.headers["Authorization"] == "Bearer secret"
        body = json.loads(request.content)
        assert (body["worker"], body["lab"], len(body["nonce"])) == ("w/1", "local", 16)
        return httpx.Response(409, json={"title": "Conflict"})

    assert server(answer).claim(7) is None
    assert requests == ["/api/worker/v1/jobs/7/claim"]


def test_repeated_claim_keeps_its_nonce() -> None:
    nonces: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        nonces.append(json.loads(request.content)["nonce"])
        return httpx.Response(502 if len(nonces) == 1 else 409, json={"detail": "restarting"})

    claiming = server(answer)
    assert claiming.claim(7) is None
    assert claiming.claim(7) is None
    assert nonces[0] == nonces[1] != nonces[2]


def test_server_and_network_errors_are_retried() -> None:
    answers: Iterator[object] = iter([503, httpx.ConnectError("no"), 502, 200])

    def answer(request: httpx.Request) -> httpx.Response:
        now = next(answers)
        if isinstance(now, Exception):
            raise now
        assert isinstance(now, int)
        return httpx.Response(now, json={"expires_in_s": 1.0, "cancel": False})

    server(answer, retry_s=3600).finish(REF, RunResult(outcome=Outcome.PASSED))
    assert next(answers, None) is None


def test_retries_end_after_the_time_limit() -> None:
    with pytest.raises(httpx.TransportError):
        server(lambda request: httpx.Response(500), retry_s=0.5).finish(REF, RunResult(outcome=Outcome.PASSED))


def test_refusal_is_not_retried() -> None:
    requests: list[int] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(1)
        return httpx.Response(422, json={"detail": "block 9 of 2"})

    with pytest.raises(ServerRefused, match="block 9 of 2"):
        server(answer).finish(REF, RunResult(outcome=Outcome.PASSED))
    assert len(requests) == 1


def test_upload_streams_with_fence(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 3_000_000)
    tries: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        tries.append(request.read())
        assert (request.headers["X-Job"], request.headers["X-Fence"]) == ("7", "3")
        assert dict(request.url.params) == {"kind": "raw_output", "name": "log.txt"}
        return httpx.Response(500 if len(tries) == 1 else 200)

    artifact = server(answer).upload(REF, path, ArtifactKind.RAW_OUTPUT, "log.txt")
    assert tries == [path.read_bytes()] * 2, "a repeated upload starts with the first byte"
    assert artifact.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_fetch_verifies_the_hash(tmp_path: Path) -> None:
    data = b"kernel"
    artifact = Artifact(sha256=hashlib.sha256(data).hexdigest(), size=6, kind=ArtifactKind.KERNEL, name="kernel")
    requests: list[int] = []

    def good(request: httpx.Request) -> httpx.Response:
        requests.append(1)
        return httpx.Response(200, content=data)

    path = server(good).fetch(artifact, tmp_path)
    server(good).fetch(artifact, tmp_path)
    assert (path.read_bytes(), len(requests)) == (data, 1)
    path.write_bytes(b"evil!!")
    assert server(good).fetch(artifact, tmp_path).read_bytes() == data, "a damaged copy is downloaded again"
    path.unlink()
    with pytest.raises(ArtifactCorrupt):
        server(lambda request: httpx.Response(200, content=b"swapped")).fetch(artifact, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_unknown_fields_of_leases_are_ignored() -> None:
    row = {"device": "u", "run_id": 1, "fence": 2, "holder": "w", "expires_in_s": 3.0}
    answer = {"leases": [{**row, "later": "field"}]}
    assert server(lambda request: httpx.Response(200, json=answer)).leases("local") == [Lease(**row)]


def test_full_server_is_an_infrastructure_failure(tmp_path: Path) -> None:
    (path := tmp_path / "vmlinux").write_bytes(b"large")
    full = server(lambda _: httpx.Response(507, json={"detail": "the volume of the artifact store is full"}), retry_s=0)
    with pytest.raises(httpx.TransportError) as refused:
        full.upload(REF, path, ArtifactKind.VMLINUX, "vmlinux")
    failure = failure_of(refused.value)
    assert failure.kind is ErrorKind.INFRASTRUCTURE
    assert "no space left" in failure.summary and "artifact store is full" in failure.summary
    assert "wqlab-lab storage" in failure.advice
