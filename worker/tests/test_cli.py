"""The `wqlab-worker` command."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from wqlab_worker import volume
from wqlab_worker.cli import app


def test_findings_of_a_console_log_are_printed(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    log.write_text("[    1.0] Kernel panic - not syncing: Attempted to kill init!\n")
    result = CliRunner().invoke(app, ["findings", str(log)])
    assert result.exit_code == 1
    assert "panic" in result.output
    log.write_text("[    1.0] Linux version 6.12\n")
    result = CliRunner().invoke(app, ["findings", str(log)])
    assert (result.exit_code, result.output) == (0, "")


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
