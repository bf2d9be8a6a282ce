"""Permissions of a lab's broker user, with a real Redis, TLS and a real worker."""

from __future__ import annotations

import http.server
import os
import queue as queues
import signal
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery
from redis import Redis
from redis.exceptions import AuthenticationError, NoPermissionError
from redis.exceptions import ConnectionError as RedisConnectionError

from wqlab_contracts.celery_names import CELERY_CONFIG, JOB, lab_grants, lab_queue, lab_user

from .conftest import Certificates, TlsRedis

pytestmark = pytest.mark.integration

PASSWORD = "berlins-own"


@pytest.fixture
def berlin(redis: TlsRedis, certificates: Certificates) -> Redis:
    """A connection as the broker user of lab berlin."""
    admin = redis.admin()
    admin.flushall()
    admin.execute_command("ACL", "LOG", "RESET")
    admin.execute_command("ACL", "SETUSER", lab_user("berlin"), "reset", "on", f">{PASSWORD}", *lab_grants("berlin"))
    url = redis.url(lab_user("berlin"), PASSWORD)
    return Redis.from_url(url, ssl_ca_certs=str(certificates.ca))


@pytest.mark.parametrize(
    "command",
    [
        ("BRPOP", "lab.boston", 1), ("BRPOP", "lab.berlin", "build", 1), ("BRPOP", "lab.berlin.2", 1),
        ("RPOP", "lab.berlin"), ("LRANGE", "lab.berlin", 0, -1),
        ("LPUSH", "lab.berlin", "x"), ("LPUSH", "server", "x"),
        ("GET", "unacked"), ("HGETALL", "unacked"), ("HSET", "unacked", "x", "x"),
        ("SADD", "_kombu.binding.server", "x"),
        ("DEL", "lab.berlin"), ("KEYS", "*"), ("SCAN", 0), ("FLUSHALL",), ("FLUSHDB",), ("CONFIG", "GET", "*"),
        ("CONFIG", "SET", "save", ""), ("ACL", "LIST"), ("ACL", "SETUSER", "lab-berlin", "+@all"),
        ("CLIENT", "LIST"),
        ("CLIENT", "KILL", "TYPE", "normal"), ("MONITOR",), ("PUBLISH", "celery.pidbox", "x"), ("SUBSCRIBE", "x"),
        ("EVAL", "return 1", 0), ("SCRIPT", "LOAD", "return 1"), ("SHUTDOWN",), ("INFO",),
        ("REPLICAOF", "10.0.0.1", 1), ("MODULE", "LIST"), ("SAVE",), ("MULTI",), ("SWAPDB", 0, 1),
    ],
    ids=lambda command: " ".join(map(str, command)),
)  # fmt: skip
def test_lab_user_may_only_take_from_its_own_queue(
    redis: TlsRedis, berlin: Redis, command: tuple[str | int, ...]
) -> None:
    redis.admin().lpush("lab.boston", "theirs")
    with pytest.raises(NoPermissionError):
        berlin.execute_command(*command)
    assert redis.admin().lrange("lab.boston", 0, -1) == [b"theirs"]


def test_lab_user_takes_from_its_own_queue(redis: TlsRedis, berlin: Redis) -> None:
    redis.admin().lpush("lab.berlin", "ours")
    assert berlin.brpop(["lab.berlin"], 1) == (b"lab.berlin", b"ours")


def test_connection_needs_ca_and_password(redis: TlsRedis, certificates: Certificates) -> None:
    with pytest.raises(RedisConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
        Redis.from_url(redis.url(lab_user("berlin"), PASSWORD)).ping()
    for url in (redis.url(lab_user("berlin"), "wrong"), redis.url(lab_user("nowhere"), PASSWORD)):
        with pytest.raises(AuthenticationError):
            Redis.from_url(url, ssl_ca_certs=str(certificates.ca)).ping()
    with pytest.raises(AuthenticationError):
        Redis.from_url(f"rediss://127.0.0.1:{redis.port}/0", ssl_ca_certs=str(certificates.ca)).ping()


class Api(http.server.BaseHTTPRequestHandler):
    """Refuse every claim and record its path."""

    requested: queues.Queue[str] = queues.Queue()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/claim"):
            self.requested.put(self.path)
        self.send_response(409)
        self.end_headers()

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def api(certificates: Certificates) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.certificate, certificates.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"https://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def worker(
    redis: TlsRedis, berlin: Redis, api: str, certificates: Certificates, tmp_path: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A worker, started as on a lab's host."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "WQLAB_SERVER_URL": api, "WQLAB_WORKER_TOKEN": "wql_x",
        "WQLAB_BROKER_URL": redis.url(lab_user("berlin"), PASSWORD), "WQLAB_LAB": "berlin",
        "WQLAB_CA_FILE": str(certificates.ca), "WQLAB_CACHE": str(tmp_path), "WQLAB_STATE": str(tmp_path),
    }  # fmt: skip
    command = ["celery", "-A", "wqlab_worker.tasks", "worker", "-Q", lab_queue("berlin"), "-c", "2", "-l", "INFO"]
    quiet = ["--without-mingle", "--without-gossip", "--without-heartbeat"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, *quiet], env=environment, cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT
        )
    yield process
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.wait()
    text = (tmp_path / "log").read_text()
    print(text)
    assert "NoPermission" not in text


def nudge(redis: TlsRedis, lab: str, run_id: int) -> None:
    """Send a message like the server."""
    app = Celery("server", broker=redis.admin_url, set_as_current=False)
    app.conf.update(CELERY_CONFIG)
    app.send_task(JOB, args=(run_id,), queue=lab_queue(lab), ignore_result=True)
    app.close()


def test_worker_runs_with_its_granted_permissions(redis: TlsRedis, worker: subprocess.Popen[bytes]) -> None:
    for run_id in (1, 2, 3):
        nudge(redis, "berlin", run_id)
        assert Api.requested.get() == f"/api/worker/v1/jobs/{run_id}/claim"
    nudge(redis, "boston", 4)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert redis.admin().llen("lab.boston") == 1
    assert redis.admin().execute_command("ACL", "LOG") == [], "no command was refused"
    assert Api.requested.empty()


def test_worker_reconnects_after_the_broker_disconnects_it(redis: TlsRedis, worker: subprocess.Popen[bytes]) -> None:
    nudge(redis, "berlin", 5)
    assert Api.requested.get().endswith("/5/claim")
    assert redis.admin().execute_command("CLIENT", "KILL", "USER", lab_user("berlin")) >= 1
    nudge(redis, "berlin", 6)
    assert Api.requested.get().endswith("/6/claim")
    assert worker.poll() is None
