"""The content store: bytes named by their SHA-256, in a folder; written whole or not at all."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Self

_FAN_OUT = 2


class ArtifactMismatch(Exception):
    """The bytes that came have another hash than announced."""


class ArtifactTooLarge(Exception):
    """More bytes than one artifact may have."""


class ArtifactStore:
    def __init__(self, root: Path, limit: int) -> None:
        self.root = root
        self.limit = limit

    def path(self, sha256: str) -> Path:
        return self.root / sha256[:_FAN_OUT] / sha256

    def has(self, sha256: str) -> bool:
        return self.path(sha256).is_file()

    def size(self, sha256: str) -> int:
        """Bytes. Raises FileNotFoundError."""
        return self.path(sha256).stat().st_size

    def open(self, sha256: str) -> IO[bytes]:
        """Raises FileNotFoundError."""
        return self.path(sha256).open("rb")

    def writer(self, sha256: str) -> ArtifactWriter:
        return ArtifactWriter(self.path(sha256), sha256, self.limit)

    def put(self, sha256: str, pieces: Iterable[bytes]) -> int:
        """Stores the bytes and returns their number. Raises ArtifactMismatch, ArtifactTooLarge; then nothing is kept.

        Storing what is there already is harmless, also at the same time by two.
        """
        with self.writer(sha256) as writer:
            for piece in pieces:
                writer.write(piece)
            return writer.commit()

    def put_bytes(self, content: bytes) -> tuple[str, int]:
        """Stores `content` under its own hash: (sha256, size)."""
        sha256 = hashlib.sha256(content).hexdigest()
        return sha256, self.put(sha256, [content])


class ArtifactWriter:
    """Writes beside the target and moves there at `commit`; leaving the block without it keeps nothing."""

    def __init__(self, target: Path, sha256: str, limit: int) -> None:
        self._target, self._sha256, self._limit = target, sha256, limit
        self._found, self._size = hashlib.sha256(), 0

    def __enter__(self) -> Self:
        self._target.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=self._target.parent, prefix=".partial-")
        self._file, self._partial = os.fdopen(handle, "wb"), Path(partial)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._partial.unlink(missing_ok=True)

    def write(self, piece: bytes) -> None:
        """Raises ArtifactTooLarge."""
        self._size += len(piece)
        if self._size > self._limit:
            raise ArtifactTooLarge(f"an artifact may have {self._limit} bytes")
        self._found.update(piece)
        self._file.write(piece)

    def commit(self) -> int:
        """Number of bytes, now in the store. Raises ArtifactMismatch."""
        found = self._found.hexdigest()
        if found != self._sha256:
            raise ArtifactMismatch(f"the {self._size} bytes that came have sha256 {found}, not {self._sha256}")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._partial.replace(self._target)
        return self._size
