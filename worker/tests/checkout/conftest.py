"""Git servers on loopback for what is fetched from them, and the workspace of a lab that knows their CA."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from wqlab_worker.workspace import Workspace

from .gitservers import Authority, HttpsServer, git_daemon, make_authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("pki") / "ca")


@pytest.fixture
def certificate(authority: Authority) -> Path:
    return authority.certificate("DNS:localhost", "DNS:git.lab.example", "IP:127.0.0.1")


@pytest.fixture
def server(repository, certificate: Path) -> Iterator[HttpsServer]:
    with HttpsServer(repository.path.parent, certificate).running() as server:
        yield server


@pytest.fixture
def daemon(repository) -> Iterator[int]:
    with git_daemon(repository.path.parent) as port:
        yield port


@pytest.fixture
def lab(tmp_path: Path, authority: Authority) -> Workspace:
    """As an operator sets it up who knows the CA and lists no host."""
    (tmp_path / "cache").mkdir()
    environment = {"WQLAB_CACHE": str(tmp_path / "cache"), "SSL_CERT_FILE": str(authority.file)}
    return Workspace.from_environment(environment)
