"""Manage the cache folder of a machine: its folders, locks, temporary folders and artifacts.

The cache outlives the lab and is shared by all workers of the machine. Files are named by their content (a tree, a
build key, a hash), appear by an atomic rename and are made under a lock, so a killed worker leaves no incomplete file
behind.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import structlog

from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.messages import Artifact

from .failures import InfrastructureError

log = structlog.get_logger()

Progress = Callable[[str, int, int], None]
"""Called with a description, the amount done and the total (0 if unknown). May raise to cancel the work."""

LOCK_RETRY_S = 1.0
SYSTEM_CA = Path("/etc/ssl/certs/ca-certificates.crt")
_GIT_HOST = re.compile(r"(?:[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::[1-9][0-9]{0,4})?")
_CHUNK = 1 << 20


def no_progress(text: str, done: int, total: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class Workspace:
    """The cache folder of a machine and the settings of jobs that use it."""

    cache: Path
    """Value of WQLAB_CACHE."""
    local_git_paths: tuple[Path, ...] = ()
    """The only local paths from which git may fetch."""
    jobs: int = 1
    """Number of compilers that run at once."""
    private_git_hosts: frozenset[str] = frozenset()
    """Hosts of the lab's own network from which submitters may fetch, as `host` or `host:port` in lower case."""
    ca_file: Path = SYSTEM_CA
    """CA certificates (PEM) with which the https servers of git repositories are verified."""
    holds: ExitStack | None = field(default=None, compare=False, repr=False)
    """Locks that keep the current job's cache entries from being deleted; None outside `session`."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Workspace:
        """Read the settings from environment variables.

        These are WQLAB_CACHE, WQLAB_LOCAL_GIT_PATHS (separated by colons), WQLAB_PRIVATE_GIT_HOSTS (separated by
        commas), SSL_CERT_FILE and WQLAB_BUILD_JOBS (default: all CPUs). Raises InfrastructureError if WQLAB_CACHE is
        not set or a git host is malformed.
        """
        cache = environment.get("WQLAB_CACHE")
        if not cache:
            raise InfrastructureError("WQLAB_CACHE is not set", advice="Set it to a folder that this user can write.")
        paths = environment.get("WQLAB_LOCAL_GIT_PATHS", "")
        jobs = environment.get("WQLAB_BUILD_JOBS") or str(len(os.sched_getaffinity(0)))
        return cls(
            Path(cache).resolve(),
            tuple(Path(path) for path in paths.split(":") if path),
            int(jobs),
            _git_hosts(environment.get("WQLAB_PRIVATE_GIT_HOSTS", "")),
            Path(environment.get("SSL_CERT_FILE") or SYSTEM_CA),
        )

    @property
    def mirrors(self) -> Path:
        return self.folder("mirrors")

    @property
    def sources(self) -> Path:
        return self.folder("sources")

    @property
    def ccache(self) -> Path:
        return self.folder("ccache")

    @property
    def builds(self) -> Path:
        return self.folder("builds")

    @property
    def objects(self) -> Path:
        """Folder of the object files of trusted builds, by build key."""
        return self.folder("objects")

    @property
    def fetched(self) -> Path:
        """Folder of artifacts by SHA-256, made here or downloaded."""
        return self.folder("fetched")

    def path_of(self, artifact: Artifact) -> Path:
        """Return the path of the artifact on this machine; the file need not exist."""
        return self.fetched / artifact.sha256

    def keep(self, path: Path, kind: ArtifactKind, name: str) -> Artifact:
        """Link a file of this workspace into `fetched` under its hash and return its description.

        The file must not be written again. A damaged file of that name is replaced.
        """
        digest = sha256_of(path)
        target = self.fetched / digest
        try:
            os.link(path, target)
        except FileExistsError:
            if not has_hash(target, digest):
                log.error("cached artifact is damaged; replacing it", path=str(target), name=name)
                fresh = self.fetched / f".keep-{secrets.token_hex(6)}"
                os.link(path, fresh)
                fresh.replace(target)
        return Artifact(sha256=digest, size=target.stat().st_size, kind=kind, name=name)

    @contextmanager
    def session(self) -> Iterator[Workspace]:
        """Return a workspace for one job: what the job uses is not deleted by retention until the session ends."""
        with ExitStack() as holds:
            yield replace(self, holds=holds)

    def use(self, path: Path) -> None:
        """Set the time of last use of a cache entry to now. Call this before you check whether the entry exists.

        In a session, retention does not delete the entry before the session ends.
        """
        file = _open_locked(self._marker(path), fcntl.LOCK_SH)
        os.utime(file.fileno())
        if self.holds is None:
            file.close()
        else:
            self.holds.enter_context(file)

    def used_at(self, path: Path) -> float:
        """Return when the entry was last used or made, in seconds since the epoch. Raises FileNotFoundError."""
        made_at = path.lstat().st_mtime
        with suppress(FileNotFoundError):
            return max(made_at, self._marker(path).stat().st_mtime)
        return made_at

    def discard(self, path: Path) -> bool:
        """Delete an entry of the cache unless a session uses it; return True if it is gone.

        It is renamed under the entry's lock, so that no job finds a part of it.
        """
        marker = self._marker(path)
        try:
            file = _open_locked(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        with file, self.temporary("old") as trash:
            for part in (path, path.with_name(f"{path.name}.index")):
                with suppress(FileNotFoundError):
                    part.rename(trash / part.name)
            marker.unlink(missing_ok=True)
        return True

    def _marker(self, path: Path) -> Path:
        return self.folder("used") / f"{path.parent.name}-{path.name}"

    @contextmanager
    def lock(self, name: str, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Hold the machine-wide lock `name`. Until it is free, `waiting` is called about once a second.

        The kernel releases the lock if its holder exits.
        """
        path = self.folder("locks") / name
        while True:
            with path.open("a") as file:
                while not _try_lock(file.fileno()):
                    waiting()
                    _sleep_briefly()
                if not _is_current(path, file):
                    continue  # retention removed it between our open and our lock
                os.utime(file.fileno())
                yield
                return

    @contextmanager
    def try_lock(self, name: str) -> Iterator[bool]:
        """Hold the machine-wide lock `name` if it is free; yield whether it was."""
        with (self.folder("locks") / name).open("a") as file:
            yield _try_lock(file.fileno())

    def remove_lock(self, path: Path) -> None:
        """Remove a lock file unless its lock is held."""
        with path.open("a") as file:
            if _try_lock(file.fileno()):
                path.unlink(missing_ok=True)

    @contextmanager
    def temporary(self, purpose: str) -> Iterator[Path]:
        """Make an empty folder in the cache and remove it at the end; also remove those of dead workers."""
        scratch = self.folder("scratch")
        self._remove_abandoned(scratch)
        name = f"{purpose}-{secrets.token_hex(6)}"
        marker, folder = scratch / f"{name}.lock", scratch / name
        with marker.open("a") as file:
            _try_lock(file.fileno())
            folder.mkdir()
            try:
                yield folder
            finally:
                remove_tree(folder)
                marker.unlink(missing_ok=True)

    def _remove_abandoned(self, scratch: Path) -> None:
        """Remove the temporary folders whose lock is free."""
        for marker in scratch.glob("*.lock"):
            with suppress(FileNotFoundError), marker.open("a") as file:
                if _try_lock(file.fileno()):
                    remove_tree(scratch / marker.stem)
                    marker.unlink(missing_ok=True)

    def folder(self, name: str) -> Path:
        """Return a folder of the cache, made if it is missing. Raises InfrastructureError."""
        folder = self.cache / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InfrastructureError(
                f"cannot create {folder}: {error.strerror}", advice="Make WQLAB_CACHE writable for the lab's user."
            ) from error
        return folder


def _git_hosts(text: str) -> frozenset[str]:
    hosts = frozenset(filter(None, (entry.strip().lower() for entry in text.split(","))))
    for host in sorted(hosts):
        if not _GIT_HOST.fullmatch(host):
            raise InfrastructureError(
                f"WQLAB_PRIVATE_GIT_HOSTS: {host!r} is not a host",
                advice="Write names or addresses, with a port unless it is the default one:"
                " git.lab.example,10.1.2.3,git.lab.example:8443,[fd00::1]",
            )
    return hosts


def _open_locked(path: Path, operation: int) -> IO[str]:
    """Open the file and lock it by flock(2). Raises BlockingIOError for a lock of others and LOCK_NB."""
    while True:
        file = path.open("a")
        try:
            fcntl.flock(file, operation)
        except BlockingIOError:
            file.close()
            raise
        if _is_current(path, file):
            return file
        file.close()


def _is_current(path: Path, file: IO[str]) -> bool:
    """Return True if the open file still has this path."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sleep_briefly() -> None:
    # flock(2) has no timeout, and a waiting worker must notice that its job was canceled.
    threading.Event().wait(LOCK_RETRY_S)


def remove_tree(folder: Path) -> None:
    """Remove a folder that a hostile build may have filled, with any permissions, links and depth.

    Links are not followed.
    """
    if subprocess.run(["rm", "-rf", "--", folder], capture_output=True, check=False).returncode != 0:
        subprocess.run(["chmod", "-R", "u+rwx", "--", folder], capture_output=True, check=False)
        subprocess.run(["rm", "-rf", "--", folder], capture_output=True, check=False)


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def has_hash(path: Path, sha256: str) -> bool:
    """Return True if `path` is a readable file with this SHA-256."""
    try:
        return path.is_file() and sha256_of(path) == sha256
    except OSError:
        return False


def free_bytes(folder: Path) -> int:
    """Return the bytes that an unprivileged user can still write on the filesystem of `folder`."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def open_regular(root: Path, relative: str) -> int:
    """Open a regular file under `root` for reading without following any link, and return its descriptor.

    Use it for files that submitted code made. Raises OSError if there is no such file, a folder on the path is a link,
    or the file is not a regular one.
    """
    *folders, name = Path(relative).parts
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=descriptor)
    finally:
        os.close(descriptor)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(f"{relative} is not a regular file")
    return file


def collect(root: Path, relative: str, target: Path, limit: int) -> None:
    """Copy a regular file that submitted code made under `root` to the new file `target`.

    Raises OSError if the file is missing, reached through a link, not a regular file, or larger than `limit` bytes.
    """
    with os.fdopen(open_regular(root, relative), "rb") as source, target.open("xb") as copy:
        left = limit
        while chunk := source.read(min(_CHUNK, left + 1)):
            left -= len(chunk)
            if left < 0:
                raise OSError(f"{relative} is larger than {limit} bytes")
            copy.write(chunk)
