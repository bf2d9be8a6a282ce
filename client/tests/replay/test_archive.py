"""A hostile or damaged bundle is refused with a clear error and bounded work."""

from __future__ import annotations

import hashlib
import io
import json
import resource
import stat
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wqlab_client.errors import UsageError
from wqlab_client.replay import archive
from wqlab_client.replay.archive import BundleError, open_bundle

MANIFEST: dict[str, Any] = {
    "format": 1,
    "submission": 1,
    "lab_url": "http://lab.test",
    "versions": {},
    "kernels": False,
    "files": {},
    "absent": {},
}


def write(path: Path, files: dict[str, bytes], extra: Callable[[zipfile.ZipFile], None] | None = None) -> Path:
    """Write a bundle with a correct manifest of `files`; `extra` adds entries that the manifest does not have."""
    listed = {name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name, data in files.items()}
    manifest = json.dumps(MANIFEST | {"files": listed}).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name, data in files.items():
            target.writestr(name, data)
        target.writestr("manifest.json", manifest)
        target.writestr("manifest.json.sig", b"signature")
        if extra is not None:
            with warnings.catch_warnings(action="ignore"):
                extra(target)
    return path


def refused(path: Path, match: str) -> None:
    with pytest.raises(BundleError, match=match) as error, open_bundle(path) as bundle:
        bundle.check_files()
    assert str(path) in str(error.value)
    assert error.value.exit_code == 2


def test_bundle_is_read_and_checked(tmp_path: Path) -> None:
    path = write(tmp_path / "b.zip", {"report.json": b"{}", "runs/1/scripts/run.sh": b"#!/bin/sh\n"})
    with open_bundle(path) as bundle:
        bundle.check_files()
        assert bundle.names == ["report.json", "runs/1/scripts/run.sh"]
        assert bundle.content("runs/1/scripts/run.sh") == b"#!/bin/sh\n"
        with pytest.raises(BundleError, match=r"no series\.mbox"):
            bundle.content("series.mbox")


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip", b"PK\x05\x06" + bytes(18), b"\0" * 4096])
def test_file_that_is_no_bundle_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "b.zip"
    path.write_bytes(content)
    refused(path, "not a ZIP file|no manifest.json")


def test_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"), open_bundle(tmp_path / "none.zip"):
        pass
    with pytest.raises(UsageError, match="cannot read"), open_bundle(tmp_path):
        pass


def test_truncated_and_damaged_bundles_are_refused(tmp_path: Path) -> None:
    """Whatever byte is changed, the bundle is refused or its content is still what the manifest says."""
    whole = write(tmp_path / "b.zip", {"report.json": b"{}" * 300, "report.txt": b"text"}).read_bytes()
    path = tmp_path / "damaged.zip"
    for end in range(0, len(whole), 7):
        path.write_bytes(whole[:end])
        refused(path, ".")
    for position in range(0, len(whole), 3):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :])
        try:
            with open_bundle(path) as bundle:
                bundle.check_files()
        except BundleError:
            pass


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/etc/passwd",
        "a/../../b",
        "a//b",
        ".hidden",
        "a/.ssh",
        "C:\\b",
        "a\nb",
        "a b",
        "\x1b[2J",
        "d/",
        "x" * 241,
    ],
)
def test_names_that_are_not_plain_paths_are_refused(tmp_path: Path, name: str) -> None:
    refused(write(tmp_path / "b.zip", {}, lambda target: target.writestr(name, b"x")), "not a plain relative path")


def test_links_and_special_files_are_refused(tmp_path: Path) -> None:
    for kind in (stat.S_IFLNK, stat.S_IFIFO, stat.S_IFDIR):
        info = zipfile.ZipInfo("report.json")
        info.external_attr = (kind | 0o777) << 16
        path = write(tmp_path / "b.zip", {}, lambda target, info=info: target.writestr(info, b"/etc/passwd"))
        refused(path, "a link or a special file")


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    def twice(target: zipfile.ZipFile) -> None:
        target.writestr("report.json", b"[]")

    refused(write(tmp_path / "b.zip", {"report.json": b"{}"}, twice), "two files are named report.json")


def test_files_that_are_not_in_the_manifest_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "b.zip", {}, lambda target: target.writestr("extra", b"x"))
    refused(path, "extra is in the bundle but not in the manifest")


def test_other_compression_and_encryption_are_refused(tmp_path: Path) -> None:
    def bzip2(target: zipfile.ZipFile) -> None:
        target.writestr("report.json", b"x" * 100, zipfile.ZIP_BZIP2)

    refused(write(tmp_path / "b.zip", {}, bzip2), "other than deflate")


def test_changed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.zip"
    content = json.dumps(MANIFEST | {"files": {"report.json": {"sha256": "0" * 64, "size": 2}}})
    with zipfile.ZipFile(path, "w") as target:
        target.writestr("report.json", b"{}")
        target.writestr("manifest.json", content)
        target.writestr("manifest.json.sig", b"")
    refused(path, "report.json was changed")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"format": 2}, "format 2, but this wqlab reads format 1"),
        ({"submission": "x"}, "manifest.json is invalid at submission"),
        ({"files": {"report.json": {"sha256": "x", "size": 1}}}, "manifest.json is invalid"),
        ({"files": {"report.json": {"sha256": "0" * 64, "size": 1}}}, "in the manifest but not in the bundle"),
    ],
)
def test_invalid_manifests_are_refused(tmp_path: Path, change: dict[str, Any], match: str) -> None:
    path = tmp_path / "b.zip"
    with zipfile.ZipFile(path, "w") as target:
        target.writestr("manifest.json", json.dumps(MANIFEST | change))
        target.writestr("manifest.json.sig", b"")
    refused(path, match)


# --- bombs ------------------------------------------------------------------------------------------------------


def test_large_manifest_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "b.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("manifest.json", b" " * (archive.MANIFEST_BYTES + 1))
        target.writestr("manifest.json.sig", b"")
    assert path.stat().st_size < 100_000
    refused(path, "manifest.json has more than")


def test_declared_sizes_above_the_total_are_refused(tmp_path: Path) -> None:
    """Forty-two entries that claim 4 GB each, as in a ZIP bomb."""
    path = write(tmp_path / "b.zip", {f"f{number}": b"x" for number in range(42)})
    data = path.read_bytes()
    start = data.index(b"PK\x01\x02")
    entries = data[start:].split(b"PK\x01\x02")[1:]
    large = b"".join(b"PK\x01\x02" + entry[:20] + struct.pack("<I", 0xFFFFFFF0) + entry[24:] for entry in entries)
    path.write_bytes(data[:start] + large)
    refused(path, "MiB unpacked, more than")


def test_content_beyond_the_declared_size_is_not_read(tmp_path: Path) -> None:
    """The list of files says 10 bytes, the compressed data are 50 MB."""
    path = tmp_path / "b.zip"
    listed = {"report.json": {"sha256": "0" * 64, "size": 10}}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("report.json", b"\0" * 50_000_000)
        target.writestr("manifest.json", json.dumps(MANIFEST | {"files": listed}))
        target.writestr("manifest.json.sig", b"")
    data = path.read_bytes()
    start = data.index(b"PK\x01\x02")
    path.write_bytes(data[: start + 24] + struct.pack("<I", 10) + data[start + 28 :])
    refused(path, "report.json (is damaged|was changed)")


def test_large_list_of_files_is_refused_without_reading_it(tmp_path: Path) -> None:
    """A million entries would need gigabytes; the file claims a list of 100 MB."""
    path = tmp_path / "b.zip"
    size = 100 << 20
    with path.open("wb") as file:
        file.truncate(size)
        file.seek(size)
        file.write(struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 65535, 65535, size, 0, 0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(path, "its list of files has more than 16 MiB")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "FILES_LIMIT", 5)
    refused(write(tmp_path / "b.zip", {f"f{n}": b"" for n in range(9)}), "11 files, more than the 5")


def test_large_model_and_samples_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MODEL_BYTES", 1 << 20)
    path = write(tmp_path / "b.zip", {"report.json": b" " * (2 << 20)})
    with open_bundle(path) as bundle:
        with pytest.raises(BundleError, match="more than the 1 MiB"):
            bundle.model("report.json", archive.Manifest)
        with pytest.raises(BundleError, match="more than the 1 MiB"):
            bundle.extract("report.json", tmp_path / "out", 1 << 20)
    assert not (tmp_path / "out").exists()


def test_deeply_nested_json_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "b.zip", {"report.json": b"[" * 1_000_000})
    with open_bundle(path) as bundle, pytest.raises(BundleError, match=r"report\.json is invalid"):
        bundle.model("report.json", archive.Manifest)


def test_file_positions_are_not_needed_to_write(tmp_path: Path) -> None:
    """Entries with data descriptors, as the server streams them, are read."""
    sink = io.BytesIO()

    class Stream:
        def write(self, data: bytes, /) -> int:
            return sink.write(data)

        def flush(self) -> None:
            pass

    with zipfile.ZipFile(Stream(), "w", zipfile.ZIP_DEFLATED) as target:  # type: ignore[call-overload]
        target.writestr("manifest.json", json.dumps(MANIFEST))
        target.writestr("manifest.json.sig", b"")
    path = tmp_path / "b.zip"
    path.write_bytes(sink.getvalue())
    with open_bundle(path) as bundle:
        assert bundle.names == []
