"""Read tar archives of submitted builds and of devices in bounded memory and time.

tarfile reads extended headers into memory, however large they say they are, recurses into their chains and follows
links. Here only regular files have content, and a header is one block.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import Protocol

BLOCK = 512
CHUNK = 1 << 20
NAME_LIMIT = 4096
"""Longest name in a GNU header for long names, in bytes."""


class _Archive(Protocol):
    """The part of a binary file that is used."""

    def read(self, size: int, /) -> bytes: ...
    def seek(self, offset: int, whence: int, /) -> int: ...


class TarReader:
    """The members of an uncompressed archive, in order. `read` or `chunks` returns the content of the last one.

    `total_bytes` limits the bytes of the archive, `members` the number of its headers.
    """

    def __init__(self, archive: _Archive, *, total_bytes: int, members: int) -> None:
        self._archive, self._left, self._headers = archive, total_bytes, members
        self._size = self._unread = 0

    def __iter__(self) -> Iterator[tarfile.TarInfo]:
        """Yield every member except directories and headers of headers. Raises tarfile.TarError and what `archive`
        raises."""
        name = ""
        while (entry := self._next_header()) is not None:
            if entry.type == tarfile.GNUTYPE_LONGNAME:
                name = self.read(NAME_LIMIT).rstrip(b"\0").decode(errors="replace")
            elif entry.type not in (tarfile.DIRTYPE, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK):
                entry.name, name = name or entry.name, ""
                yield entry

    def read(self, limit: int) -> bytes:
        """Return the content of the last member. Raises tarfile.ReadError if it has more than `limit` bytes."""
        if self._size > limit:
            raise tarfile.ReadError(f"a file of {self._size} bytes; at most {limit} are read")
        content = self._take(self._size)
        self._unread -= self._size
        return content

    def chunks(self) -> Iterator[bytes]:
        """Yield the content of the last member in pieces. Raises tarfile.ReadError if the archive ends within it."""
        while self._size:
            piece = self._take(min(self._size, CHUNK))
            self._size -= len(piece)
            self._unread -= len(piece)
            yield piece

    def _next_header(self) -> tarfile.TarInfo | None:
        """Read the next header; return None at the end of the archive."""
        self._skip()
        block = self._take(BLOCK)
        if not block.strip(b"\0"):
            return None
        self._headers -= 1
        if self._headers < 0:
            raise tarfile.ReadError("too many members")
        entry = tarfile.TarInfo.frombuf(block, "utf-8", "replace")
        if entry.size < 0 or entry.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError(f"an unsupported member: {entry.name[:80]!r}")
        # Links have no content, whatever their header says.
        self._size = entry.size if entry.type not in (tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE) else 0
        self._unread = -(-self._size // BLOCK) * BLOCK
        return entry

    def _skip(self) -> None:
        self._count(self._unread)
        self._archive.seek(self._unread, 1)
        self._unread = 0

    def _take(self, size: int) -> bytes:
        self._count(size)
        data = self._archive.read(size)
        if len(data) < size:
            raise tarfile.ReadError("the archive is truncated")
        return data

    def _count(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise tarfile.ReadError("the archive is too large")
