"""Download artifacts to this machine, keep them under their hash, and resume interrupted downloads."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx
import structlog

from wqlab_contracts.messages import Artifact

log = structlog.get_logger()

CHUNK = 1 << 20
_LOCK_RETRY_S = 0.5

CheckResponse = Callable[[httpx.Response], None]
"""Raise an exception if the response is an error."""


class ArtifactCorrupt(Exception):
    """The server sent bytes with another hash than the artifact's, or more of them."""


class Download:
    """The download of one artifact to `folder/<sha256>`. An incomplete file is named `.partial-<sha256>`."""

    def __init__(self, artifact: Artifact, folder: Path) -> None:
        self._artifact = artifact
        self.target = folder / artifact.sha256
        self._partial = folder / f".partial-{artifact.sha256}"

    def is_complete(self) -> bool:
        """Return True if the artifact is here with the right hash; remove it if it is damaged."""
        if not self.target.exists():
            return False
        if sha256_of(self.target) == self._artifact.sha256:
            return True
        log.error("cached artifact is damaged; downloading it again", path=str(self.target))
        self.target.unlink(missing_ok=True)
        return False

    def received_bytes(self) -> int:
        """Return the size of the incomplete file, which need not be downloaded again."""
        return found.st_size if (found := self._status()) else 0

    def run(self, http: httpx.Client, url: str, check: CheckResponse) -> None:
        """Download the missing part with one request, while no other process of this machine does.

        Raises httpx.TransportError, after which the received part is kept, or ArtifactCorrupt, after which it is not.
        """
        self.target.parent.mkdir(parents=True, exist_ok=True)
        with self._locked() as file:
            if self.target.exists():
                self._remove(file)
                return
            resumed = self._receive(file, http, url, check)
            found = _hash_of(file)
            if found != self._artifact.sha256 and resumed:
                # The kept part may be damaged, for example by a power cut. Only a whole download proves the server
                # wrong.
                log.error("resumed download is damaged; starting it again", artifact=self._artifact.name)
                file.truncate(0)
                self._receive(file, http, url, check)
                found = _hash_of(file)
            if found != self._artifact.sha256:
                self._remove(file)
                raise ArtifactCorrupt(
                    f"{self._artifact.name}: the server sent bytes with sha256 {found}, not {self._artifact.sha256}"
                )
            self._partial.replace(self.target)

    def _receive(self, file: IO[bytes], http: httpx.Client, url: str, check: CheckResponse) -> bool:
        """Append the missing part to `file`. Return True if the file already had a beginning."""
        start = file.seek(0, 2)
        if start >= self._artifact.size:  # complete but not yet renamed, or damaged
            return start > 0
        headers = {"Accept-Encoding": "identity"}
        if start:
            headers |= {"Range": f"bytes={start}-", "If-Range": f'"{self._artifact.sha256}"'}
        with http.stream("GET", url, headers=headers) as response:
            if response.is_error:
                response.read()
            check(response)
            resumed = response.status_code == httpx.codes.PARTIAL_CONTENT
            if not resumed:
                file.truncate(0)
                file.seek(0)
            # Of any size: bytes that wait for a full chunk are lost with the connection.
            for piece in response.iter_bytes():
                file.write(piece)
                if file.tell() > self._artifact.size:
                    self._remove(file)
                    raise ArtifactCorrupt(
                        f"{self._artifact.name}: the server sent more than its {self._artifact.size} bytes"
                    )
        return resumed

    @contextmanager
    def _locked(self) -> Iterator[IO[bytes]]:
        """Open the incomplete file and lock it for this process; the kernel releases the lock if its holder exits."""
        while True:
            with self._partial.open("a+b") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    time.sleep(_LOCK_RETRY_S)
                    continue
                if not self._is_current(file) and not self.target.exists():
                    continue  # its holder renamed or removed it between our open and our lock
                yield file
                return

    def _is_current(self, file: IO[bytes]) -> bool:
        """Return True if the open file still is the incomplete file of that name."""
        found = self._status()
        return found is not None and os.path.samestat(found, os.fstat(file.fileno()))

    def _status(self) -> os.stat_result | None:
        """Return the status of the incomplete file, or None; another process may remove it at any time."""
        try:
            return self._partial.stat()
        except FileNotFoundError:
            return None

    def _remove(self, file: IO[bytes]) -> None:
        if self._is_current(file):
            self._partial.unlink()


def _hash_of(file: IO[bytes]) -> str:
    file.flush()
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
