"""Digest of what a device loads of a build."""

from __future__ import annotations

import hashlib
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
    monkeypatch.setattr(module, "BYTES_LIMIT", 1000)
    assert content_digest(image, large, []) == ""
    monkeypatch.setattr(module, "BYTES_LIMIT", 1 << 30)
    monkeypatch.setattr(module, "MEMBER_LIMIT", 1)
    assert content_digest(image, large, []) == ""


def hostile(path: Path, *blocks: bytes) -> Path:
    path.write_bytes(b"".join(blocks) + bytes(1024))
    return path


def header(name: str, size: int = 0, type_: bytes = tarfile.REGTYPE) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size, entry.type = size, type_
    return entry.tobuf(tarfile.GNU_FORMAT)


def member(name: str, content: bytes) -> bytes:
    return header(name, len(content)) + content + bytes(-len(content) % 512)


def test_chain_of_extended_headers_is_skipped(tmp_path: Path, image: Path) -> None:
    chain = [header("x", type_=tarfile.XHDTYPE)] * 5000  # tarfile would recurse into each
    plain = content_digest(image, hostile(tmp_path / "plain.tar", member("a.ko", b"a")), [])
    assert content_digest(image, hostile(tmp_path / "chain.tar", *chain, member("a.ko", b"a")), []) == plain != ""


def test_negative_and_sparse_sizes_are_refused(tmp_path: Path, image: Path) -> None:
    for name, type_ in (("negative", tarfile.REGTYPE), ("sparse", tarfile.GNUTYPE_SPARSE)):
        size = -512 if name == "negative" else 5
        assert content_digest(image, hostile(tmp_path / name, header("a.ko", size, type_)), []) == ""


def test_module_that_is_twice_in_the_archive_is_not_hidden(tmp_path: Path, image: Path) -> None:
    plain = content_digest(image, hostile(tmp_path / "plain.tar", member("a.ko", b"a")), [])
    # The device would get the first one.
    twice = hostile(tmp_path / "twice.tar", member("a.ko", b"evil"), member("a.ko", b"a"))
    other = hostile(tmp_path / "other.tar", member("x/a-b.ko", b"evil"), member("y/a_b.ko", b"a"))
    assert plain != ""
    assert content_digest(image, twice, []) == content_digest(image, other, []) == ""


def test_name_cannot_imitate_several_modules(tmp_path: Path, image: Path) -> None:
    a = hashlib.sha256(b"a").hexdigest()
    two = hostile(tmp_path / "two.tar", member("a.ko", b"a"), member("b.ko", b"b"))
    name = f"a.ko\0{a}\nown module b.ko".encode()
    long_name = header("", len(name), tarfile.GNUTYPE_LONGNAME) + name + bytes(-len(name) % 512)
    path_record = f"path={name.decode()}\n"
    record = f"{len(path_record) + 3} {path_record}".encode()  # its length includes the two digits and the blank
    extended = header("x", len(record), tarfile.XHDTYPE) + record + bytes(-len(record) % 512)
    for number, rename in enumerate((long_name, extended)):
        one = hostile(tmp_path / f"one{number}.tar", rename, member("z.ko", b"b"))
        assert content_digest(image, one, []) != content_digest(image, two, [])
