"""Let other hosts make boots of a run, while this host makes boots of it as well.

A thread tells the server which boots are needed and takes what other hosts have made. Whatever fails there is logged
and has no other effect: this host makes every boot that does not arrive.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import structlog

from wqlab_contracts.enums import Arm, JobState
from wqlab_contracts.messages import Artifact
from wqlab_contracts.messages.shared_boots import (
    SHARED_LIMIT,
    SeededBoot,
    ShareAnswer,
    SharedBootView,
    initramfs_name,
)

from .boots import Boots
from .emulator import Ended, Seeded

log = structlog.get_logger()

INTERVAL_S = 2.0
"""Time between two messages while other hosts make boots."""
ALONE_INTERVAL_S = 10.0
"""Time between two questions for other hosts. The server counts this host as busy meanwhile."""


@dataclass(frozen=True)
class Offer:
    """Boots of a run that other hosts may make, and what they need for them."""

    boots: list[SeededBoot]
    initramfs: dict[Arm, str]
    """SHA-256 of the initramfs of each kernel, once it is uploaded."""
    layouts: dict[Arm, str]
    """Data layout of each kernel, where it is known."""
    emulator: str
    limit_s: float


class OtherHosts(Protocol):
    """The server, which knows the other hosts of a run. Calls may raise any exception."""

    def share(self, offer: Offer) -> ShareAnswer:
        """Replace the run's earlier offer."""

    def upload(self, path: Path, name: str) -> Artifact: ...

    def fetch(self, artifact: Artifact, folder: Path) -> Path: ...

    def interrupt(self) -> None:
        """Let calls that wait for the server end soon."""


class Sharing:
    """Context manager with the thread that shares boots of a run. `planned` are the boots of the run's blocks."""

    def __init__(
        self,
        boots: Boots,
        hosts: OtherHosts,
        planned: Collection[Seeded],
        *,
        initramfs: Mapping[Arm, Path],
        layouts: Mapping[Arm, Path],
        emulator: Callable[[], str],
        folder: Path,
        limit_s: float,
    ) -> None:
        self._boots = boots
        self._hosts = hosts
        self._planned = frozenset(planned)
        self._initramfs = initramfs
        self._layouts = layouts
        self._emulator = emulator
        self._folder = folder
        self._limit_s = limit_s
        self._uploaded: dict[Arm, str] = {}
        self._held: set[Seeded] = set()
        """Boots that other hosts are making."""
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._share_repeatedly, name="sharing", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        self._hosts.interrupt()
        self._thread.join()

    def _share_repeatedly(self) -> None:
        pause = 0.0
        reported = ""
        while not self._closed.wait(pause):
            try:
                pause = INTERVAL_S if self._exchange() else ALONE_INTERVAL_S
            except Exception as error:
                pause = ALONE_INTERVAL_S
                if not self._closed.is_set() and repr(error) != reported:
                    reported = repr(error)
                    log.warning("boots not shared; this host makes them", error=reported)

    def _exchange(self) -> bool:
        """Tell the server what is needed and take what was made. Return True if there are other hosts."""
        needed = self._needed()
        answer = self._share(needed)
        if answer.hosts and needed and not self._uploaded:
            self._uploaded = self._upload()
            answer = self._share(self._needed())
        self._held = {(boot.arm, boot.seed) for boot in answer.boots if boot.state is JobState.RUNNING}
        for boot in answer.boots:
            if boot.files is not None and not self._closed.is_set():
                self._take(boot)
        return answer.hosts > 0 or bool(self._held)

    def _needed(self) -> list[Seeded]:
        """Return the boots that another host may make: this host has not begun with them, or the other host has too."""
        return [
            boot
            for boot, is_running in self._boots.unfinished()
            if boot in self._planned and (not is_running or boot in self._held)
        ]

    def _share(self, boots: Sequence[Seeded]) -> ShareAnswer:
        layouts = {arm: path.read_text() for arm, path in self._layouts.items()}
        needed = [SeededBoot(arm=arm, seed=seed) for arm, seed in boots[:SHARED_LIMIT]]
        return self._hosts.share(Offer(needed, self._uploaded, layouts, self._emulator(), self._limit_s))

    def _upload(self) -> dict[Arm, str]:
        """Upload the initramfs of each kernel, equal ones once. Return their SHA-256."""
        uploaded: dict[str, str] = {}
        found = {}
        for arm, path in self._initramfs.items():
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest not in uploaded:
                uploaded[digest] = self._hosts.upload(path, initramfs_name(arm)).sha256
            found[arm] = uploaded[digest]
        return found

    def _take(self, boot: SharedBootView) -> None:
        """Download the files of a boot that another host has made, unless this host has made it meanwhile."""
        key = (boot.arm, boot.seed)
        if boot.files is None or key not in {each for each, _ in self._boots.unfinished()}:
            return
        ended = Ended(
            console=self._hosts.fetch(boot.files.console, self._folder),
            output=self._hosts.fetch(boot.files.output, self._folder),
            status=0,
            stderr=boot.files.stderr,
            seconds=boot.files.seconds,
            timed_out=False,
        )
        if self._boots.deliver(key, ended):
            log.info("boot made by another host", arm=boot.arm, seed=boot.seed, worker=boot.holder)
