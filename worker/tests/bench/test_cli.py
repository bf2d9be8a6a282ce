"""Errors of the `wqlab-bench` command."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from wqlab_bench import cli


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """Run the command and return its error message."""
    monkeypatch.setattr(sys, "argv", ["wqlab-bench", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return str(caught.value.code)


def test_missing_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WQLAB_CACHE", raising=False)
    assert run(monkeypatch, "rootfs") == "wqlab-bench: WQLAB_CACHE is not set"
    monkeypatch.delenv("LG_COORDINATOR", raising=False)
    assert "LG_COORDINATOR is not set" in run(monkeypatch, "places")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "has no valid list of golden systems"),
        ("{}", "has no golden system for x86_64"),
        ('{"x86_64": {"kernel": "/nonexistent/kernel", "rootfs": "/x"}}', "file /nonexistent/kernel does not exist"),
    ],
)
def test_invalid_list_of_golden_systems_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    key = tmp_path / "key.pub"
    key.write_text("ssh-ed25519 AAAA lab\n")
    golden = tmp_path / "golden.json"
    golden.write_text(text)
    for name in ("WQLAB_STATE", "WQLAB_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("WQLAB_DATA_DIR", str(Path(__file__).resolve().parents[3]))
    assert message in run(monkeypatch, "serve", "--golden", str(golden), "--ssh-key", str(key))


def test_other_key_types_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = tmp_path / "key.pub"
    key.write_text("ssh-rsa AAAA lab\n")
    for name in ("WQLAB_STATE", "WQLAB_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("WQLAB_DATA_DIR", str(Path(__file__).resolve().parents[3]))
    message = run(monkeypatch, "serve", "--golden", str(tmp_path / "golden.json"), "--ssh-key", str(key))
    assert "is a ssh-rsa key; devices need an ed25519 key" in message
