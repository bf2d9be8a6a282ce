"""The `wqlab-worker` command."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from wqlab_worker import volume
from wqlab_worker.cli import app


def test_limits_tell_what_the_kernel_enforces(monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(app, ["limits"])
    assert result.exit_code == 0
    assert "files: kernel: everything that a command writes is in a volume of a fixed size\n" in result.output
    assert "system calls: filtered" in result.output
    monkeypatch.setenv("WQLAB_SANDBOX_WATCHED", "1")
    assert "files: watched: WQLAB_SANDBOX_WATCHED is set\n" in CliRunner().invoke(app, ["limits"]).output
    monkeypatch.delenv("WQLAB_SANDBOX_WATCHED")
    monkeypatch.setattr(volume, "physical_memory", lambda: 1 << 20)
    refused = CliRunner().invoke(app, ["limits"])
    assert refused.exit_code == 1
    assert "files: refused: the sandbox needs up to 2 MiB of memory for files" in refused.output
