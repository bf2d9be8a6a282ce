"""The `wqlab-worker` command."""

from __future__ import annotations

import json
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


def test_a_console_is_read_without_a_lab(tmp_path: Path) -> None:
    log = tmp_path / "dmesg"
    log.write_text(
        "[    1.000000] EXT4-fs (vda): mounted\n"
        "[    2.000000] BUG: kernel NULL pointer dereference, address: 0000000000000008\n"
        "[    2.000100] RIP: 0010:flush_workqueue_prep_pwqs+0x84/0x1b0\n"
        "[    2.000200] ---[ end trace 0000000000000000 ]---\n"
        "[    2.000300] Kernel panic - not syncing: Fatal exception\n"
    )
    result = CliRunner().invoke(app, ["read-console", str(log), "--json"])
    oops, panic = json.loads(result.stdout)["reports"]
    assert result.exit_code == 1
    assert (oops["first_line"], oops["last_line"], oops["charged"], oops["caused_by"]) == (2, 4, True, None)
    assert oops["stack"] == ["flush_workqueue_prep_pwqs"]
    assert (panic["kind"], panic["charged"], panic["caused_by"]) == ("panic", False, 0)
    log.write_text("[    1.000000] EXT4-fs (vda): mounted\n")
    result = CliRunner().invoke(app, ["read-console", str(log)])
    assert (result.exit_code, result.stdout) == (0, "no kernel report\n")


@pytest.mark.parametrize("command", ["read-console", "read-console --json", "findings"])
def test_a_console_log_does_not_control_the_terminal(command: str, tmp_path: Path) -> None:
    """People paste what a kernel printed that they do not know."""
    log = tmp_path / "dmesg"
    log.write_text(
        "[    1.0] BUG: kernel NULL pointer dereference, address: 0\x9b2J\u202e\x85\n---[ end trace 0 ]---\n"
    )
    result = CliRunner().invoke(app, [*command.split(), str(log)])
    assert "kernel NULL pointer" in result.output
    assert not set(result.output) & set("\x9b\u202e\x85")
