"""Load the data folder, and reload it after a change without a restart.

An invalid folder does not stop the lab: the last valid content stays in use, and the problems are shown.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from wqlab_contracts.loading import DataError, DataFolder, load_data

FOLDERS = ("device-types", "kernels", "testplans", "intake")
CHECK_EVERY_S = 1.0

log = structlog.get_logger(__name__)

Fingerprint = frozenset[tuple[str, int, int]]


class LiveData:
    """The data folder, loaded at first use and reloaded when a file's name, time or size changes. Thread-safe."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._good: DataFolder | None = None
        self._problems: tuple[str, ...] = ()
        self._fingerprint: Fingerprint | None = None
        self._checked_at = float("-inf")
        self._digests: tuple[Fingerprint | None, dict[str, str]] | None = None

    def current(self) -> DataFolder:
        """Return the newest valid content. Raises DataError if there never was any."""
        with self._lock:
            self._refresh()
            if self._good is None:
                # Load again to raise the error itself, which carries file, line and key.
                self._good = load_data(self.path)
            return self._good

    def problems(self) -> list[str]:
        """Return the problems of the current files as `file:line: key: message`; empty if all files are valid."""
        with self._lock:
            self._refresh()
            return list(self._problems)

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each file by its path in the folder, valid or not."""
        with self._lock:
            self._refresh()
            if self._digests is None or self._digests[0] != self._fingerprint:
                self._digests = (self._fingerprint, _digests(self.path))
            return dict(self._digests[1])

    def _refresh(self) -> None:
        now = self._clock()
        if now - self._checked_at < CHECK_EVERY_S:
            return
        self._checked_at = now
        fingerprint = _fingerprint(self.path)
        if fingerprint == self._fingerprint:
            return
        try:
            self._good = load_data(self.path)
            self._problems = ()
        except DataError as error:
            self._problems = tuple(str(problem) for problem in error.problems)
            log.warning("data_folder_broken", problems=self._problems)
        except Exception as error:
            # A bug, not an invalid file. The fingerprint stays unset, so the next refresh tries again.
            self._problems = (f"the data folder cannot be loaded: {error!r}",)
            log.exception("data_folder_not_loaded")
            return
        self._fingerprint = fingerprint


def _fingerprint(root: Path) -> Fingerprint:
    found = []
    for folder in FOLDERS:
        for path in (root / folder).rglob("*"):
            try:
                status = path.stat()
            except OSError:
                continue  # removed in the meantime; the next check sees the change
            found.append((str(path), status.st_mtime_ns, status.st_size))
    return frozenset(found)


def _digests(root: Path) -> dict[str, str]:
    found = {}
    for folder in FOLDERS:
        for path in (root / folder).rglob("*"):
            try:
                if path.is_file():
                    found[str(path.relative_to(root))] = hashlib.sha256(path.read_bytes()).hexdigest()
            except OSError:
                continue  # removed in the meantime; the next check sees the change
    return found
