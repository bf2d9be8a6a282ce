"""A Redis server with TLS and a password, as used by remote labs, and its certificates."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

ADMIN_PASSWORD = "the-servers-own"


@dataclass(frozen=True)
class Certificates:
    """Certificates of a private CA for 127.0.0.1."""

    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def certificate(self) -> Path:
        return self.folder / "server.crt"

    @property
    def key(self) -> Path:
        return self.folder / "server.key"


@dataclass(frozen=True)
class TlsRedis:
    port: int
    socket: Path

    def admin(self) -> Redis:
        return Redis(unix_socket_path=str(self.socket), password=ADMIN_PASSWORD)

    @property
    def admin_url(self) -> str:
        return f"redis+socket://:{ADMIN_PASSWORD}@{self.socket}"

    def url(self, user: str, password: str) -> str:
        return f"rediss://{user}:{password}@127.0.0.1:{self.port}/0"


@pytest.fixture(scope="module")
def certificates() -> Iterator[Certificates]:
    certificates = Certificates(Path(tempfile.mkdtemp(prefix="wqlab-ca-")))
    subprocess.run([Path(__file__).parents[3] / "lab/certificates.sh", "127.0.0.1", certificates.folder], check=True)
    yield certificates
    shutil.rmtree(certificates.folder)


@pytest.fixture(scope="module")
def redis(certificates: Certificates) -> Iterator[TlsRedis]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    folder = Path(tempfile.mkdtemp(prefix="wqlab-redis-"))
    (folder / "redis-server").symlink_to("/usr/bin/redis-check-rdb")
    found = TlsRedis(port, folder / "redis.sock")
    process = subprocess.Popen(
        [
            str(folder / "redis-server"), "--port", "0", "--tls-port", str(port), "--bind", "127.0.0.1",
            "--unixsocket", str(found.socket), "--requirepass", ADMIN_PASSWORD, "--save", "", "--dir", str(folder),
            "--tls-cert-file", str(certificates.certificate), "--tls-key-file", str(certificates.key),
            "--tls-ca-cert-file", str(certificates.ca), "--tls-auth-clients", "no",
        ],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    while True:
        try:
            found.admin().ping()
            break
        except (RedisConnectionError, FileNotFoundError):
            time.sleep(0.05)
    yield found
    process.terminate()
    process.wait()
    shutil.rmtree(folder)
