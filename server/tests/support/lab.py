"""The real application and pipeline on a real database, and a scripted worker that uses the HTTP API."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from fastapi.testclient import TestClient
from sqlalchemy import Engine, select, text
from sqlalchemy.orm import Session

from wqlab_contracts.api.report import Report
from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.celery_names import ADVANCE, JOB, TICK
from wqlab_contracts.enums import DeviceHealth, JobKind, Scope, SubmissionState, UserRole
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.messages import GitSeries, Series, Target
from wqlab_server.app import create_app
from wqlab_server.http.auth import create_token
from wqlab_server.lab.service import change_pool, pool_changes
from wqlab_server.models import Device, Event, Job, Run, Submission, TickError
from wqlab_server.pipeline.advance import advance
from wqlab_server.pipeline.assign_devices import assign_devices
from wqlab_server.settings import Settings
from wqlab_server.storage.db import Message, make_factory, transaction
from wqlab_server.submissions import service as submissions
from wqlab_server.tick.tick import tick

from .people import add_user
from .scripted_worker import ScriptedWorker, build_id_of, locks, oid, passing_apply, passing_build
from .send_run_events import NOW, RunSession, failed, infrastructure_result, passing_run, results

__all__ = [
    "NOW", "SERIES", "LabUnderTest", "RunSession", "ScriptedWorker", "build_id_of", "failed", "fill_pool",
    "infrastructure_result", "locks", "oid", "passing_apply", "passing_build", "passing_run", "results",
]  # fmt: skip

SERIES = Series(git=GitSeries(url="https://git.example.org/dev/linux.git", ref="flush-locks"))


def fill_pool(session: Session, data: DataFolder) -> None:
    """Add the devices of the data folder to the database, as the first tick does."""
    for change in pool_changes(session, data):
        change_pool(session, change)


class LabUnderTest:
    """The application and pipeline; messages to workers are collected in `sent`."""

    def __init__(self, settings: Settings, engine: Engine) -> None:
        self.settings = settings
        self.sent: list[Message] = []
        self.sessions = make_factory(engine, self._keep)
        self.app = create_app(settings, self.sessions)
        self.client = TestClient(self.app, raise_server_exceptions=True)
        with transaction(self.sessions) as session:
            _, self.worker_token = create_token(session, "worker", [Scope.WORKER])
            _, self.token = create_token(session, "dev", [Scope.ADMIN], user=add_user(session, "dev", UserRole.ADMIN))
            fill_pool(session, self.data)
        self.worker = ScriptedWorker(self.client, self.worker_token)

    def _keep(self, message: Message) -> None:
        """Keep a message; that of a job has the job's kind as its task, so that tests can choose."""
        if message.task == JOB:
            with self.transaction() as session:
                kind = session.scalars(select(Job.kind).where(Job.id == message.id)).one()
            message = replace(message, task=kind)
        self.sent.append(message)

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
        elif message.task == JobKind.APPLY:
            self.worker.apply(message.id)
        elif message.task == JobKind.BUILD:
            self.worker.build(message.id)
        elif message.task == JobKind.RUN:
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
        """Return the health checks of a device."""
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

    def expire(self, job_id: int) -> None:
        """Let the job's claim expire by the database's clock."""
        self.sql("UPDATE jobs SET expires_at = now() - interval '1 second' WHERE id = :id", id=job_id)
        self.sql("UPDATE leases SET expires_at = now() - interval '1 second' WHERE run_id = :id", id=job_id)
