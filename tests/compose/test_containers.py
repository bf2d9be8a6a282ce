"""README's container commands under a real Docker Engine: start, report, kills, restarts, backup and restore, LAVA.

The tests share one lab and run in this order.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from wqlab_bench.ports import free_port

from .composefile import ROOT
from .engine import Engine, clone, unavailable_reason

pytestmark = [pytest.mark.nightly, pytest.mark.images, pytest.mark.timeout(3 * 3600)]

CHECKOUT = "wqlab"
"""Name of the folder with the clone, in the engine's folder."""
ROUND_S = 0.5
"""Pause between two looks at the containers, which have no event for "all are healthy"."""
START = re.findall(r"`(deploy/secrets\.sh && docker compose up[^`]*)`", (ROOT / "README.md").read_text())[0]
DEPLOY = (ROOT / "docs/deploy.md").read_text()


class ContainerLab:
    """The lab of docker-compose.yml in a clone of the checkout."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.listen = f"127.0.0.1:{free_port(set())}"
        self.url = f"http://{self.listen}"
        self.token = ""

    def shell(self, text: str) -> str:
        """Run a shell command in the clone. Raises EngineError if it fails."""
        return self.engine.run("sh", "-c", text, folder=CHECKOUT)

    def compose(self, *arguments: str) -> str:
        return self.engine.run("docker", "compose", *arguments, folder=CHECKOUT)

    def set_variables(self, variables: dict[str, str]) -> None:
        """Add variables to the clone's .env."""
        with (self.engine.folder / CHECKOUT / ".env").open("a") as file:
            file.writelines(f"{name}={value}\n" for name, value in variables.items())

    def containers(self) -> dict[str, dict[str, Any]]:
        """Return service -> what `docker inspect` says of its container, of services that run for ever."""
        names = self.compose("ps", "--all", "--quiet").split()
        found = json.loads(self.engine.run("docker", "inspect", *names))
        return {
            each["Config"]["Labels"]["com.docker.compose.service"]: each
            for each in found
            if each["HostConfig"]["RestartPolicy"]["Name"] != "no"
        }

    def kill(self, services: Collection[str]) -> None:
        """Kill the first process of each service's container at once, and wait until the engine has restarted them."""
        before = self.containers()
        processes = [str(before[name]["State"]["Pid"]) for name in services]
        self.engine.run("sh", "-c", 'kill -KILL "$@"', "kill", *processes)
        while any(
            self.containers()[name]["State"]["StartedAt"] == before[name]["State"]["StartedAt"] for name in services
        ):
            time.sleep(ROUND_S)

    def await_health(self) -> None:
        """Wait until every container is healthy, and print each change; pytest's time limit ends a wait for ever."""
        printed: dict[str, str] = {}
        while unhealthy := {
            name: each["State"].get("Health", {}).get("Status", each["State"]["Status"])
            for name, each in self.containers().items()
            if each["State"].get("Health", {}).get("Status") != "healthy"
        }:
            if unhealthy != printed:
                print("not healthy:", unhealthy)
            printed = unhealthy
            time.sleep(ROUND_S)

    def wqlab(self, *arguments: str) -> str:
        environment = {**os.environ, "WQLAB_URL": self.url, "WQLAB_TOKEN": self.token}
        result = subprocess.run(["wqlab", *arguments], env=environment, text=True, capture_output=True, check=False)
        logs = self.compose("logs", "--tail=40", "build", "devices") if result.returncode else ""
        assert result.returncode == 0, f"{result.stdout}{result.stderr}\n{logs}"
        return result.stdout

    def submit(self, device_type: str = "tiny") -> int:
        series, target = str(ROOT / "tests/series/noop.mbox"), f"xfs-fsync@{device_type}"
        return int(
            json.loads(self.wqlab("submit", "--json", "--tree", "linux-6.12", "--mbox", series, "--target", target))[
                "id"
            ]
        )

    def verdicts(self, submission: int) -> dict[tuple[str, str], str]:
        """Wait for a submission; return scenario and metric -> verdict of what is judged on an emulated device."""
        self.wqlab("watch", str(submission))
        [target] = json.loads(self.wqlab("report", str(submission), "--format", "json"))["targets"]
        judged = [each for each in target["comparisons"] if each["verdict"]]
        return {(each["scenario"], each["metric"]): each["verdict"] for each in judged}


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    if reason := unavailable_reason():
        pytest.skip(reason)
    engine = Engine(Path(os.environ["WQLAB_CACHE"]) / "engine")
    engine.start()
    try:
        yield engine
    finally:
        engine.stop()


@pytest.fixture(scope="module")
def lab(engine: Engine) -> Iterator[ContainerLab]:
    """Start the lab in a new clone with README's command. The volume with the kernels is kept for the next test run."""
    clone(engine.folder / CHECKOUT)
    lab = ContainerLab(engine)
    lab.set_variables({"WQLAB_LISTEN": lab.listen, **engine.provide_base(ROOT / "deploy/Dockerfile")})
    lab.shell("deploy/secrets.sh")
    remove_data(lab)
    if old := engine.run("docker", "images", "--quiet", "--filter", "reference=wqlab-*").split():
        engine.run("docker", "image", "rm", "--force", *old)
    engine.run("docker", "image", "prune", "--force")
    lab.shell(START)
    try:
        yield lab
    finally:
        remove_data(lab)


def remove_data(lab: ContainerLab) -> None:
    lab.compose("--profile", "*", "down")
    volumes = set(lab.engine.run("docker", "volume", "ls", "--quiet").split()) - {"wqlab_cache"}
    if volumes:
        lab.engine.run("docker", "volume", "rm", *volumes)


@pytest.fixture(scope="module")
def undisturbed(lab: ContainerLab) -> dict[tuple[str, str], str]:
    """Create the administrator and a token as docs/deploy.md says; return the verdicts of a run without faults."""
    user, token = re.findall(r"^(docker compose exec api [^#\n]*?) *#", DEPLOY, re.MULTILINE)
    assert re.fullmatch(r"\S{12,}\n", lab.shell(user))
    lab.token = lab.shell(token).strip()
    submission = lab.submit()
    verdicts = lab.verdicts(submission)
    report = lab.wqlab("report", str(submission))
    print(report)
    assert "xfs-fsync on tiny (emulated)" in report
    return verdicts


def test_each_image_is_built_once_and_has_a_name(lab: ContainerLab) -> None:
    images = lab.engine.run("docker", "images", "--format", "{{.Repository}}:{{.Tag}} {{.Size}}").splitlines()
    print("\n".join(images))
    names = {each.split()[0] for each in images if not each.startswith("debian:")}
    assert names - {"wqlab-lava:latest"} == {"wqlab-server:latest", "wqlab-worker:latest"}


def test_readme_command_ends_with_every_service_healthy(lab: ContainerLab) -> None:
    health = {name: each["State"]["Health"]["Status"] for name, each in lab.containers().items()}
    assert set(health.values()) == {"healthy"}, health


def test_api_is_ready_and_serves_the_pages(lab: ContainerLab) -> None:
    page = httpx.get(lab.url, follow_redirects=True)
    assert page.headers["content-type"].startswith("text/html")
    [script] = re.findall(r'<script[^>]+src="([^"]+)"', page.text)[:1]
    assert httpx.get(f"{lab.url}{script}").headers["content-type"].startswith("text/javascript")
    assert httpx.get(f"{lab.url}/api/v1/submissions").status_code == 401, "reading needs a sign-in"


def test_series_is_judged(undisturbed: dict[tuple[str, str], str]) -> None:
    assert undisturbed["fsync", "locks_per_flush"] == "equivalent"


def test_default_options_of_the_engine_forbid_the_sandbox(lab: ContainerLab) -> None:
    """The three options of `build` are needed, and their absence is named in the words of docs/deploy.md."""
    run = "import io; from wqlab_worker.sandbox import Sandbox; print(Sandbox().run(['true'], log=io.BytesIO()))"
    strict = ["docker", "run", "--rm", "--user=8750:8750", "--cap-drop=ALL", "--security-opt=no-new-privileges:true"]
    said = lab.engine.failure(*strict, "wqlab-worker", "python", "-c", run)
    [documented] = re.findall(r"infrastructure: (the kernel cannot bound .*)", DEPLOY)
    assert documented in said


def test_any_service_may_be_killed_while_a_series_is_measured(
    lab: ContainerLab, undisturbed: dict[tuple[str, str], str]
) -> None:
    for name in lab.containers():
        submission = lab.submit()
        began = time.monotonic()
        lab.kill([name])
        lab.await_health()
        print(f"killed {name}: healthy after {time.monotonic() - began:.0f} s")
        assert lab.verdicts(submission) == undisturbed, name


def test_all_services_may_be_killed_at_once(lab: ContainerLab, undisturbed: dict[tuple[str, str], str]) -> None:
    submission = lab.submit()
    lab.kill(lab.containers().keys())
    lab.await_health()
    assert lab.verdicts(submission) == undisturbed


def test_lab_comes_back_after_a_restart_of_the_engine(
    lab: ContainerLab, undisturbed: dict[tuple[str, str], str]
) -> None:
    submission = lab.submit()
    lab.engine.stop()
    lab.engine.start()
    lab.await_health()
    assert lab.verdicts(submission) == undisturbed


def test_data_survives_down_and_up(lab: ContainerLab, undisturbed: dict[tuple[str, str], str]) -> None:
    lab.compose("down")
    lab.shell(START)
    assert lab.verdicts(1) == undisturbed


def test_backup_is_restored_with_the_documented_commands(
    lab: ContainerLab, undisturbed: dict[tuple[str, str], str]
) -> None:
    backup, restore = re.findall(
        r"```\n(docker compose exec -T postgres pg_dump.*?)```.*?```\ndocker compose down --volumes\n(.*?)```",
        DEPLOY,
        re.DOTALL,
    )[0]
    lab.shell(f"set -e\n{backup}")
    remove_data(lab)
    lab.shell(f"set -e\n{restore}")
    assert lab.verdicts(1) == undisturbed
    assert lab.verdicts(lab.submit()) == undisturbed


def test_series_is_judged_on_a_device_of_lava(lab: ContainerLab, undisturbed: dict[tuple[str, str], str]) -> None:
    lab.set_variables(lab.engine.provide_base(ROOT / "deploy/lava/Dockerfile"))
    spec = yaml.safe_load((ROOT / "device-types/tiny.yaml").read_text())
    spec |= {"name": "lava-tiny", "units": [{"name": "lava-qemu-1", "lab": "lava", "backend": "lava"}]}
    (lab.engine.folder / CHECKOUT / "device-types/lava-tiny.yaml").write_text(yaml.safe_dump(spec))
    lab.compose("--profile", "lava", "up", "--build", "--detach", "--wait")
    assert lab.verdicts(lab.submit("lava-tiny")) == undisturbed
