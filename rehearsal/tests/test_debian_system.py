"""The image of a Debian is made again if its inputs change. The nightly suite builds and boots one."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_rehearsal import debian_system


def test_a_changed_package_or_hook_makes_another_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = debian_system.content_key({"openssh-server": "1"})
    assert debian_system.content_key({"openssh-server": "2"}) != key
    (tmp_path / "customize.sh").write_text("true\n")
    monkeypatch.setattr(debian_system, "_HOOKS", tmp_path)
    assert debian_system.content_key({"openssh-server": "1"}) != key


def test_the_file_system_has_the_label_that_the_system_mounts() -> None:
    hook = Path(debian_system.__file__).with_name("debian_hooks") / "customize.sh"
    assert f"LABEL={debian_system.LABEL} / ext4" in hook.read_text()
