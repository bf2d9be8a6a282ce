"""The data folder as it is now: files edited or added by hand count without a restart.

A folder with a mistake in it never takes the lab down: the last good content stays in use and the mistakes are shown.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from wqlab_contracts.loading import DataError, DataFolder, load_data

FOLDERS = ("device-types", "kernels", "testplans")
CHECK_EVERY_S = 1.0

log = structlog.get_logger(__name__)

Fingerprint = frozenset[tuple[str, int, int]]


class LiveData:
    """Loads at first use, and again when a file's name, time or size changed. Safe to share between threads."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._good: DataFolder | None = None
        self._problems: tuple[str, ...] = ()
        self._fingerprint: Fingerprint | None = None
        self._checked_at = float("-inf")

    def current(self) -> DataFolder:
        """The newest content without mistakes. Raises DataError when there never was any."""
        with self._lock:
            self._refresh()
            if self._good is None:
                # Load again for the error itself: it carries file, line and key.
                self._good = load_data(self.path)
            return self._good

    def problems(self) -> list[str]:
        """What is wrong with the files as they are now (`file:line: key: message`); empty when all of them count."""
        with self._lock:
            self._refresh()
            return list(self._problems)

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
            # Ours to mend, not the files': they stay unread, so the next look tries again.
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
                continue  # removed while we looked; the next check sees it gone
            found.append((str(path), status.st_mtime_ns, status.st_size))
    return frozenset(found)
