"""The Celery tasks with a real Redis and a real worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
import redis as redis_client
from sqlalchemy import make_url, select, text

from wqlab_contracts.api.webhooks import WebhookFilter
from wqlab_contracts.celery_names import ADVANCE, DELIVER, OUTBOX_QUEUE, SERVER_QUEUE, TICK
from wqlab_contracts.enums import DeliveryKind, DeliveryState, JobKind, SubmissionState
from wqlab_server.models import Delivery, Webhook
from wqlab_server.outbox import deliveries
from wqlab_server.outbox.webhooks import new_secret
from wqlab_server.settings import Settings
from wqlab_server.storage.celery_client import Sender, celery_app
from wqlab_server.storage.db import Message, clock
from wqlab_server.storage.events import SUBMISSION_CHANNEL

from .support.lab import LabUnderTest
from .support.receiver import Answer, receiver

pytestmark = pytest.mark.integration


def environment(settings: Settings, broker: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "WQLAB_DATABASE_URL": settings.database_url,
        "WQLAB_BROKER_URL": broker,
        "WQLAB_DATA_DIR": str(settings.data_dir),
        "WQLAB_ARTIFACT_DIR": str(settings.artifact_dir),
    }


@pytest.fixture
def queues(redis: str) -> redis_client.Redis:
    client = redis_client.Redis(unix_socket_path=redis.removeprefix("redis+socket://"))
    client.flushall()
    return client


def test_celery_worker_advances_and_ticks(
    lab: LabUnderTest, redis: str, queues: redis_client.Redis, tmp_path: Path
) -> None:
    advanced, ticked = lab.submit("locks@device"), lab.submit("affinity@device")
    lab.work(JobKind.APPLY)
    lab.submit("locks@single")
    lab.sql(
        "UPDATE jobs SET state = 'running', payload = '{}', expires_at = now() - interval '1 second'"
        " WHERE id = (SELECT max(id) FROM jobs WHERE kind = 'apply')"
    )
    log = tmp_path / "worker.log"
    lab.sql("UPDATE devices SET retired_at = now() WHERE name = 'device-2'")
    url = make_url(lab.settings.database_url).set(drivername="postgresql").render_as_string()
    with psycopg.connect(url, autocommit=True) as listening:
        listening.execute(f"LISTEN {SUBMISSION_CHANNEL}")
        sender = Sender(celery_app(redis))
        sender(Message(ADVANCE, advanced, SERVER_QUEUE))
        sender(Message(TICK, None, SERVER_QUEUE))
        worker = subprocess.Popen(
            [
                sys.executable, "-m", "celery", "-A", "wqlab_server.tasks", "worker", "-f", log, "-Q", SERVER_QUEUE,
                "--pool", "solo", "-l", "WARNING", "--without-mingle", "--without-gossip", "--without-heartbeat",
            ],
            env=environment(lab.settings, redis),
            cwd=lab.settings.data_dir,
        )  # fmt: skip
        try:
            for submission_id in (advanced, ticked):
                assert next(listening.notifies()).payload == str(submission_id)
                assert lab.submission(submission_id).state is SubmissionState.BUILDING
        finally:
            worker.terminate()  # a warm shutdown: the worker finishes the tick it has received
            worker.wait()
    assert lab.device("device-2").retired_at is None
    (fault,) = (line for line in log.read_text().splitlines() if "tick_item_failed" in line)
    assert "Traceback (most recent call last)" in json.loads(fault[fault.index("{") :])["exception"]
    assert queues.llen(SERVER_QUEUE) == 0


def test_worker_goes_on_after_redis_did_not_answer_in_time(
    lab: LabUnderTest, redis: str, queues: redis_client.Redis
) -> None:
    sender, most = Sender(celery_app(redis)), 100
    for _ in range(most):
        sender(Message(ADVANCE, 0, SERVER_QUEUE))
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "wqlab_server.tasks", "worker", "-Q", SERVER_QUEUE, "-c", "1"],
        env=environment(lab.settings, redis),
        cwd=lab.settings.data_dir,
    )
    try:
        until(lambda: queues.llen(SERVER_QUEUE) < most)
        # Longer than `socket_timeout`, while messages are received.
        queues.execute_command("CLIENT", "PAUSE", "3000")
        until(lambda: queues.llen(SERVER_QUEUE) == 0)
    finally:
        worker.terminate()
        worker.wait()


def outbox_worker(settings: Settings, broker: str, host: str) -> subprocess.Popen[bytes]:
    """Start the program `outbox`, with threads as in a lab."""
    return subprocess.Popen(
        [
            sys.executable, "-m", "celery", "-A", "wqlab_server.tasks", "worker", "-Q", OUTBOX_QUEUE, "-c", "2",
            "--pool=threads", "-l", "ERROR", "--without-mingle", "--without-gossip", "--without-heartbeat",
        ],
        env={**environment(settings, broker), "WQLAB_PRIVATE_WEBHOOK_HOSTS": host},
        cwd=settings.data_dir,
    )  # fmt: skip


def until(done: Callable[[], object]) -> None:
    while not done():
        time.sleep(0.1)


def test_delivery_of_a_killed_worker_is_sent_by_the_next_one_under_the_same_id(
    lab: LabUnderTest, redis: str, queues: redis_client.Redis
) -> None:
    def state() -> str:
        with lab.transaction() as session:
            return session.scalars(select(Delivery.state)).one()

    with receiver(Answer(after_s=3600), Answer(200)) as target:
        with lab.transaction() as session:
            webhook = Webhook(owner="dev", url=target.url, events=["x"], filter=WebhookFilter(), secret=new_secret())
            session.add(webhook)
            session.flush()
            number = deliveries.write(
                session, DeliveryKind.WEBHOOK, "k", event="x", destination=target.url, message_id="msg_k",
                webhook_id=webhook.id, body="{}", state=DeliveryState.WAITING, next_at=clock(session),
            )  # fmt: skip
        sender = Sender(celery_app(redis))
        first = outbox_worker(lab.settings, redis, target.host)
        try:
            sender(Message(DELIVER, number, OUTBOX_QUEUE))
            until(lambda: target.requests)
        finally:
            first.kill()
            first.wait()
        second = outbox_worker(lab.settings, redis, target.host)
        try:
            lab.sql("UPDATE deliveries SET claimed_until = now()")
            sender(Message(DELIVER, number, OUTBOX_QUEUE))  # notes the lost attempt
            until(lambda: lab_value(lab, "SELECT count(*) FROM delivery_attempts WHERE outcome = 'unknown'"))
            lab.sql("UPDATE deliveries SET next_at = now()")
            sender(Message(DELIVER, number, OUTBOX_QUEUE))
            until(lambda: state() == DeliveryState.DELIVERED)
        finally:
            second.terminate()
            second.wait()
    assert [request.headers["webhook-id"] for request in target.requests] == ["msg_k", "msg_k"]
    assert queues.llen(OUTBOX_QUEUE) == 0


def lab_value(lab: LabUnderTest, query: str) -> object:
    with lab.transaction() as session:
        return session.scalar(text(query))


def test_start_sends_messages_of_waiting_jobs_again(
    lab: LabUnderTest, redis: str, queues: redis_client.Redis, tmp_path: Path
) -> None:
    """The broker of a stopped lab loses its messages, and the wait before the next message of a job may be long."""
    lab.submit("locks@device")
    lab.tick()
    lab.sql("UPDATE jobs SET nudges = 9")
    lab.sent.clear()
    lab.tick()
    assert not [message for message in lab.sent if message.task == JobKind.APPLY]
    beat = subprocess.Popen(
        [
            sys.executable, "-m", "celery", "-A", "wqlab_server.tasks", "beat", "-s", str(tmp_path / "beat"),
            "-l", "WARNING", "--pidfile=",
        ],
        env=environment(lab.settings, redis),
        cwd=lab.settings.data_dir,
    )  # fmt: skip
    try:
        assert queues.blpop([SERVER_QUEUE])
    finally:
        beat.terminate()
        beat.wait()
    lab.tick()
    assert [message for message in lab.sent if message.task == JobKind.APPLY]


def test_command_migrates_and_creates_tokens(lab: LabUnderTest, redis: str) -> None:
    def run(*words: str, status: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "wqlab_server.cli", *words],
            check=False,
            env=environment(lab.settings, redis),
            text=True,
            capture_output=True,
        )
        assert done.returncode == status, done.stderr
        return done.stdout if status == 0 else done.stderr

    run("migrate")
    lab.worker.token = run("token", "create", "--name", "second", "--scope", "worker", "--lab", "local").strip()
    assert lab.worker.request("GET", "labs/local/leases").status_code == 200
    assert "cannot be combined" in run(
        "token", "create", "--name", "x", "--scope", "worker", "--scope", "read", status=2
    )
