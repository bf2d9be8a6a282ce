"""A scripted worker that claims jobs over the HTTP API and sends their results."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2
from fastapi.testclient import TestClient

from wqlab_contracts.enums import Arm, ArtifactKind, Outcome, RunPurpose
from wqlab_contracts.messages import (
    ApplyJob,
    ApplyResult,
    Artifact,
    BuildJob,
    BuildResult,
    RunJob,
    RunResult,
    Source,
    protocol,
)
from wqlab_contracts.messages.build import LinkedLayout

from .send_run_events import RunSession, passing_run


def oid(name: str) -> str:
    return hashlib.sha1(name.encode()).hexdigest()


def passing_apply(job: ApplyJob, worker: ScriptedWorker) -> ApplyResult:
    base = Source(
        tree=job.tree, base_commit=oid("base"), tree_oid=oid("base tree"), commit=oid("base"), release="6.12.0"
    )
    if job.series is None:
        return ApplyResult(outcome=Outcome.PASSED, baseline=base, toolchain="gcc 12.2.0")
    bundle = worker.upload(ArtifactKind.BUNDLE, "series.bundle", f"bundle of {job.series}".encode())
    candidate = base.model_copy(
        update={"tree_oid": oid(f"tree of {job.series}"), "commit": oid(f"tip of {job.series}"), "bundle": bundle}
    )
    return ApplyResult(
        outcome=Outcome.PASSED,
        baseline=base,
        candidate=candidate,
        title="workqueue: take fewer locks",
        series_key="workqueue: take fewer locks",
        toolchain="gcc 12.2.0",
    )


def build_id_of(job: BuildJob) -> str:
    return hashlib.sha1(job.key.encode()).hexdigest()


def passing_build(job: BuildJob, worker: ScriptedWorker) -> BuildResult:
    kernel = worker.upload(ArtifactKind.KERNEL, "bzImage", f"kernel {job.key}".encode())
    layouts = []
    for layout in range(1, job.layouts):
        content = f"kernel {job.key} {layout}".encode()
        linked = worker.upload(ArtifactKind.KERNEL, f"bzImage-{layout}", content)
        build_id = hashlib.sha1(content).hexdigest()
        layouts.append(LinkedLayout(layout=layout, build_id_gnu=build_id, duration_s=20.0, artifacts=[linked]))
    return BuildResult(
        outcome=Outcome.PASSED, build_id_gnu=build_id_of(job), release="6.12.0-wqlab", layouts=layouts,
        artifacts=[kernel],
    )  # fmt: skip


def locks(arm: Arm, setting: str, metric: str, block: int) -> float:
    """Return the demo's values: fewer lock acquisitions with the candidate, locality by scope."""
    if metric == "locks_per_flush":
        return 33.0 if arm is Arm.BASELINE else 5.0
    if metric == "share_l3":
        return {"scope=system": 25.0, "scope=cache": 83.0, "scope=cpu": 100.0}[setting] + block / 10
    return 100.0 + block


@dataclass
class ScriptedWorker:
    """A worker that claims the jobs of its messages; `on_*` give the results.

    None from `on_run` or `on_health_check`: the worker stops without a finish request.
    """

    client: TestClient
    token: str
    lab: str = "local"
    on_apply: Callable[[ApplyJob, ScriptedWorker], ApplyResult] = passing_apply
    on_build: Callable[[BuildJob, ScriptedWorker], BuildResult] = passing_build
    on_run: Callable[[RunSession], RunResult | None] = passing_run
    on_health_check: Callable[[RunSession], RunResult | None] = passing_run
    value: Callable[[Arm, str, str, int], float] = locks
    builds: list[BuildJob] = field(default_factory=list)
    runs: list[RunSession] = field(default_factory=list)
    _fence: tuple[int, int] = (0, 0)

    def apply(self, apply_id: int) -> None:
        claim = self.claim(apply_id)
        if claim is None:
            return
        self._fence = (apply_id, claim["fence"])
        result = self.on_apply(ApplyJob.model_validate(claim["job"]), self)
        self.finish(apply_id, claim["fence"], result)

    def build(self, build_id: int) -> None:
        claim = self.claim(build_id)
        if claim is None:
            return
        self._fence = (build_id, claim["fence"])
        job = BuildJob.model_validate(claim["job"])
        self.builds.append(job)
        self.finish(build_id, claim["fence"], self.on_build(job, self))

    def run(self, run_id: int) -> None:
        run = self.claim_run(run_id)
        if run is None:
            return
        health = run.job.purpose is RunPurpose.HEALTH_CHECK
        result = (self.on_health_check if health else self.on_run)(run)
        if result is not None:
            run.finish(result)

    def claim_run(self, run_id: int) -> RunSession | None:
        claim = self.claim(run_id)
        if claim is None:
            return None
        job = RunJob.model_validate(claim["job"])
        run = RunSession(self, job, claim["fence"], job.completed_blocks)
        self.runs.append(run)
        return run

    def claim(self, job_id: int) -> dict[str, Any] | None:
        answer = self.request("POST", f"jobs/{job_id}/claim", json={"worker": "test/1", "lab": self.lab})
        if answer.status_code == 409:
            return None
        assert answer.status_code == 200, answer.text
        claim: dict[str, Any] = answer.json()
        return claim

    def finish(self, job_id: int, fence: int, result: Any, expect: int = 204) -> httpx2.Response:
        return self.post(f"jobs/{job_id}/finish", {"fence": fence, "result": result.model_dump(mode="json")}, expect)

    def upload(self, kind: ArtifactKind, name: str, content: bytes, expect: int = 200) -> Artifact:
        sha256 = hashlib.sha256(content).hexdigest()
        job, fence = self._fence
        answer = self.request(
            "PUT",
            f"artifacts/{sha256}",
            params={"kind": kind.value, "name": name},
            headers={"X-Job": str(job), "X-Fence": str(fence)},
            content=content,
        )
        assert answer.status_code == expect, answer.text
        return Artifact(sha256=sha256, size=len(content), kind=kind, name=name)

    def post(self, path: str, body: dict[str, Any], expect: int) -> httpx2.Response:
        answer = self.request("POST", path, json=body)
        assert answer.status_code == expect, f"{path}: {answer.status_code} {answer.text}"
        return answer

    def request(self, method: str, path: str, headers: dict[str, str] | None = None, **more: Any) -> httpx2.Response:
        sent = {"Authorization": f"Bearer {self.token}", **protocol.headers(), **(headers or {})}
        answer: httpx2.Response = self.client.request(method, f"/api/worker/v1/{path}", headers=sent, **more)
        return answer
