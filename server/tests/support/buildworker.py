"""A Celery build worker for tests: it claims and finishes over HTTP like the real one, without compiling."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import Any

import httpx
from celery import Celery

from wqlab_contracts.celery_names import CELERY_CONFIG, JOB
from wqlab_contracts.enums import ArtifactKind, JobKind, Outcome
from wqlab_contracts.messages import ApplyJob, ApplyResult, Artifact, BuildJob, BuildResult, Source, protocol

app = Celery("buildworker", broker=os.environ.get("BROKER", "memory://"))
app.conf.update(CELERY_CONFIG)


class _Claimed:
    def __init__(self, id_: int) -> None:
        self._http = httpx.Client(
            base_url=f"{os.environ['URL']}/api/worker/v1/",
            headers={"Authorization": f"Bearer {os.environ['TOKEN']}", **protocol.headers()},
            timeout=None,
        )
        self._id = id_
        answer = self._http.post(f"jobs/{id_}/claim", json={"worker": f"{os.environ['NAME']}/{os.getpid()}"})
        self.claim: dict[str, Any] | None = None if answer.status_code == 409 else answer.raise_for_status().json()

    def upload(self, kind: ArtifactKind, name: str, content: bytes) -> Artifact:
        assert self.claim
        sha256 = hashlib.sha256(content).hexdigest()
        headers = {"X-Job": str(self._id), "X-Fence": str(self.claim["fence"])}
        params = {"kind": kind.value, "name": name}
        self._http.put(f"artifacts/{sha256}", params=params, headers=headers, content=content).raise_for_status()
        return Artifact(sha256=sha256, size=len(content), kind=kind, name=name)

    def finish(self, result: ApplyResult | BuildResult) -> None:
        assert self.claim
        body = {"fence": self.claim["fence"], "result": result.model_dump(mode="json")}
        self._http.post(f"jobs/{self._id}/finish", json=body).raise_for_status()


def _oid(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()


@app.task(name=JOB)  # type: ignore[untyped-decorator]
def job(id: int) -> None:
    claimed = _Claimed(id)
    if claimed.claim is None:
        return
    if claimed.claim["job"]["kind"] == JobKind.APPLY:
        apply(claimed)
    else:
        build(claimed)


def apply(claimed: _Claimed) -> None:
    assert claimed.claim
    job = ApplyJob.model_validate(claimed.claim["job"])
    time.sleep(0.2)
    base = Source(
        tree=job.tree, base_commit=_oid("base"), tree_oid=_oid("base tree"), commit=_oid("base"), release="6.12.0"
    )
    bundle = claimed.upload(ArtifactKind.BUNDLE, "series.bundle", str(job.series).encode())
    changed = {"tree_oid": _oid(f"tree of {job.series}"), "commit": _oid(f"tip of {job.series}"), "bundle": bundle}
    claimed.finish(
        ApplyResult(
            outcome=Outcome.PASSED, baseline=base, candidate=base.model_copy(update=changed), title="fewer locks",
            series_key="fewer locks", toolchain="gcc 12.2.0",
        )
    )  # fmt: skip


def build(claimed: _Claimed) -> None:
    assert claimed.claim
    job = BuildJob.model_validate(claimed.claim["job"])
    with Path(os.environ["BUILT"]).open("a") as built:
        built.write(f"{os.environ['NAME']} {job.key}\n")
    time.sleep(1.5)
    kernel = claimed.upload(ArtifactKind.KERNEL, "bzImage", f"kernel {job.key}".encode())
    claimed.finish(
        BuildResult(outcome=Outcome.PASSED, build_id_gnu=_oid(job.key), release="6.12.0-wqlab", artifacts=[kernel])
    )
