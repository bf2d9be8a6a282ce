"""Each program and step of docker-compose.yml starts with only what its image has: no file and no import is missing.

The programs run until they ask for another service, in seconds. test_containers.py runs them in an engine, by night.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wqlab_lab import documentation, web

from . import images
from .composefile import load

pytestmark = pytest.mark.integration

SERVICES: dict[str, dict[str, Any]] = load({"WQLAB_SECRETS": "/run/secrets"})["services"]
BROKER = "Error 2 connecting to /run/redis/redis.sock"
STARTED = {
    "api": "Uvicorn running on",
    "server": BROKER,
    "outbox": BROKER,
    "beat": BROKER,
    "build": BROKER,
    "apply": BROKER,
    "lookups": BROKER,
    "lists": BROKER,
    "devices": BROKER,
    "lava-devices": BROKER,
    "bench": "no SSH public key",
    "coordinator": "Coordinator ready",
    "exporter": "no bench is running",
}
"""Service -> text that it prints after all imports, when it needs another service."""
FINISHED = ("database", "schema", "prepare")
"""Services that end with status 0."""
WITHOUT_PYTHON = {"postgres", "redis", "lava"}
MISSING = re.compile(
    r"ModuleNotFoundError|ImportError|No module named|FileNotFoundError.*/opt|command not found|: not found"
)


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {image: tmp_path_factory.mktemp(image) for image in images.PACKAGES}
    for image, folder in folders.items():
        images.make_environment(image, folder)
    return folders


class Container:
    """Starts programs of a service in a view like its container's; the volumes are folders in `folder`."""

    def __init__(self, environments: dict[str, Path], folder: Path) -> None:
        self._environments = environments
        cache = Path(os.environ["WQLAB_CACHE"])
        self._mounts = {
            folder / "state": "/var/lib/wqlab",
            cache: "/var/cache/wqlab",
            folder / "postgres": "/run/postgres",
            folder / "redis": "/run/redis",
            folder / "secrets": "/run/secrets",
            web.build(cache): "/opt/pages",
            documentation.build(cache): "/opt/docs",
        }
        for name in (
            "postgres",
            "redis",
            "secrets",
            *(f"state/{each}" for each in ("labgrid", "run", "keys", "artifacts")),
        ):
            (folder / name).mkdir(parents=True)
        for name in ("wqlab_worker_token", "wqlab_lava_token"):
            (folder / "secrets" / name).write_text("wql_" + "0" * 64)

    def start(self, name: str, words: list[str] | None = None) -> subprocess.Popen[str]:
        """Start the command of a service, or another one in its container; output and errors are one stream."""
        service = SERVICES[name]
        image = service["image"].removeprefix("wqlab-")
        command = images.command(
            image,
            self._environments[image],
            words or service["command"],
            service.get("environment", {}),
            self._mounts,
            network=name == "prepare",  # it looks packages up
        )
        if "working_dir" in service:
            command[command.index("--chdir") + 1] = service["working_dir"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.fixture
def container(environments: dict[str, Path], tmp_path: Path) -> Container:
    return Container(environments, tmp_path)


@pytest.fixture
def postgres(container: Container) -> Iterator[None]:
    """Run the container's PostgreSQL, in the cluster that its step `database` has made."""
    assert container.start("database").wait() == 0
    process = container.start("postgres")
    while container.start("postgres", ["pg_isready", "-q", "-h", "/run/postgres"]).wait():
        assert process.poll() is None, process.stdout and process.stdout.read()
        time.sleep(0.1)  # as pg_isready's manual advises
    yield
    process.kill()  # whoever starts the tests in the background may have SIGINT ignored, and bwrap inherits that
    process.wait()


def test_each_service_is_tried() -> None:
    assert set(SERVICES) == {*STARTED, *FINISHED, *WITHOUT_PYTHON}


@pytest.mark.parametrize("name", STARTED)
def test_program_starts_with_what_its_image_has(container: Container, name: str) -> None:
    seen = []
    with container.start(name) as process:
        assert process.stdout is not None
        for line in process.stdout:
            seen.append(line)
            if MISSING.search(line) or re.search(STARTED[name], line):
                break
        process.kill()
    assert re.search(STARTED[name], seen[-1]), "".join(seen)


@pytest.mark.parametrize("name", ["database", "prepare"])
def test_step_succeeds_with_what_its_image_has(container: Container, name: str) -> None:
    process = container.start(name)
    output, _ = process.communicate()
    assert process.returncode == 0, output


def test_schema_step_succeeds_with_what_its_image_has(container: Container, postgres: None) -> None:
    process = container.start("schema")
    output, _ = process.communicate()
    assert process.returncode == 0, output


HEALTH_CHECKS = {
    tuple(each["healthcheck"]["test"][:3]): name
    for name, each in SERVICES.items()
    if name not in WITHOUT_PYTHON and "healthcheck" in each
}
"""Program of a health check -> one of the services that have it."""


@pytest.mark.parametrize("name", HEALTH_CHECKS.values())
def test_health_check_finds_its_programs(container: Container, name: str) -> None:
    """Nothing else runs here, so it fails, but not for want of a program."""
    kind, *words = SERVICES[name]["healthcheck"]["test"]
    process = container.start(name, words if kind == "CMD" else ["sh", "-c", *words])
    output, _ = process.communicate()
    assert process.returncode
    assert not MISSING.search(output), output
