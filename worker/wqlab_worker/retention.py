"""Delete what a machine's cache and logs need no more, by age, by size and by free space.

Everything in the cache can be made again. Each entry (a mirror, a checkout, a kernel, its object files, an artifact) is
deleted when it has not been used for long, or when the cache is too large or its volume nearly full; then those used
longest ago go first. An entry that a job uses, or that a lab's `pins/` file names, stays.
"""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import structlog

from wqlab_contracts.messages.storage import StorageArea, StorageUse

from .limits import GIB
from .watch import disk_usage
from .workspace import Workspace, free_bytes

log = structlog.get_logger()

INTERVAL_S = 600.0
LOW_SPACE_INTERVAL_S = 30.0
JOB_NEEDS_BYTES = 64 << 20
"""Free bytes without which no job can succeed."""
KEEP_AT_LEAST_S = 3600.0
"""An entry used within this time stays, whatever the space: its job may not have registered it yet."""
SESSION_LOG_BYTES = GIB
"""Size of all logs of device sessions."""


@dataclass(frozen=True)
class Limits:
    """Limits on the size and the age of what a machine keeps."""

    cache_bytes: int = 60 * GIB
    keep_days: float = 30.0
    reserve_bytes: int = 6 * GIB
    """Free bytes of the cache's volume below which entries are deleted before their time. A build needs 4 GiB."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Limits:
        """Read WQLAB_CACHE_BYTES, WQLAB_CACHE_KEEP_DAYS and WQLAB_CACHE_RESERVE_BYTES. Raises ValueError."""
        given = {}
        for name, variable in (
            ("cache_bytes", "WQLAB_CACHE_BYTES"),
            ("keep_days", "WQLAB_CACHE_KEEP_DAYS"),
            ("reserve_bytes", "WQLAB_CACHE_RESERVE_BYTES"),
        ):
            if text := environment.get(variable):
                try:
                    given[name] = float(text) if name == "keep_days" else int(text)
                except ValueError:
                    raise ValueError(f"{variable}={text} is not a number") from None
        return cls(**given)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Area:
    """A folder of the cache and which of its entries can be deleted; without a pattern it is only measured."""

    folder: str
    summary: str
    pattern: str | None = None


_AREAS = (
    _Area("mirrors", "mirrors of kernel trees", "*.git"),
    _Area("sources", "checked-out base commits", "*[0-9a-f]"),
    _Area("builds", "built kernels", "*[0-9a-f]"),
    _Area("objects", "object files of base kernels", "*[0-9a-f]"),
    _Area("fetched", "downloaded kernels, bundles and mboxes", "*"),
    _Area("rootfs", "root filesystems of emulated devices", "*.cpio"),
    _Area("own-systems", "partitions of rehearsal machines", "*.ext4"),
    _Area("web", "built web pages and their packages", "pages-*"),
    _Area("docs", "built documentation", "site-*"),
    _Area("ccache", "compiler cache, which has its own limit of 5 GiB"),
    _Area("apt", "Debian packages"),
    _Area("model-qemu", "emulator of modelled devices, and its source"),
    _Area("scratch", "files of running jobs"),
)


@dataclass
class _Entry:
    area: str
    path: Path
    bytes: int
    used_at: float
    pinned: bool


@dataclass
class _Listing:
    entries: list[_Entry] = field(default_factory=list)
    measured: dict[str, int] = field(default_factory=dict)
    """Folder without deletable entries -> its bytes."""

    @property
    def total(self) -> int:
        return sum(entry.bytes for entry in self.entries) + sum(self.measured.values())


def clean(workspace: Workspace, limits: Limits, now: float, needed_bytes: int = 0) -> list[StorageArea]:
    """Delete cache entries that exceed the limits of age or size; return the use of each area of the cache.

    `now` is in seconds since the epoch. `needed_bytes` is the free space that a job needs, if that is more than the
    reserve.
    """
    found = _list(workspace)
    reserve = max(limits.reserve_bytes, needed_bytes)
    for entry in sorted(found.entries, key=lambda each: each.used_at):
        age_s = now - entry.used_at
        if age_s < KEEP_AT_LEAST_S:
            break
        too_large = found.total > limits.cache_bytes or free_bytes(workspace.cache) < reserve
        if entry.pinned or (age_s < limits.keep_days * 86400 and not too_large):
            continue
        if workspace.discard(entry.path):
            log.info("deleted by retention", path=str(entry.path), bytes=entry.bytes, unused_s=round(age_s))
            found.entries.remove(entry)
            # The artifacts of a build are links to its files; with the build gone, they are entries of their own.
            if entry.area == "builds":
                _drop_links(workspace, now - KEEP_AT_LEAST_S)
    _remove_locks(workspace, now - limits.keep_days * 86400)
    return _areas(workspace, limits, found)


def make_space(workspace: Workspace, needed_bytes: int) -> None:
    """Delete the entries used longest ago until `needed_bytes` are free on the cache's volume, if that is possible."""
    if free_bytes(workspace.cache) < needed_bytes:
        clean(workspace, Limits.from_environment(), datetime.now(UTC).timestamp(), needed_bytes)


def has_room_for_a_job(workspace: Workspace) -> bool:
    """Return True if a job may begin: JOB_NEEDS_BYTES are free on the cache's volume, also after making space.

    A job on a full volume would only use up its attempts. It stays in the queue instead, and its message is repeated.
    """
    workspace.cache.mkdir(parents=True, exist_ok=True)
    make_space(workspace, JOB_NEEDS_BYTES)
    free = free_bytes(workspace.cache)
    if free < JOB_NEEDS_BYTES:
        log.error("no job is claimed, because the cache's volume is full", cache=str(workspace.cache), free_bytes=free)
    return free >= JOB_NEEDS_BYTES


def _list(workspace: Workspace) -> _Listing:
    found, pins = _Listing(), _pins(workspace.cache)
    for area in _AREAS:
        folder = workspace.cache / area.folder
        if not folder.is_dir():
            continue
        if area.pattern is None:
            found.measured[area.folder] = disk_usage(folder)
            continue
        for path in folder.glob(area.pattern):
            if path.name.startswith("."):
                continue
            with suppress(FileNotFoundError):
                status = path.lstat()
                if area.folder == "fetched" and status.st_nlink > 1:
                    continue  # a link to a file of a kept build
                size = disk_usage(path) if path.is_dir() else status.st_blocks * 512
                pinned = any(pin == path or path in pin.parents or pin in path.parents for pin in pins)
                found.entries.append(_Entry(area.folder, path, size, workspace.used_at(path), pinned))
    return found


def _pins(cache: Path) -> set[Path]:
    """Return the paths that the labs of this machine need to start: golden kernels, root filesystems, pages."""
    found: set[Path] = set()
    for file in (cache / "pins").glob("*.json"):
        try:
            pins = json.loads(file.read_text())
            if Path(pins["state"]).is_dir():
                found |= {Path(path) for path in pins["paths"]}
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.error("pins cannot be read", path=str(file), error=repr(error))
    return found


def _drop_links(workspace: Workspace, unused_since: float) -> None:
    """Remove the artifacts that were links to files of a deleted build, unless a job uses them."""
    for path in workspace.fetched.iterdir():
        if not path.name.startswith(".") and path.stat().st_nlink == 1 and workspace.used_at(path) < unused_since:
            workspace.discard(path)


def _remove_locks(workspace: Workspace, older_than: float) -> None:
    """Remove the lock files of keys that no job has used since."""
    for path in (workspace.cache / "locks").glob("*-*"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < older_than:
                workspace.remove_lock(path)


def _areas(workspace: Workspace, limits: Limits, found: _Listing) -> list[StorageArea]:
    free = free_bytes(workspace.cache)
    deletable = [entry.used_at for entry in found.entries if not entry.pinned]
    is_over = found.total > limits.cache_bytes or free < limits.reserve_bytes
    areas = [
        StorageArea(
            name="cache",
            summary="everything that can be made again",
            place=str(workspace.cache),
            bytes=found.total,
            entries=len(found.entries),
            pinned_bytes=sum(entry.bytes for entry in found.entries if entry.pinned),
            limit_bytes=limits.cache_bytes,
            keep_s=limits.keep_days * 86400,
            free_bytes=free,
            reserve_bytes=limits.reserve_bytes,
            next_deletion_at=_next(deletable, limits.keep_days),
            problem="what is pinned, in use or recent exceeds the limit: raise it, or use a larger volume"
            if is_over
            else "",
        )
    ]
    for area in _AREAS:
        entries = [entry for entry in found.entries if entry.area == area.folder]
        size = sum(entry.bytes for entry in entries) + found.measured.get(area.folder, 0)
        if size:
            ages = [entry.used_at for entry in entries if not entry.pinned]
            areas.append(
                StorageArea(
                    name=f"cache/{area.folder}",
                    summary=area.summary,
                    place=str(workspace.cache / area.folder),
                    bytes=size,
                    entries=len(entries),
                    pinned_bytes=sum(entry.bytes for entry in entries if entry.pinned),
                    next_deletion_at=_next(ages, limits.keep_days),
                )
            )
    return areas


def _next(used_at: list[float], keep_days: float) -> datetime | None:
    return datetime.fromtimestamp(min(used_at), UTC) + timedelta(days=keep_days) if used_at else None


def clean_logs(state: Path, keep_days: float, now: float) -> list[StorageArea]:
    """Delete old logs of device sessions, and return what uses the state folder's logs and bench consoles."""
    kept: list[tuple[float, int]] = []
    total = 0
    for used_at, size, path in sorted(_files(state / "log" / "sessions"), reverse=True):
        if now - used_at > KEEP_AT_LEAST_S and (now - used_at > keep_days * 86400 or total + size > SESSION_LOG_BYTES):
            path.unlink(missing_ok=True)
            continue
        total += size
        kept.append((used_at, size))
    programs = [size for _, size, path in _files(state / "log") if path.parent == state / "log"]
    consoles = [size for _, size, _ in _files(state / "bench" / "consoles")]
    return [
        StorageArea(
            name="logs/sessions",
            summary="logs of device sessions",
            place=str(state / "log" / "sessions"),
            bytes=total,
            entries=len(kept),
            limit_bytes=SESSION_LOG_BYTES,
            keep_s=keep_days * 86400,
            next_deletion_at=_next([used_at for used_at, _ in kept], keep_days),
        ),
        StorageArea(
            name="logs",
            summary="logs of the lab's programs; each is rotated at 20 MB",
            place=str(state / "log"),
            bytes=sum(programs),
            entries=len(programs),
        ),
        StorageArea(
            name="bench",
            summary="consoles of the last boots of emulated devices",
            place=str(state / "bench" / "consoles"),
            bytes=sum(consoles),
            entries=len(consoles),
        ),
    ]


def _files(folder: Path) -> Iterator[tuple[float, int, Path]]:
    """Yield (modification time, allocated bytes, path) of the files below a folder."""
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            status = path.lstat()
            if path.is_file():
                yield status.st_mtime, status.st_blocks * 512, path


class Keeper:
    """Periodic retention on this machine, in one of its processes at a time."""

    def __init__(self, workspace: Workspace, state: Path, limits: Limits) -> None:
        self._workspace, self._state, self._limits = workspace, state, limits

    def run_when_due(self) -> list[StorageArea]:
        """Run a pass unless another process has done so recently; return the areas, empty without a pass."""
        now = datetime.now(UTC).timestamp()
        is_low = free_bytes(self._workspace.cache) < self._limits.reserve_bytes
        stamp = self._workspace.folder("used") / "last-pass"
        with self._workspace.try_lock("retention") as locked:
            if not locked or now - _modified(stamp) < (LOW_SPACE_INTERVAL_S if is_low else INTERVAL_S):
                return []
            areas = [
                *clean(self._workspace, self._limits, now),
                *clean_logs(self._state, self._limits.keep_days, now),
            ]
            stamp.touch()
        return areas


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def start(keeper: Keeper, publish: Callable[[StorageUse], None]) -> threading.Thread:
    """Start the thread of the keeper, which runs until the process ends; each pass is reported with `publish`."""
    machine = re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname()).lstrip("_.-")[:64] or "unnamed"
    pause = threading.Event()

    def forever() -> None:
        while True:
            try:
                if areas := keeper.run_when_due():
                    publish(StorageUse(machine=machine, areas=areas))
            except Exception as error:
                # Whatever fails here must not end the thread: the volume would fill.
                log.warning("retention failed; it tries again", error=repr(error))
            pause.wait(LOW_SPACE_INTERVAL_S)

    thread = threading.Thread(target=forever, name="retention", daemon=True)
    thread.start()
    return thread
