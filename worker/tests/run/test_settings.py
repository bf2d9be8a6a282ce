"""What a worker is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from wqlab_worker.settings import settings


def test_the_workers_token_may_come_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WQLAB_SERVER_URL", "WQLAB_CACHE", "WQLAB_STATE"):
        monkeypatch.setenv(name, "/somewhere")
    monkeypatch.delenv("WQLAB_WORKER_TOKEN", raising=False)
    monkeypatch.setenv("WQLAB_SECRETS_DIR", str(tmp_path))
    with pytest.raises(ValidationError, match="worker_token"):
        settings.__wrapped__()
    (tmp_path / "wqlab_worker_token").write_text("wql_of-the-file\n")
    assert settings.__wrapped__().worker_token.get_secret_value() == "wql_of-the-file"
