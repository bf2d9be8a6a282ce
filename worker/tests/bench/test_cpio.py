"""cpio archives."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import pytest

from wqlab_bench import cpio


def test_cpio_program_reads_archive(tmp_path: Path) -> None:
    entries = [
        cpio.directory("usr"),
        cpio.file("usr/tool", b"#!/bin/sh\n", executable=True),
        cpio.symlink("bin", "usr"),
        cpio.file("odd", b"12345"),
        cpio.character_device("console", 5, 1),
    ]
    archive = io.BytesIO()
    cpio.write_archive(entries, archive)
    listing = subprocess.run(["cpio", "-itv"], input=archive.getvalue(), capture_output=True, check=True).stdout
    lines = [line.split() for line in listing.decode().splitlines()]
    assert [(line[0], line[-3] if "->" in line else line[-1]) for line in lines] == [
        ("drwxr-xr-x", "usr"), ("-rwxr-xr-x", "usr/tool"), ("lrwxrwxrwx", "bin"), ("-rw-r--r--", "odd"),
        ("crw-------", "console"),
    ]  # fmt: skip
    assert all(line[2:4] == ["root", "root"] for line in lines)
    subprocess.run(["cpio", "-id", "--quiet", "odd", "usr/tool"], input=archive.getvalue(), cwd=tmp_path, check=True)
    assert (tmp_path / "odd").read_bytes() == b"12345"
    again = io.BytesIO()
    cpio.write_archive(entries, again)
    assert again.getvalue() == archive.getvalue()


def test_member_before_its_folder_is_an_error() -> None:
    with pytest.raises(ValueError, match="usr/tool comes before its folder"):
        cpio.write_archive([cpio.file("usr/tool", b"")], io.BytesIO())
