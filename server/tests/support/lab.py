"""The real application and pipeline on a real database, and a scripted worker that uses the HTTP API."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx2
from fastapi.testclient import TestClient
from sqlalchemy import Engine, select, text
from sqlalchemy.orm import Session

from wqlab_contracts.api.report import Report
from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.celery_names import ADVANCE, APPLY, BUILD, RUN, TICK
from wqlab_contracts.enums import (
    Arm,
    ArtifactKind,
    DeviceHealth,
    ErrorKind,
    FindingKind,
    Outcome,
    RunPurpose,
    Scope,
    SubmissionState,
    UserRole,
)
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import (
    ApplyJob,
    ApplyResult,
    Artifact,
    BlockDiscarded,
    BlockFinished,
    BlockPlan,
    BootFinished,
    BootKey,
    BootStarted,
    BootVerified,
    BuildJob,
    BuildResult,
    Failure,
    Finding,
    GitSeries,
    MeasuredTopology,
    RunJob,
    RunResult,
    Sample,
    Samples,
    Series,
    Source,
    Target,
    protocol,
)
from wqlab_server.app import create_app
from wqlab_server.http.auth import create_token
from wqlab_server.lab.service import change_pool, pool_changes
from wqlab_server.models import Device, Event, Run, Submission, TickError
from wqlab_server.pipeline.advance import advance
from wqlab_server.pipeline.assign_devices import assign_devices
from wqlab_server.pipeline.tick import tick
from wqlab_server.settings import Settings
from wqlab_server.storage.db import Message, make_factory, transaction
from wqlab_server.submissions import service as submissions

from .people import add_user

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TOPOLOGY = MeasuredTopology(cpus=4, core=[0, 1, 2, 3], l3=[0, 0, 1, 1], node=[0] * 4, package=[0] * 4)
SERIES = Series(git=GitSeries(url="https://git.example.org/dev/linux.git", ref="flush-locks"))


def oid(name: str) -> str:
    return hashlib.sha1(name.encode()).hexdigest()


def failed(kind: ErrorKind, summary: str) -> Failure:
    return Failure(kind=kind, summary=summary, excerpt=f"excerpt of: {summary}")


def infrastructure_result(summary: str = "power switch does not answer", *, suspect: bool = False) -> RunResult:
    """Return the result of a run with an infrastructure failure."""
    return RunResult(outcome=Outcome.FAILED, failure=failed(ErrorKind.INFRASTRUCTURE, summary), device_suspect=suspect)


def fill_pool(session: Session, data: DataFolder) -> None:
    """Add the devices of the data folder to the database, as the first tick does."""
    for change in pool_changes(session, data):
        change_pool(session, change)


class LabUnderTest:
    """The application and pipeline; messages to workers are collected in `sent`."""

    def __init__(self, settings: Settings, engine: Engine) -> None:
        self.settings = settings
        self.sent: list[Message] = []
        self.sessions = make_factory(engine, self.sent.append)
        self.app = create_app(settings, self.sessions)
        self.client = TestClient(self.app, raise_server_exceptions=True)
        with transaction(self.sessions) as session:
            _, self.worker_token = create_token(session, "worker", [Scope.WORKER])
            _, self.token = create_token(session, "dev", [Scope.ADMIN], user=add_user(session, "dev", UserRole.ADMIN))
            fill_pool(session, self.data)
        self.worker = ScriptedWorker(self.client, self.worker_token)

    @property
    def data(self) -> Any:
        return self.app.state.data.current()

    def transaction(self) -> AbstractContextManager[Session]:
        return transaction(self.sessions)

    def mark_all_good(self) -> None:
        """Set every device's health to good."""
        with self.transaction() as session:
            for device in session.scalars(select(Device)):
                device.health = DeviceHealth.GOOD

    def submit(
        self, *targets: str, series: Series | None = SERIES, blocks: int | None = None, owner: str = "dev", **more: Any
    ) -> int:
        request = SubmissionRequest(
            series=series,
            tree="lab-tree",
            targets=[Target(plan=t.split("@")[0], device_type=t.split("@")[1]) for t in targets],
            blocks=blocks,
            **more,
        )
        with self.transaction() as session:
            return submissions.create(session, self.data, self.settings, request, owner).id

    def tick(self) -> None:
        assert tick(self.sessions, self.settings, self.app.state.data)

    def work(self, *tasks: str, limit: int = 200) -> None:
        """Handle messages, including new ones, until none is left; with `tasks`, only messages of these tasks."""
        kept: list[Message] = []
        while self.sent:
            limit -= 1
            assert limit > 0, f"there are always new messages: {self.sent[:5]}"
            message = self.sent.pop(0)
            if tasks and message.task not in tasks:
                kept.append(message)
                continue
            self.handle(message)
        self.sent.extend(kept)

    def handle(self, message: Message) -> None:
        if message.task == TICK:
            self.tick()
            return
        assert message.id is not None
        if message.task == ADVANCE:
            advance(self.sessions, self.settings, message.id)
            assign_devices(self.sessions, self.settings)
        elif message.task == APPLY:
            self.worker.apply(message.id)
        elif message.task == BUILD:
            self.worker.build(message.id)
        elif message.task == RUN:
            self.worker.run(message.id)

    def until_idle(self) -> None:
        """Handle messages and tick until a tick sends no message."""
        for _ in range(20):
            self.work()
            self.tick()
            if not self.sent:
                return
        raise AssertionError(f"still busy: {self.sent}")

    def finished(self, submission_id: int) -> Submission:
        """Work until idle and return the submission, which must have finished."""
        self.until_idle()
        submission = self.submission(submission_id)
        assert submission.state is SubmissionState.FINISHED, submission.state
        return submission

    def checks(self, device: str) -> list[Run]:
        """Return the health checks and noise runs of a device."""
        with self.transaction() as session:
            return list(session.scalars(select(Run).where(Run.wanted_device == device).order_by(Run.id)))

    def tick_errors(self) -> dict[tuple[str, str], int]:
        """Return (kind of item, item) -> number of errors in ticks."""
        with self.transaction() as session:
            return {(error.what, error.item): error.count for error in session.scalars(select(TickError))}

    def post(self, path: str, body: dict[str, Any] | None = None) -> None:
        """Send a POST request to the public API as administrator; it must succeed."""
        headers = {"Authorization": f"Bearer {self.token}"}
        self.client.post(f"/api/v1/{path}", json=body, headers=headers).raise_for_status()

    def sql(self, statement: str, **values: Any) -> None:
        with self.transaction() as session:
            session.execute(text(statement), values)

    def submission(self, submission_id: int) -> Submission:
        with self.transaction() as session:
            return session.get_one(Submission, submission_id)

    def runs(self, submission_id: int) -> list[Run]:
        with self.transaction() as session:
            return list(
                session.scalars(select(Run).where(Run.submission_id == submission_id).order_by(Run.target, Run.id))
            )

    def device(self, name: str) -> Device:
        with self.transaction() as session:
            return session.get_one(Device, name)

    def events(self, submission_id: int) -> list[Event]:
        with self.transaction() as session:
            return list(session.scalars(select(Event).where(Event.submission_id == submission_id).order_by(Event.seq)))

    def report(self, submission_id: int) -> Report:
        answer = self.client.get(
            f"/api/v1/submissions/{submission_id}/report?format=json", headers={"Authorization": f"Bearer {self.token}"}
        )
        return Report.model_validate_json(answer.raise_for_status().content)

    def expire(self, table: str, job_id: int) -> None:
        """Let the job's claim expire by the database's clock."""
        self.sql(f"UPDATE {table} SET expires_at = now() - interval '1 second' WHERE id = :id", id=job_id)
        if table == "runs":
            self.sql("UPDATE leases SET expires_at = now() - interval '1 second' WHERE run_id = :id", id=job_id)


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
    return BuildResult(
        outcome=Outcome.PASSED, build_id_gnu=build_id_of(job), release="6.12.0-wqlab", artifacts=[kernel]
    )


def locks(arm: Arm, setting: str, metric: str, block: int) -> float:
    """Return the demo's values: fewer lock acquisitions with the candidate, locality by scope."""
    if metric == "locks_per_flush":
        return 33.0 if arm is Arm.BASELINE else 5.0
    if metric == "share_l3":
        return {"scope=system": 25.0, "scope=cache": 83.0, "scope=cpu": 100.0}[setting] + block / 10
    return 100.0 + block


@dataclass
class RunSession:
    """A claimed run; sends its events one by one."""

    worker: ScriptedWorker
    job: RunJob
    fence: int
    completed: list[int]

    @property
    def remaining(self) -> list[BlockPlan]:
        return [plan for plan in self.job.blocks if plan.block not in self.completed]

    @property
    def first_key(self) -> BootKey:
        """The key of the first boot of block 0."""
        return BootKey(block=0, position=0, arm=self.job.blocks[0].arms[0], attempt=0)

    def send(self, *events: Any, expect: int = 204) -> httpx2.Response:
        body = {"fence": self.fence, "events": [event.model_dump(mode="json") for event in events]}
        return self.worker.post(f"runs/{self.job.run_id}/events", body, expect)

    def boot_events(self, key: BootKey) -> list[Any]:
        kernel = self.job.kernels[key.arm]
        plan, repetitions = self.job.plan, self.job.profile.repetitions
        samples = [
            Sample(
                scenario=scenario.name,
                setting=setting,
                repetition=number,
                metric=metric.name,
                value=self.worker.value(key.arm, setting, metric.name, key.block),
                warmup=number < repetitions.warmup,
            )
            for scenario in plan.scenarios
            for setting in self.job.profile.settings
            for metric in plan.metrics
            for number in range(repetitions.warmup + 1)
        ]
        return [
            BootStarted(at=NOW, boot=key),
            BootVerified(
                at=NOW,
                boot=key,
                kernel_boot_id=f"boot {self.job.run_id} {key.block} {key.position} {key.attempt}",
                token=f"token-{key.block}-{key.position}-{key.attempt}",
                build_id_gnu=kernel.build_id_gnu,
                release=kernel.release,
                cmdline="console=ttyS0",
                topology=TOPOLOGY,
                golden_s=9.0,
                kexec_s=7.0,
            ),
            Samples(at=NOW, boot=key, samples=samples, commands={s.name: "fio job" for s in plan.scenarios}),
            BootFinished(at=NOW, boot=key, outcome=Outcome.PASSED, workload_s=3.0, overhead_s=1.0),
        ]

    def send_block(self, plan: BlockPlan, times: int = 1) -> None:
        """Send a whole block, each message `times` times."""
        for position, arm in enumerate(plan.arms):
            key = BootKey(block=plan.block, position=position, arm=arm, attempt=plan.first_attempt)
            for _ in range(times):
                self.send(*self.boot_events(key))
        for _ in range(times):
            self.send(BlockFinished(at=NOW, block=plan.block, attempt=plan.first_attempt))

    def send_failed_boot(self, plan: BlockPlan, arm: Arm, failure: Failure, attempt: int | None = None) -> None:
        """Send a boot of `arm` that fails with `failure`, and the discarded block."""
        attempt = plan.first_attempt if attempt is None else attempt
        key = BootKey(block=plan.block, position=plan.arms.index(arm), arm=arm, attempt=attempt)
        kernel = failure.kind is ErrorKind.KERNEL
        failed = None if failure.kind is ErrorKind.CANCELED else arm
        finding = Finding(
            at=NOW, boot=key, kind=FindingKind.PANIC, title=failure.summary, excerpt=failure.excerpt,
            console_offset=17, fatal=True,
        )  # fmt: skip
        self.send(
            BootStarted(at=NOW, boot=key),
            *([finding] if kernel else []),
            BootFinished(at=NOW, boot=key, outcome=Outcome.FAILED, failure=failure),
            BlockDiscarded(at=NOW, block=plan.block, attempt=attempt, arm=failed, failure=failure),
        )

    def console(self, key: BootKey, offset: int, data: bytes, expect: int = 200) -> dict[str, Any]:
        body = {
            "fence": self.fence,
            "boot": key.model_dump(mode="json"),
            "offset": offset,
            "data": base64.b64encode(data).decode(),
        }
        answer: dict[str, Any] = self.worker.post(f"runs/{self.job.run_id}/console", body, expect).json()
        return answer

    def heartbeat(self, expect: int = 200) -> dict[str, Any]:
        answer: dict[str, Any] = self.worker.post(
            f"runs/{self.job.run_id}/heartbeat", {"fence": self.fence}, expect
        ).json()
        return answer

    def finish(self, result: RunResult | None = None, expect: int = 204) -> httpx2.Response:
        result = result or RunResult(outcome=Outcome.PASSED)
        body = {"fence": self.fence, "result": result.model_dump(mode="json")}
        return self.worker.post(f"runs/{self.job.run_id}/finish", body, expect)


def passing_run(run: RunSession) -> RunResult:
    for plan in run.remaining:
        run.send_block(plan)
    return RunResult(outcome=Outcome.PASSED)


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
    _fence: tuple[str, int] = ("", 0)

    def apply(self, apply_id: int) -> None:
        claim = self.claim("applies", apply_id)
        if claim is None:
            return
        self._fence = (f"applies/{apply_id}", claim["fence"])
        result = self.on_apply(ApplyJob.model_validate(claim["job"]), self)
        self.finish("applies", apply_id, claim["fence"], result)

    def build(self, build_id: int) -> None:
        claim = self.claim("builds", build_id)
        if claim is None:
            return
        self._fence = (f"builds/{build_id}", claim["fence"])
        job = BuildJob.model_validate(claim["job"])
        self.builds.append(job)
        self.finish("builds", build_id, claim["fence"], self.on_build(job, self))

    def run(self, run_id: int) -> None:
        run = self.claim_run(run_id)
        if run is None:
            return
        health = run.job.purpose is RunPurpose.HEALTH_CHECK
        result = (self.on_health_check if health else self.on_run)(run)
        if result is not None:
            run.finish(result)

    def claim_run(self, run_id: int) -> RunSession | None:
        claim = self.claim("runs", run_id)
        if claim is None:
            return None
        run = RunSession(self, RunJob.model_validate(claim["job"]), claim["fence"], claim["completed_blocks"])
        self.runs.append(run)
        return run

    def claim(self, kind: str, job_id: int) -> dict[str, Any] | None:
        answer = self.request("POST", f"{kind}/{job_id}/claim", json={"worker": "test/1", "lab": self.lab})
        if answer.status_code == 409:
            return None
        assert answer.status_code == 200, answer.text
        claim: dict[str, Any] = answer.json()
        return claim

    def finish(self, kind: str, job_id: int, fence: int, result: Any, expect: int = 204) -> httpx2.Response:
        return self.post(f"{kind}/{job_id}/finish", {"fence": fence, "result": result.model_dump(mode="json")}, expect)

    def upload(self, kind: ArtifactKind, name: str, content: bytes, expect: int = 200) -> Artifact:
        sha256 = hashlib.sha256(content).hexdigest()
        job, fence = self._fence
        answer = self.request(
            "PUT",
            f"artifacts/{sha256}",
            params={"kind": kind.value, "name": name},
            headers={"X-Fence-Job": job, "X-Fence": str(fence)},
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


def results(
    *given: RunResult | Callable[[RunSession], RunResult | None] | None,
) -> Callable[[RunSession], RunResult | None]:
    """Return a handler that gives the results in turn, and repeats the last one."""
    remaining: Sequence[Any] = list(given)

    def next_result(run: RunSession) -> RunResult | None:
        nonlocal remaining
        current, remaining = remaining[0], remaining[1:] or remaining
        result: RunResult | None = current(run) if callable(current) else current
        return result

    return next_result
