"""The Celery tasks of the worker."""

from __future__ import annotations

import pytest

from wqlab_contracts import celery_names
from wqlab_worker import settings, tasks
from wqlab_worker.claims import jobs


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SERVER_URL": "http://lab", "WORKER_TOKEN": "secret", "CACHE": "/c", "STATE": "/s"}.items():
        monkeypatch.setenv(f"WQLAB_{name}", value)
    monkeypatch.setenv("LG_COORDINATOR", "127.0.0.1:9")
    monkeypatch.delenv("WQLAB_LAB", raising=False)
    settings.settings.cache_clear()


@pytest.mark.parametrize(
    ("name", "job"), [(celery_names.APPLY, "apply"), (celery_names.BUILD, "build"), (celery_names.RUN, "run")]
)
@pytest.mark.usefixtures("environment")
def test_message_runs_the_job_of_its_id(name: str, job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    monkeypatch.setattr(jobs, job, lambda id_, configured: done.append(id_))
    tasks.app.tasks[name].run(id=5)
    assert done == [5]


@pytest.mark.usefixtures("environment")
def test_settings_are_read_from_environment() -> None:
    known = settings.settings()
    assert (known.lab, known.coordinator, str(known.ssh_key)) == ("local", "127.0.0.1:9", "/s/keys/lab_ed25519")
    assert "secret" not in repr(known.worker_token)


def test_messages_are_json_and_not_prefetched() -> None:
    assert tasks.app.conf.accept_content == ["json"]
    assert not tasks.app.conf.task_acks_late
    assert tasks.app.conf.worker_disable_prefetch
