"""Digest of what a device loads of a build."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from wqlab_worker.build import content_digest as module
from wqlab_worker.build.content_digest import content_digest


def archive(path: Path, files: dict[str, bytes], time: int = 0) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(content), time
            tar.addfile(entry, io.BytesIO(content))
    return path


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "kernel"
    path.write_bytes(b"image")
    return path


def test_time_stamps_of_modules_do_not_count(tmp_path: Path, image: Path) -> None:
    first = archive(tmp_path / "first.tar", {"a.ko": b"a", "b.ko": b"b"}, time=1)
    later = archive(tmp_path / "later.tar", {"b.ko": b"b", "a.ko": b"a"}, time=2)
    assert content_digest(image, first, []) == content_digest(image, later, []) != ""


@pytest.mark.parametrize("files", [{"a.ko": b"other"}, {"c.ko": b"a"}, {}, {"a.ko": b"a", "b.ko": b""}])
def test_any_difference_of_the_modules_counts(tmp_path: Path, image: Path, files: dict[str, bytes]) -> None:
    first = content_digest(image, archive(tmp_path / "first.tar", {"a.ko": b"a"}), [])
    assert content_digest(image, archive(tmp_path / "other.tar", files), []) != first


def test_image_and_modules_of_the_lab_count(tmp_path: Path, image: Path) -> None:
    (tmp_path / "test.ko").write_bytes(b"module")
    found = {content_digest(image, None, []), content_digest(image, None, [tmp_path / "test.ko"])}
    image.write_bytes(b"changed")
    assert len(found | {content_digest(image, None, [])}) == 3


def test_damaged_archive_equals_no_other(tmp_path: Path, image: Path) -> None:
    (tmp_path / "damaged.tar").write_bytes(b"no archive")
    assert content_digest(image, tmp_path / "damaged.tar", []) == ""


def test_archive_beyond_the_limits_equals_no_other(
    tmp_path: Path, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = archive(tmp_path / "large.tar", {"a.ko": b"a" * 100, "b.ko": b"b" * 100})
    monkeypatch.setattr(module, "EXPANDED_LIMIT", 150)
    assert content_digest(image, large, []) == ""
    monkeypatch.setattr(module, "EXPANDED_LIMIT", 4 << 30)
    monkeypatch.setattr(module, "MEMBER_LIMIT", 1)
    assert content_digest(image, large, []) == ""
