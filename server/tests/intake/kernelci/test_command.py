"""`wqlab-server kernelci` takes a job and lists it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from wqlab_server.cli import app
from wqlab_server.settings import settings as process_settings

from .fake_api import RUNTIME, TOKEN, KernelCiApi

pytestmark = pytest.mark.integration


@pytest.fixture
def api() -> Iterator[KernelCiApi]:
    with KernelCiApi() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def command(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["kernelci", *arguments])
    assert result.exit_code == code, result.output
    return result.output.strip()


def test_command_takes_and_lists_jobs(
    api: KernelCiApi, database_url: str, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "jobs.yaml").write_text("trees: {}\ntests: {}\nplatforms: {}\n")
    values = {
        "DATABASE_URL": database_url,
        "BROKER_URL": "memory://",
        "DATA_DIR": str(data_dir),
        "ARTIFACT_DIR": str(tmp_path),
        "KERNELCI_URL": api.url,
        "KERNELCI_RUNTIME": RUNTIME,
        "KERNELCI_TOKEN_FILE": str(tmp_path / "token"),
    }
    for name, value in values.items():
        monkeypatch.setenv(f"WQLAB_{name}", value)
    process_settings.cache_clear()
    try:
        node_id = api.schedule()
        assert "WQLAB_KERNELCI_JOBS_FILE" in command("poll", "--once", code=2)
        monkeypatch.setenv("WQLAB_KERNELCI_JOBS_FILE", str(tmp_path / "jobs.yaml"))
        process_settings.cache_clear()
        command("poll", "--once")
        listed = json.loads(command("jobs").splitlines()[-1])
        assert (listed["node_id"], listed["state"], listed["result"]) == (node_id, "reported", "incomplete")
        assert listed["reason"] == "this lab has no rule for tree 'mainline'; there are: none"
        polled = tmp_path / "polled"
        loop = [sys.executable, "-m", "wqlab_server.cli", "kernelci", "poll", "--touch", str(polled)]
        with subprocess.Popen(loop) as process:  # as the lab's supervisor starts it
            try:
                while not polled.exists():
                    assert process.poll() is None
                    time.sleep(0.1)
            finally:
                process.terminate()
        api.down = True
        assert "answered 503" in command("poll", "--once", code=2)
    finally:
        process_settings.cache_clear()
