"""The `wqlab-worker` command."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

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
