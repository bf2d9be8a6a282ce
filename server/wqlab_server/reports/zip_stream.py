"""Write a ZIP file as a stream of chunks: nothing is held but the current chunk and the list of files."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Iterator

from wqlab_contracts.bundle import BundleFile

_EPOCH = (1980, 1, 1, 0, 0, 0)
_LEVEL = 6
_CHUNK = 1 << 16
_LARGE_BYTES = 1 << 30
"""Files that may become larger than this get the fields of ZIP64."""


class ZipStream:
    """Writer of one ZIP file. Names, order and content alone determine the bytes: times and modes are fixed.

    >>> stream = ZipStream()
    >>> yield from stream.add("name", chunks)
    >>> yield from stream.end()
    """

    def __init__(self) -> None:
        self._sink = _Sink()
        self._zip = zipfile.ZipFile(self._sink, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL)
        self.files: dict[str, BundleFile] = {}
        """Size and hash of the files written so far."""

    def add(self, name: str, chunks: Iterable[bytes], expected_bytes: int = 0) -> Iterator[bytes]:
        """Write a file and yield bytes of the ZIP file. `expected_bytes`: upper estimate of its size, if large."""
        info = zipfile.ZipInfo(name, _EPOCH)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.create_system = 3  # Unix, on every host
        info.external_attr = 0o100644 << 16
        digest, size = hashlib.sha256(), 0
        with self._zip.open(info, "w", force_zip64=expected_bytes > _LARGE_BYTES) as file:
            for chunk in chunks:
                digest.update(chunk)
                size += len(chunk)
                file.write(chunk)
                yield from self._sink.take()
        self.files[name] = BundleFile(sha256=digest.hexdigest(), size=size)
        yield from self._sink.take()

    def end(self) -> Iterator[bytes]:
        """Write the list of files."""
        self._zip.close()
        yield from self._sink.take(at_least=1)


class _Sink:
    """File without positions, from which the written bytes are taken."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def write(self, data: bytes, /) -> int:
        self._pieces.append(bytes(data))
        self._size += len(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: there is no buffer below."""

    def close(self) -> None:
        """Do nothing: there is no file below."""

    def take(self, at_least: int = _CHUNK) -> Iterator[bytes]:
        """Yield what was written since, unless it is less than `at_least` bytes."""
        if self._size >= max(at_least, 1):
            yield b"".join(self._pieces)
            self._pieces, self._size = [], 0
