"""Which QEMU runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_bench import qemu_program


def test_installed_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(qemu_program.TREE, raising=False)
    assert qemu_program.words("x86_64") == ["qemu-system-x86_64"]
    assert qemu_program.tree("x86_64") is None


def test_unpacked_program_runs_with_its_own_loader_and_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(qemu_program.TREE, "/srv/qemu10/tree")
    loader, option, libraries, program, *data = qemu_program.words("x86_64")
    assert (loader, option) == ("/srv/qemu10/tree/usr/lib64/ld-linux-x86-64.so.2", "--library-path")
    assert libraries == "/srv/qemu10/tree/usr/lib/x86_64-linux-gnu"
    assert program == "/srv/qemu10/tree/usr/bin/qemu-system-x86_64"
    assert "/srv/qemu10/tree/usr/share/seabios" in data
    assert qemu_program.file("x86_64") == Path(program)
    assert qemu_program.words("arm64") == ["qemu-system-aarch64"]
