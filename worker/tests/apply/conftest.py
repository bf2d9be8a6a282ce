"""Git servers on loopback, and the workspace of a lab that knows their CA."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from wqlab_worker.workspace import Workspace

from .gitservers import Authority, HttpsServer, git_daemon, make_authority

if TYPE_CHECKING:
    from conftest import Repository


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("pki") / "ca")


@pytest.fixture
def certificate(authority: Authority) -> Path:
    return authority.certificate("DNS:localhost", "DNS:git.lab.example", "IP:127.0.0.1")


@pytest.fixture
def server(repository: Repository, certificate: Path) -> Iterator[HttpsServer]:
    with HttpsServer(repository.path.parent, certificate).running() as server:
        yield server


@pytest.fixture
def daemon(repository: Repository) -> Iterator[int]:
    with git_daemon(repository.path.parent) as port:
        yield port


@pytest.fixture
def lab(tmp_path: Path, authority: Authority) -> Workspace:
    """The workspace of a lab whose operator has set the CA but lists no private host."""
    (tmp_path / "cache").mkdir()
    environment = {"WQLAB_CACHE": str(tmp_path / "cache"), "SSL_CERT_FILE": str(authority.file)}
    return Workspace.from_environment(environment)


@pytest.fixture
def series_of_two(repository: Repository) -> str:
    """The mbox of branch `topic`: two patches with a cover letter. Branch master does not change."""
    repository.git("switch", "--quiet", "-c", "topic")
    repository.edit("kernel/workqueue.c", "512", "1024")
    repository.commit("workqueue: raise max_active\n\nSigned-off-by: Ada Tester <ada@example.org>")
    repository.edit("kernel/workqueue.c", "return 2;", "return 3; // more")
    repository.commit("workqueue: idle more")
    text = repository.mbox("--cover-letter", "--base=master", "-v3", "master..topic")
    repository.git("switch", "--quiet", "master")
    return text.replace("*** SUBJECT HERE ***", "workqueue: more").replace(
        "*** BLURB HERE ***", "Why.\n\nchange-id: 20260102-more-0123456789ab"
    )
