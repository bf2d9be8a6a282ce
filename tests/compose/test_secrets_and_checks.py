"""deploy/secrets.sh and deploy/check.sh, with programs that stand for an engine and a disk: no engine is needed."""

from __future__ import annotations

import re
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from .composefile import ROOT, load

DOCKER = """#!/bin/sh
case $* in
    "version "*) [ -n "$ENGINE" ] || { echo "Cannot connect to the Docker daemon" >&2; exit 1; }; echo "$ENGINE" ;;
    "compose version") [ -z "$NO_COMPOSE" ] ;;
    "compose ps "*) ;;
    "info "*) echo / ;;
esac
"""


class Checkout:
    """A folder with the two scripts, a free port, and programs of an engine that is fine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.secrets = folder / "deploy" / "secrets"
        self.environment = {"PATH": f"{folder}/bin:/usr/bin:/bin", "ENGINE": "26.1.5+dfsg1"}
        for script in ("deploy/secrets.sh", "deploy/check.sh"):
            target = folder / script
            target.parent.mkdir(exist_ok=True)
            target.write_bytes((ROOT / script).read_bytes())
            target.chmod(0o755)
        self.program("docker", DOCKER)
        self.program("df", "#!/bin/sh\necho Avail; echo 40G\n")
        with socket.create_server(("127.0.0.1", 0)) as unused:
            self.environment["WQLAB_LISTEN"] = f"127.0.0.1:{unused.getsockname()[1]}"

    def program(self, name: str, text: str) -> None:
        file = self.folder / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def run(self, script: str = "deploy/secrets.sh") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.folder / script)], env=self.environment, capture_output=True, text=True, check=False
        )

    def refusal(self, script: str = "deploy/secrets.sh") -> str:
        result = self.run(script)
        assert result.returncode == 1, result
        return result.stderr


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_secrets_are_random_and_private(checkout: Checkout) -> None:
    def make() -> str:
        result = checkout.run()
        assert result.returncode == 0, result.stderr
        return (checkout.secrets / "wqlab_worker_token").read_text()

    first = make()
    assert re.fullmatch(r"wql_[0-9a-f]{64}\n", first)
    assert stat.S_IMODE(checkout.secrets.stat().st_mode) == 0o700
    assert {path.name for path in checkout.secrets.iterdir()} == set(load({"WQLAB_SECRETS": "x"})["secrets"])
    assert make() == first, "an existing secret is kept"
    assert (checkout.folder / ".env").read_text() == "WQLAB_SECRETS=./deploy/secrets\n"
    (checkout.secrets / "wqlab_worker_token").unlink()
    assert make() != first


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"PATH": "/nowhere:/usr/bin:/bin"}, "there is no program docker: install Docker Engine 25 or newer"),
        ({"ENGINE": ""}, "the Docker Engine does not answer: start it (systemctl start docker)"),
        ({"ENGINE": "24.0.7"}, "Docker Engine 24.0.7 is too old for these health checks: install 25 or newer"),
        ({"ENGINE": "20.10.24+dfsg1"}, "Docker Engine 20.10.24+dfsg1 is too old"),
        ({"NO_COMPOSE": "1"}, "docker has no compose plugin: install docker-compose-plugin"),
    ],
)
def test_missing_or_old_engine_is_named(checkout: Checkout, changed: dict[str, str], said: str) -> None:
    checkout.environment |= changed
    if "PATH" in changed:  # this machine's own docker is not to be found either
        checkout.environment["PATH"] = str(checkout.folder / "few")
        (checkout.folder / "few").mkdir()
        for name in ("dirname", "install", "chmod", "od", "tr", "grep", "sed", "tail"):
            (checkout.folder / "few" / name).symlink_to(f"/usr/bin/{name}")
    assert said in checkout.refusal()


def test_newer_engines_are_accepted(checkout: Checkout) -> None:
    for version in ("25.0.0", "28.2.2", "master-dev"):
        checkout.environment["ENGINE"] = version
        assert checkout.run().returncode == 0


def test_taken_port_is_named_with_the_setting(checkout: Checkout) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        del checkout.environment["WQLAB_LISTEN"]
        (checkout.folder / ".env").write_text(f"WQLAB_LISTEN=127.0.0.1:{port}\n")
        assert f"another program listens on port {port}: stop it, or choose another port" in checkout.refusal()


def test_full_disk_is_named_before_images_are_built(checkout: Checkout) -> None:
    checkout.program("df", "#!/bin/sh\necho Avail; echo 3G\n")
    assert "/ has 3 GB free, images and kernels need 15: docker system prune" in checkout.refusal()


def test_missing_secret_is_named_with_the_script(checkout: Checkout) -> None:
    assert checkout.run().returncode == 0
    (checkout.secrets / "wqlab_lava_token").unlink()
    assert "there is no secret ./deploy/secrets/wqlab_lava_token: run deploy/secrets.sh" in checkout.refusal(
        "deploy/check.sh"
    )
