"""A ZIP file that is written as a stream."""

from __future__ import annotations

import hashlib
import io
import subprocess
import zipfile
from pathlib import Path

from wqlab_server.reports.zip_stream import ZipStream


def write(files: dict[str, list[bytes]], expected_bytes: int = 0) -> tuple[ZipStream, list[bytes]]:
    stream, chunks = ZipStream(), []
    for name, pieces in files.items():
        chunks += stream.add(name, pieces, expected_bytes)
    return stream, [*chunks, *stream.end()]


def test_streamed_files_are_read_back(tmp_path: Path) -> None:
    noise = [hashlib.sha512(bytes([n % 251, n // 251])).digest() * 64 for n in range(2000)]
    stream, chunks = write({"a/b.txt": [b"one ", b"two"], "empty": [], "noise": noise})
    with zipfile.ZipFile(io.BytesIO(b"".join(chunks))) as archive:
        assert archive.testzip() is None
        assert archive.read("a/b.txt") == b"one two"
        assert archive.read("noise") == b"".join(noise)
        assert {info.filename: info.file_size for info in archive.infolist()} == {
            name: file.size for name, file in stream.files.items()
        }
    assert stream.files["a/b.txt"].sha256 == hashlib.sha256(b"one two").hexdigest()


def test_equal_files_give_equal_bytes() -> None:
    assert write({"a": [b"x"], "b": [b"y" * 9000]})[1] == write({"a": [b"x"], "b": [b"y" * 9000]})[1]


def test_large_files_use_zip64(tmp_path: Path) -> None:
    """The size of a file is unknown when its header is written, so the estimate decides."""
    _, chunks = write({"large": [b"x" * 100]}, expected_bytes=5 << 30)
    path = tmp_path / "large.zip"
    path.write_bytes(b"".join(chunks))
    with zipfile.ZipFile(path) as archive:
        assert archive.read("large") == b"x" * 100
    done = subprocess.run(["python3", "-m", "zipfile", "-t", path], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
