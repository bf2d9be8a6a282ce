"""The Celery tasks of the worker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from wqlab_contracts import celery_names
from wqlab_worker import settings, tasks
from wqlab_worker.claims import jobs


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    values = {"SERVER_URL": "http://lab", "WORKER_TOKEN": "secret", "CACHE": str(tmp_path / "cache"), "STATE": "/s"}
    for name, value in values.items():
        monkeypatch.setenv(f"WQLAB_{name}", value)
    monkeypatch.setenv("LG_COORDINATOR", "127.0.0.1:9")
    monkeypatch.delenv("WQLAB_LAB", raising=False)
    settings.settings.cache_clear()


@pytest.mark.usefixtures("environment")
def test_message_runs_the_job_of_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    monkeypatch.setattr(jobs, "process", lambda id_, configured: done.append(id_))
    tasks.app.tasks[celery_names.JOB].run(id=5)
    assert done == [5]


ON_A_FULL_VOLUME = """
import sys
from pathlib import Path
from wqlab_worker import retention, tasks
from wqlab_worker.claims import jobs

done = []
jobs.process = lambda id_, settings: done.append(id_)
filler = Path(sys.argv[1]) / "filler"
for size in (1, 64 << 20):
    filler.write_bytes(bytes(size))
    tasks.app.tasks["wqlab.job"].run(id=size)
print(">", done)
"""


@pytest.mark.usefixtures("environment")
def test_no_job_is_claimed_while_the_cache_volume_is_full(tmp_path: Path) -> None:
    """It stays in the queue with all its attempts."""
    done = subprocess.run(
        [
            *("bwrap", "--dev-bind", "/", "/", "--size", str(100 << 20), "--tmpfs", tmp_path),
            *(sys.executable, "-c", ON_A_FULL_VOLUME, tmp_path),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "> [1]" in done.stdout, done.stdout + done.stderr


@pytest.mark.usefixtures("environment")
def test_settings_are_read_from_environment() -> None:
    known = settings.settings()
    assert (known.lab, known.coordinator, str(known.ssh_key)) == ("local", "127.0.0.1:9", "/s/keys/lab_ed25519")
    assert "secret" not in repr(known.worker_token)


def test_messages_are_json_and_not_prefetched() -> None:
    assert tasks.app.conf.accept_content == ["json"]
    assert not tasks.app.conf.task_acks_late
    assert tasks.app.conf.worker_disable_prefetch
