"""Build the images, run the services of docker-compose.yml, and get a report."""

from __future__ import annotations

import json
import os
import pwd
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from .composefile import ROOT, load
from .containers import Containers, compiled_filter, copy_of_secrets_script

pytestmark = [pytest.mark.nightly, pytest.mark.images]

URL = "http://127.0.0.1:8750"
TOLD_S = 60.0
USER = "wqlab"
"""User id that owns the cache; the containers run with the same one."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Containers]:
    uid, cache = pwd.getpwnam(USER).pw_uid, Path(os.environ["WQLAB_CACHE"])
    store = cache / "containers"
    with tempfile.TemporaryDirectory(prefix="wqlab-compose-") as name:
        folder = Path(name)
        # Sockets and volumes are in this folder, and the containers run as another user.
        folder.chmod(0o711)
        script = copy_of_secrets_script(folder)
        subprocess.run(["sh", str(script)], check=True, capture_output=True)
        variables = {"WQLAB_UID": str(uid), "WQLAB_SECRETS": str(script.parent / "secrets")}
        containers = Containers(load(variables), store, folder, uid, cache)
        assert sorted(containers.build()) == ["wqlab-lava", "wqlab-server", "wqlab-worker"]
        try:
            yield containers
        finally:
            containers.stop()


@pytest.fixture(scope="module")
def up(lab: Containers) -> Containers:
    for name, service in lab.services.items():
        if "profiles" not in service:
            lab.start(name)
    return lab


@pytest.fixture(scope="module")
def token(up: Containers) -> str:
    """Create the administrator's token with the commands of docs/deploy.md."""
    up.await_health("api")
    password = up.execute("api", ["wqlab-server", "user", "create", "--name", "admin", "--role", "admin"])
    assert re.fullmatch(r"\S{12,}\n", password)
    return up.execute("api", ["wqlab-server", "token", "create", "--name", "admin", "--scope", "admin"]).strip()


def test_every_service_becomes_healthy(up: Containers) -> None:
    for name, service in up.services.items():
        if service["restart"] != "no" and "profiles" not in service:
            up.await_health(name)


def test_api_is_ready_and_serves_the_pages(up: Containers) -> None:
    up.await_health("api")
    assert httpx.get(f"{URL}/readyz").json()["ready"] is True
    page = httpx.get(URL, follow_redirects=True)
    assert page.headers["content-type"].startswith("text/html")
    [script] = re.findall(r'<script[^>]+src="([^"]+)"', page.text)[:1]
    assert httpx.get(f"{URL}{script}").headers["content-type"].startswith("text/javascript")
    assert httpx.get(f"{URL}/api/v1/submissions").status_code == 401, "reading needs a sign-in"


def test_series_gets_a_report(up: Containers, token: str) -> None:
    """The series uses every service: applied and built in the sandbox, booted on a device, compared."""
    environment = {**os.environ, "WQLAB_URL": URL, "WQLAB_TOKEN": token}

    def wqlab(*arguments: str) -> str:
        result = subprocess.run(["wqlab", *arguments], env=environment, text=True, capture_output=True, check=False)
        logs = "\n".join(up.log_tail(name) for name in ("build", "devices")) if result.returncode else ""
        assert result.returncode == 0, f"{result.stdout}{result.stderr}\n{logs}"
        return result.stdout

    series = str(ROOT / "tests/series/noop.mbox")
    answer = json.loads(wqlab("submit", "--json", "--mbox", series, "--target", "xfs-fsync@tiny"))
    wqlab("watch", str(answer["id"]))
    report = wqlab("report", str(answer["id"]))
    print(report)
    assert "xfs-fsync on tiny (emulated)" in report
    assert "locks_per_flush" in report
    devices = httpx.get(f"{URL}/api/v1/devices", headers={"Authorization": f"Bearer {token}"}).json()
    health = {device["name"]: device["health"] for device in devices if device["device_type"] == "tiny"}
    assert "good" in health.values(), f"a device is checked before its first run: {health}"


@pytest.mark.parametrize("loosened", [True, False])
def test_builds_need_the_added_seccomp_rule(loosened: bool, tmp_path: Path) -> None:
    profile = json.loads((ROOT / "deploy/seccomp.json").read_text())
    if not loosened:
        profile["syscalls"].pop()
    file = tmp_path / "filter"
    file.write_bytes(compiled_filter(json.dumps(profile).encode()))
    outer = ["bwrap", "--dev-bind", "/", "/", "--seccomp", "0", "--"]
    user = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--bounding-set=-all",
        "--inh-caps=-all",
        "--",
    ]
    run = "import io; from wqlab_worker.sandbox import Sandbox; print(Sandbox().run(['true'], log=io.BytesIO()))"
    with file.open("rb") as source:
        result = subprocess.run(
            [*outer, *user, sys.executable, "-c", run], stdin=source, capture_output=True, text=True, check=False
        )
    assert ("exit_code=0" in result.stdout) is loosened, result.stderr
    if not loosened:
        assert "the kernel cannot bound the sandbox's files: unshare: unshare failed" in result.stderr


def test_lava_accepts_its_token_and_has_its_device(up: Containers) -> None:
    up.start("lava")
    up.await_health("lava")
    secret = up.secret("wqlab_lava_token")
    url = "http://127.0.0.1:8760/api/v0.2/devices/"
    devices = httpx.get(url, headers={"Authorization": f"Token {secret}"}).json()["results"]
    assert [(device["hostname"], device["health"]) for device in devices] == [("lava-qemu-1", "Good")]
    assert httpx.get(url, headers={"Authorization": "Token of-nobody"}).status_code in {401, 403}


def test_lava_worker_reports_its_device(up: Containers, token: str) -> None:
    up.start("lava-devices")
    up.await_health("lava-devices")
    deadline = time.monotonic() + TOLD_S
    while True:
        labs = httpx.get(f"{URL}/api/v1/labs", headers={"Authorization": f"Bearer {token}"}).json()
        pools = {lab["name"]: lab["pool"] for lab in labs if lab["pool"]}
        if pools:
            break
        assert time.monotonic() < deadline, f"{labs}\n{up.log_tail('lava-devices')}"
        time.sleep(1)
    assert list(pools["lava"]["devices"]) == ["lava-qemu-1"], pools
    assert pools["lava"]["problem"] == ""


def test_services_write_only_to_their_volumes(up: Containers, token: str) -> None:
    """No service writes where `read_only: true` forbids it. Must run last, after the other tests used the services."""
    own = [name for name, service in up.services.items() if service.get("read_only")]
    assert {name: written for name in own if (written := up.written(name))} == {}
