"""Files are written into an image of a file system without mounting it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from wqlab_rehearsal import ext4


@pytest.fixture
def image(tmp_path: Path) -> Path:
    file = tmp_path / "system.ext4"
    (tmp_path / "tree/root/.ssh").mkdir(parents=True, mode=0o700)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", tmp_path / "tree", file, "16M"], check=True)
    return file


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "a key"
    file.write_text("ssh-ed25519 KEY lab\n")
    return file


def asked(image: Path, request: str) -> str:
    return subprocess.run(["debugfs", "-R", request, image], check=True, capture_output=True, text=True).stdout


def test_a_file_is_root_s_and_the_file_system_stays_whole(image: Path, source: Path, tmp_path: Path) -> None:
    ext4.write(image, {"/root/.ssh/authorized_keys": source}, tmp_path)
    assert asked(image, "cat /root/.ssh/authorized_keys") == "ssh-ed25519 KEY lab\n"
    found = asked(image, "stat /root/.ssh/authorized_keys")
    assert "Mode:  0600" in found and "User:     0   Group:     0" in found
    # GRUB writes its environment in place: the file must have a block of its own.
    assert "EXTENTS:\n(0):" in found
    subprocess.run(["e2fsck", "-f", "-n", image], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("target", "said"), [("/boot/grub/grub.cfg", "/boot/grub: File not found"), ("/root/.ssh", "already exists")]
)
def test_what_cannot_be_written_is_named(image: Path, source: Path, tmp_path: Path, target: str, said: str) -> None:
    """debugfs itself ends with success."""
    with pytest.raises(ext4.Ext4Error, match=f"cannot write to {image}: .*{said}"):
        ext4.write(image, {target: source}, tmp_path)
