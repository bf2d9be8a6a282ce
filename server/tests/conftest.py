"""A private PostgreSQL and Redis for the tests that need them, started once per session on unix sockets.

PostgreSQL refuses to run as root, so root drops to the lab's user or, without one, to `nobody`. The migrations run once
for one database; before each test all its rows are deleted.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher
from sqlalchemy import Engine, create_engine, text

from wqlab_contracts.celery_names import ADVANCE
from wqlab_contracts.enums import JobKind
from wqlab_server import migrations
from wqlab_server.accounts import passwords
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, make_engine, make_factory

from .support.datafolder import write_data_folder
from .support.lab import LabUnderTest, RunSession
from .support.live_server import app, client, live, scene, scene_data_dir, secrets

__all__ = ["app", "client", "live", "scene", "scene_data_dir", "secrets"]

# Tests of stored reports use the examples of the package that writes them.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "report/tests"))

POSTGRES_BIN = Path("/usr/lib/postgresql/15/bin")


def _unprivileged() -> pwd.struct_passwd | None:
    """Return the user that root switches to; None if not running as root."""
    if os.geteuid() != 0:
        return None
    for name in ("wqlab", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("no unprivileged user to run PostgreSQL as")


REAL_PASSWORDS = passwords._argon2
"""Read when tests are collected: tests of pages use the next fixture too, and a process may run them first."""


@pytest.fixture(scope="session", autouse=True)
def real_passwords() -> Iterator[PasswordHash]:
    """Use a minimal Argon2 configuration in tests (otherwise 0.2 s per hash); the fixture's value is the real one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_argon2", PasswordHash((Argon2Hasher(time_cost=1, memory_cost=8, parallelism=1),)))
        yield REAL_PASSWORDS


class Stores:
    """The folder of the database and broker servers, and a method to run programs as their user."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="wqlab-test-"))
        self.user = _unprivileged()
        if self.user is not None:
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)

    def run(self, *command: object) -> None:
        done = subprocess.run(
            [str(word) for word in command],
            check=False,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            user=self.user.pw_uid if self.user else None,
            group=self.user.pw_gid if self.user else None,
            extra_groups=[] if self.user else None,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(self.folder)},
        )
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed:\n{done.stdout}")


@pytest.fixture(scope="session")
def stores() -> Iterator[Stores]:
    stores = Stores()
    yield stores
    shutil.rmtree(stores.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres(stores: Stores) -> Iterator[str]:
    """SQLAlchemy URL of a private server; put the database name in with `.format(name)`."""
    data, log = stores.folder / "postgres", stores.folder / "postgres.log"
    stores.run(
        POSTGRES_BIN / "initdb", "-D", data, "-U", "wqlab", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"
    )
    options = f"-k {stores.folder} -h '' -c fsync=off -c synchronous_commit=off -c full_page_writes=off"
    stores.run(POSTGRES_BIN / "pg_ctl", "-D", data, "-l", log, "-o", options, "-w", "start")
    yield f"postgresql+psycopg://wqlab@/{{}}?host={stores.folder}"
    stores.run(POSTGRES_BIN / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")


@pytest.fixture(scope="session")
def redis(stores: Stores) -> Iterator[str]:
    """Celery broker URL of a private Redis. The package redis-tools contains the server under another name."""
    binary, socket = stores.folder / "redis-server", stores.folder / "redis.sock"
    binary.symlink_to("/usr/bin/redis-check-rdb")
    pidfile = stores.folder / "redis.pid"
    stores.run(
        binary, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--daemonize", "yes",
        "--pidfile", pidfile, "--dir", stores.folder,
    )  # fmt: skip
    yield f"redis+socket://{socket}"
    os.kill(int(pidfile.read_text()), 15)


@pytest.fixture(scope="session")
def migrated(postgres: str) -> Iterator[Engine]:
    """A migrated database. All tests share one engine, which caches SQLAlchemy's compiled queries."""
    admin = create_engine(postgres.format("postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text("CREATE DATABASE wqlab_test"))
    admin.dispose()
    engine = make_engine(postgres.format("wqlab_test"))
    engine.pool._pre_ping = False  # a quarter of the round trips of tests, whose server does not restart
    migrations.upgrade(engine)
    yield engine
    engine.dispose()


# Deleting a test's few rows takes a twentieth of the time of copying and dropping a database.
DELETE_ALL_ROWS = """
DO $$
DECLARE name text;
BEGIN
    PERFORM pg_terminate_backend(pid, 10000) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend';
    SET LOCAL session_replication_role = replica;  -- disables foreign keys, so any order works
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version' LOOP
        EXECUTE format('DELETE FROM %I', name);
    END LOOP;
    PERFORM setval(format('%I', sequencename)::regclass, start_value, false) FROM pg_sequences
      WHERE schemaname = 'public';
END $$
"""


@pytest.fixture
def engine(migrated: Engine) -> Iterator[Engine]:
    """A migrated database without rows or other connections."""
    with migrated.begin() as connection:
        connection.execute(text(DELETE_ALL_ROWS))
    yield migrated
    migrated.dispose()


@pytest.fixture
def database_url(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=False)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A data folder with the small device types and plans that the tests use."""
    folder = tmp_path / "data"
    write_data_folder(folder)
    return folder


@pytest.fixture(scope="session")
def signing_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lab's key, made as `wqlab-lab up` makes it."""
    key = tmp_path_factory.mktemp("keys") / "signing_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "wqlab", "-f", key], check=True)
    return key


@pytest.fixture
def settings(database_url: str, data_dir: Path, tmp_path: Path, signing_key: Path) -> Settings:
    return Settings(
        database_url=database_url,
        broker_url="memory://",
        data_dir=data_dir,
        artifact_dir=tmp_path / "artifacts",
        public_url="http://lab.test",
        signing_key_file=signing_key,
        # A busy machine may take minutes for a run of the scripted worker. What is to expire is made to.
        claim_s=1800,
        lease_s=1800,
        offer_s=1800,
    )


@pytest.fixture
def sessions(engine: Engine) -> SessionFactory:
    return make_factory(engine)


@pytest.fixture
def lab(settings: Settings, engine: Engine) -> Iterator[LabUnderTest]:
    """The real application on a real database; messages are collected in a list instead of sent to a broker."""
    # One event loop for all requests; otherwise the client creates one, with its threads, for each request.
    with start_blocking_portal() as portal:
        lab = LabUnderTest(settings, engine)
        lab.client.portal = portal
        yield lab


@pytest.fixture
def good_devices(lab: LabUnderTest) -> None:
    """Start with good devices: a check builds the golden kernel and boots it, which takes as long as a submission."""
    lab.mark_all_good()


@pytest.fixture
def run(lab: LabUnderTest) -> RunSession:
    """A run of `locks@single`, claimed by the scripted worker."""
    lab.mark_all_good()
    submission_id = lab.submit("locks@single")
    lab.work(JobKind.APPLY, JobKind.BUILD, ADVANCE)
    claimed = lab.worker.claim_run(lab.runs(submission_id)[0].id)
    assert claimed is not None
    return claimed


@pytest.fixture
def listening_port() -> Iterator[int]:
    """A port that listens on 127.0.0.1 only."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def unused_port() -> int:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port
