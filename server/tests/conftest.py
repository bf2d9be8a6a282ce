"""A private PostgreSQL (and Redis) for the tests that need one, started once per session on unix sockets.

PostgreSQL refuses to run as root, so root drops to the lab's user or, without one, to `nobody`. The
migrations make one database, and every test finds it as they left it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher
from sqlalchemy import Engine, create_engine, text

from wqlab_server import migrations
from wqlab_server.accounts import passwords
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, make_engine, make_factory

from .support.datafolder import write_data_folder
from .support.lab import LabUnderTest

POSTGRES_BIN = Path("/usr/lib/postgresql/15/bin")


def _unprivileged() -> pwd.struct_passwd | None:
    """Whom root becomes; None for anyone else."""
    if os.geteuid() != 0:
        return None
    for name in ("wqlab", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("no unprivileged user to run PostgreSQL as")


@pytest.fixture(scope="session", autouse=True)
def real_passwords() -> Iterator[PasswordHash]:
    """How the server hashes them. The tests do with the least of work: a fifth of a second each otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        real = passwords._argon2
        patch.setattr(passwords, "_argon2", PasswordHash((Argon2Hasher(time_cost=1, memory_cost=8, parallelism=1),)))
        yield real


class Stores:
    """The servers' folder and how to run programs there."""

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
    """SQLAlchemy URL, without a database name, of a server that nobody else uses: `{url}NAME?host=...` by `.format`."""
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
    """Celery broker URL of a Redis that nobody else uses. redis-tools has the server under another name."""
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
    """A database that the migrations made. One engine for all tests: SQLAlchemy keeps with it what it has compiled."""
    admin = create_engine(postgres.format("postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text("CREATE DATABASE wqlab_test"))
    admin.dispose()
    engine = make_engine(postgres.format("wqlab_test"))
    migrations.upgrade(engine)
    yield engine
    engine.dispose()


# Deleting a test's few rows costs a twentieth of copying and dropping a database.
AS_MIGRATED = """
DO $$
DECLARE name text;
BEGIN
    PERFORM pg_terminate_backend(pid, 10000) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend';
    SET LOCAL session_replication_role = replica;  -- no foreign keys: any order will do
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version' LOOP
        EXECUTE format('DELETE FROM %I', name);
    END LOOP;
    PERFORM setval(format('%I', sequencename)::regclass, start_value, false) FROM pg_sequences
      WHERE schemaname = 'public';
END $$
"""


@pytest.fixture
def engine(migrated: Engine) -> Iterator[Engine]:
    """A migrated database without rows, and nobody else in it."""
    with migrated.begin() as connection:
        connection.execute(text(AS_MIGRATED))
    yield migrated
    migrated.dispose()


@pytest.fixture
def database_url(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=False)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A data folder with the small types and plans that the tests speak of."""
    folder = tmp_path / "data"
    write_data_folder(folder)
    return folder


@pytest.fixture
def settings(database_url: str, data_dir: Path, tmp_path: Path) -> Settings:
    return Settings(
        database_url=database_url,
        broker_url="memory://",
        data_dir=data_dir,
        artifact_dir=tmp_path / "artifacts",
        public_url="http://lab.test",
    )


@pytest.fixture
def sessions(engine: Engine) -> SessionFactory:
    return make_factory(engine)


@pytest.fixture
def lab(settings: Settings, engine: Engine) -> Iterator[LabUnderTest]:
    """The real application on a real database, with messages kept in a list instead of a broker."""
    # One event loop for all requests; without it the client makes one, and its threads, for each.
    with start_blocking_portal() as portal:
        lab = LabUnderTest(settings, engine)
        lab.client.portal = portal
        yield lab
