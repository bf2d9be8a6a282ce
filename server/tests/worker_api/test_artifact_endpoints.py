"""Upload and download of artifacts by workers."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import Arm, ArtifactKind, Scope
from wqlab_server.http.auth import create_token
from wqlab_server.models import ArtifactLink

from ..support.lab import LabUnderTest, RunSession

pytestmark = pytest.mark.integration


def test_lab_token_downloads_only_kernels_of_its_runs(lab: LabUnderTest, run: RunSession) -> None:
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
    lab.expire(run.job.run_id)
    lab.tick()
    assert ask(near, kernel.sha256) == 403, "its run has expired"


def test_artifact_download_is_resumed(lab: LabUnderTest, run: RunSession) -> None:
    lab.worker._fence = (run.job.run_id, run.fence)
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


def test_uploaded_artifact_is_hashed_and_downloaded(lab: LabUnderTest, run: RunSession) -> None:
    lab.worker._fence = (run.job.run_id, run.fence)
    content = bytes(range(256)) * 20_000  # several pieces
    for _ in range(2):
        artifact = lab.worker.upload(ArtifactKind.RAW_OUTPUT, "output.txt", content)
    answer = lab.worker.request("GET", f"artifacts/{artifact.sha256}")
    assert (answer.content, answer.status_code) == (content, 200)
    head = lab.worker.request("HEAD", f"artifacts/{artifact.sha256}")
    assert (head.status_code, head.headers["content-length"]) == (200, str(len(content)))
    with lab.transaction() as session:
        links = session.scalars(select(ArtifactLink).where(ArtifactLink.job_id == run.job.run_id)).all()
        assert [(link.sha256, link.name) for link in links] == [(artifact.sha256, "output.txt")]


def test_artifact_with_wrong_hash_is_not_stored(lab: LabUnderTest, run: RunSession) -> None:
    headers = {"X-Job": str(run.job.run_id), "X-Fence": str(run.fence)}
    path = f"artifacts/{'0' * 64}?kind=raw_output&name=x"
    answer = lab.worker.request("PUT", path, headers=headers, content=b"other")
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:wqlab:problem:hash-mismatch")
    assert lab.worker.request("GET", f"artifacts/{'0' * 64}").status_code == 404
    kept = [path for path in lab.settings.artifact_dir.rglob("*") if path.is_file() and "000000" in path.name]
    assert kept == []
    assert lab.worker.request("GET", "artifacts/..%2f..%2fetc").status_code in {404, 422}
