"""Equal content is built once with two build workers and many submissions; uses a real Redis, API and Celery."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import uvicorn
from sqlalchemy import Engine, select
from sqlalchemy.exc import IntegrityError

from wqlab_contracts.enums import JobKind, JobState, Outcome
from wqlab_server.models import Apply, Build, Job, SubmissionBuild
from wqlab_server.pipeline.advance import advance
from wqlab_server.settings import Settings
from wqlab_server.storage.celery_client import Sender, celery_app
from wqlab_server.storage.db import make_factory

from ..support.lab import SERIES, LabUnderTest

pytestmark = pytest.mark.integration

SUBMISSIONS = 12


@pytest.fixture
def settings(settings: Settings, redis: str) -> Settings:
    return settings.model_copy(update={"broker_url": redis, "nudge_first_s": 0.5})


@pytest.fixture
def url(lab: LabUnderTest, settings: Settings, engine: Engine) -> Iterator[str]:
    """The application on a real port; its messages are sent to Redis."""
    lab.sessions = make_factory(engine, Sender(celery_app(settings.broker_url)))
    lab.app.state.sessions = lab.sessions
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(lab.app, log_level="warning", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture
def workers(lab: LabUnderTest, settings: Settings, url: str, tmp_path: Path) -> Iterator[Path]:
    """Start two Celery workers with two processes each; the value is the file where they record their builds."""
    built = tmp_path / "built"
    built.touch()
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "URL": url, "TOKEN": lab.worker_token,
        "BROKER": settings.broker_url, "BUILT": str(built), "PYTHONPATH": str(Path(__file__).parents[1] / "support"),
    }  # fmt: skip
    processes = []
    for name in ("one", "two"):
        with (tmp_path / f"{name}.log").open("wb") as log:
            processes.append(
                subprocess.Popen(
                    [
                        sys.executable, "-m", "celery", "-A", "buildworker", "worker", "-Q", "apply,build",
                        "-n", f"{name}@test", "-c", "2", "-l", "INFO", "--without-mingle", "--without-gossip",
                    ],
                    env={**environment, "NAME": name},
                    cwd=tmp_path,
                    stdout=log,
                    stderr=log,
                )
            )  # fmt: skip
    while not all("ready." in (tmp_path / f"{name}.log").read_text() for name in ("one", "two")):
        time.sleep(0.1)
    yield built
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        process.wait()
    for name in ("one", "two"):
        print((tmp_path / f"{name}.log").read_text())


def test_two_build_workers_build_equal_content_once(lab: LabUnderTest, workers: Path) -> None:
    with ThreadPoolExecutor(SUBMISSIONS) as at_once:
        ids = list(at_once.map(lambda _: lab.submit("locks@single"), range(SUBMISSIONS)))

    def advance_all() -> bool:
        """Advance all submissions concurrently and tick; return True when all builds are finished."""
        with ThreadPoolExecutor(SUBMISSIONS) as at_once:
            list(at_once.map(lambda id_: advance(lab.sessions, lab.settings, id_), ids))
        lab.tick()
        with lab.transaction() as session:
            parts = session.scalars(select(SubmissionBuild.submission_id)).all()
            waiting = session.scalars(select(Build.id).where(Build.state != JobState.FINISHED)).all()
        return len(parts) == 2 * SUBMISSIONS and not waiting

    while not advance_all():
        time.sleep(0.2)

    with lab.transaction() as session:
        builds = session.scalars(select(Build)).all()
        served = Counter(session.scalars(select(SubmissionBuild.build_id)))
        applies = session.scalars(select(Apply.holder)).all()
    assert len(builds) == 2, "baseline and candidate"
    assert [(build.attempts, build.outcome) for build in builds] == [(1, Outcome.PASSED)] * 2
    assert sorted(served.values()) == [SUBMISSIONS] * 2
    done = [line.split() for line in workers.read_text().splitlines()]
    assert Counter(key for _, key in done) == {build.key: 1 for build in builds}, "each content was built once"
    assert {holder.partition("/")[0] for holder in applies if holder} == {"one", "two"}, "both workers took part"


def test_database_refuses_a_second_live_build_of_a_key(lab: LabUnderTest) -> None:
    lab.submit("locks@single", series=SERIES)
    lab.work(JobKind.APPLY, "wqlab.advance")
    columns = ", ".join(column.name for column in Job.__table__.columns if column.name != "id")
    copy = "INSERT INTO jobs ({0}, id) SELECT {1}, {2} FROM jobs WHERE kind = 'build' ORDER BY id LIMIT 1"
    with pytest.raises(IntegrityError, match="uq_jobs_key_of_build"):
        lab.sql(copy.format(columns, columns, 98))
    lab.sql("UPDATE jobs SET outcome = 'failed', state = 'finished' WHERE kind = 'build'")
    lab.sql(copy.format(columns, columns.replace("outcome", "NULL"), 99))
