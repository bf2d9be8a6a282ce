"""Artifacts on this machine: kept under their hash, and a download that was cut off goes on where it stopped."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx
import structlog

from wqlab_contracts.messages import Artifact

log = structlog.get_logger()

CHUNK = 1 << 20
_LOOK_AGAIN_S = 0.5

Check = Callable[[httpx.Response], None]
"""Raises for an answer that is an error."""
Wait = Callable[[float], bool]
"""Sleeps for so many seconds, and says whether to give up."""


class ArtifactCorrupt(Exception):
    """What the server sent has not the hash that it was asked for."""


class Interrupted(httpx.TransportError):
    """Told to stop while another process was downloading the same."""


class Download:
    """One artifact's way to `folder/<sha256>`. What has come stays in `.partial-<sha256>` until it is whole."""

    def __init__(self, artifact: Artifact, folder: Path) -> None:
        self._artifact = artifact
        self.target = folder / artifact.sha256
        self._partial = folder / f".partial-{artifact.sha256}"

    def there(self) -> bool:
        """Whether it is here and undamaged: hashed before every use."""
        if not self.target.exists():
            return False
        if sha256_of(self.target) == self._artifact.sha256:
            return True
        log.error("cached artifact is damaged; fetching it again", path=str(self.target))
        self.target.unlink(missing_ok=True)
        return False

    def come(self) -> int:
        """Bytes that need not be asked for again."""
        return found.st_size if (found := self._status()) else 0

    def run(self, http: httpx.Client, url: str, check: Check, wait: Wait) -> None:
        """Asks once for what is missing, while no other process of this machine does.

        Raises httpx.TransportError with what came kept, and ArtifactCorrupt with nothing kept.
        """
        self.target.parent.mkdir(parents=True, exist_ok=True)
        with self._locked(wait) as file:
            if self.target.exists():
                self._drop(file)
                return
            resumed = self._receive(file, http, url, check)
            found = _hash_of(file)
            if found != self._artifact.sha256 and resumed:
                # What was kept may have been hurt by a power cut: only a download in one piece speaks for the server.
                log.error("resumed download is damaged; starting it again", artifact=self._artifact.name)
                file.truncate(0)
                self._receive(file, http, url, check)
                found = _hash_of(file)
            if found != self._artifact.sha256:
                self._drop(file)
                raise ArtifactCorrupt(
                    f"{self._artifact.name}: the server sent bytes with sha256 {found}, not {self._artifact.sha256}"
                )
            self._partial.replace(self.target)

    def _receive(self, file: IO[bytes], http: httpx.Client, url: str, check: Check) -> bool:
        """Appends the rest to `file`. Whether there was a beginning to go on from."""
        start = file.seek(0, 2)
        if start >= self._artifact.size:  # whole already, but for the move; or not ours at all
            return start > 0
        headers = {"Accept-Encoding": "identity"}
        if start:
            headers |= {"Range": f"bytes={start}-", "If-Range": f'"{self._artifact.sha256}"'}
        with http.stream("GET", url, headers=headers) as answer:
            if answer.is_error:
                answer.read()
            check(answer)
            resumed = answer.status_code == httpx.codes.PARTIAL_CONTENT
            if not resumed:
                file.truncate(0)
                file.seek(0)
            for piece in answer.iter_bytes():  # as they come: what waits to fill a piece is lost with the line
                file.write(piece)
        return resumed

    @contextmanager
    def _locked(self, wait: Wait) -> Iterator[IO[bytes]]:
        """The partial file, for this process alone; the kernel frees it when its holder dies."""
        while True:
            with self._partial.open("a+b") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if wait(_LOOK_AGAIN_S):
                        raise Interrupted(f"{self._artifact.name}: stopped while another session fetches it") from None
                    continue
                if not self._same(file) and not self.target.exists():
                    continue  # its holder finished, or dropped it, between our open and our lock
                yield file
                return

    def _same(self, file: IO[bytes]) -> bool:
        """Whether the open file still has its name."""
        found = self._status()
        return found is not None and os.path.samestat(found, os.fstat(file.fileno()))

    def _status(self) -> os.stat_result | None:
        """Of the partial file. None without one: another process may take it away at any time."""
        try:
            return self._partial.stat()
        except FileNotFoundError:
            return None

    def _drop(self, file: IO[bytes]) -> None:
        if self._same(file):
            self._partial.unlink()


def _hash_of(file: IO[bytes]) -> str:
    file.flush()
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
