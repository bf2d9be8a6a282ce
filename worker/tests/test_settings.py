"""Settings of a worker."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from wqlab_worker.settings import SECRETS_DIR, Settings, settings

REQUIRED = {"server_url": "http://lab", "worker_token": "secret", "cache": "/c", "state": "/s"}


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*REQUIRED, "lab", "broker_url"):
        monkeypatch.delenv(f"WQLAB_{name.upper()}", raising=False)
    monkeypatch.delenv(SECRETS_DIR, raising=False)
    settings.cache_clear()


def test_missing_variables_are_named() -> None:
    with pytest.raises(ValidationError) as caught:
        settings()
    assert {error["loc"][0] for error in caught.value.errors()} == set(REQUIRED)


def test_secret_file_replaces_an_unset_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("server_url", "cache", "state"):
        monkeypatch.setenv(f"WQLAB_{name.upper()}", REQUIRED[name])
    (tmp_path / "wqlab_worker_token").write_text("from-file")
    monkeypatch.setenv(SECRETS_DIR, str(tmp_path))
    assert settings().worker_token.get_secret_value() == "from-file"


@pytest.mark.parametrize(
    ("url", "expected"),
    [("redis://127.0.0.1:6379/0", False), ("rediss://lab-berlin:pw@host/0", True), ("rediss://admin:pw@host/0", False)],
)
def test_broker_user_of_the_lab_is_recognized(url: str, expected: bool) -> None:
    assert Settings(**REQUIRED, lab="berlin", broker_url=url).has_lab_broker_user is expected


def test_secrets_folder_without_the_token_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("server_url", "cache", "state"):
        monkeypatch.setenv(f"WQLAB_{name.upper()}", "/somewhere")
    monkeypatch.setenv(SECRETS_DIR, str(tmp_path))
    with pytest.raises(ValidationError, match="worker_token"):
        settings.__wrapped__()
    (tmp_path / "wqlab_worker_token").write_text("wql_of-the-file\n")
    assert settings.__wrapped__().worker_token.get_secret_value() == "wql_of-the-file"
