"""The cache folder of a machine: what is in it, who may touch it when, and how files get into it.

Everything here survives the lab and is shared by every worker of the machine. Names are content (a tree, a key, a
hash), files appear by an atomic rename, and whoever makes one holds its lock, so that a killed worker leaves nothing
half made behind.
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
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.messages import Artifact

from .failures import InfrastructureError

log = structlog.get_logger()

Progress = Callable[[str, int, int], None]
"""Called with what is happening, how much is done and how much there is (0: not known). May raise to cancel."""

LOCK_RETRY_S = 1.0
SYSTEM_CA = Path("/etc/ssl/certs/ca-certificates.crt")
_GIT_HOST = re.compile(r"(?:[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::[1-9][0-9]{0,4})?")
_CHUNK = 1 << 20


def no_progress(text: str, done: int, total: int) -> None:
    """For callers that do not care."""


@dataclass(frozen=True)
class Workspace:
    """`cache` is WQLAB_CACHE; `local_git_paths` are the only local paths that git may fetch from."""

    cache: Path
    local_git_paths: tuple[Path, ...] = ()
    jobs: int = 1
    """How many compilers run at once."""
    private_git_hosts: frozenset[str] = frozenset()
    """`host` or `host:port`, in lower case: on the lab's own network, and submitters may fetch from them."""
    ca_file: Path = SYSTEM_CA
    """Certificates (PEM) that https servers of git repositories are checked with."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Workspace:
        """Reads WQLAB_CACHE, WQLAB_LOCAL_GIT_PATHS (colon list), WQLAB_PRIVATE_GIT_HOSTS (comma list), SSL_CERT_FILE
        and WQLAB_BUILD_JOBS (default: all CPUs).

        Raises InfrastructureError when WQLAB_CACHE is not set, or a git host is not one.
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
        return self._folder("mirrors")

    @property
    def sources(self) -> Path:
        return self._folder("sources")

    @property
    def ccache(self) -> Path:
        return self._folder("ccache")

    @property
    def builds(self) -> Path:
        return self._folder("builds")

    @property
    def objects(self) -> Path:
        """What compilers left of trusted builds, by the build's key."""
        return self._folder("objects")

    @property
    def fetched(self) -> Path:
        """Artifacts by SHA-256, whether made here or downloaded."""
        return self._folder("fetched")

    def path_of(self, artifact: Artifact) -> Path:
        """Where the artifact is, or belongs, on this machine."""
        return self.fetched / artifact.sha256

    def keep(self, path: Path, kind: ArtifactKind, name: str) -> Artifact:
        """Enters a file of this workspace under its hash and describes it. The file must not be written again.

        A damaged file that has the name already is replaced.
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
    def lock(self, name: str, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Holds the machine-wide lock `name`; `waiting` is called about once a second until it is free.

        The kernel releases the lock when its holder dies.
        """
        with (self._folder("locks") / name).open("a") as file:
            while not _locked(file.fileno()):
                waiting()
                _wait_a_moment()
            yield

    @contextmanager
    def temporary(self, purpose: str) -> Iterator[Path]:
        """A new empty folder on the cache's filesystem, removed in the end; those of dead workers are removed too."""
        scratch = self._folder("scratch")
        self._sweep(scratch)
        name = f"{purpose}-{secrets.token_hex(6)}"
        marker, folder = scratch / f"{name}.lock", scratch / name
        with marker.open("a") as file:
            _locked(file.fileno())
            folder.mkdir()
            try:
                yield folder
            finally:
                remove_tree(folder)
                marker.unlink(missing_ok=True)

    def _sweep(self, scratch: Path) -> None:
        for marker in scratch.glob("*.lock"):
            with suppress(FileNotFoundError), marker.open("a") as file:
                if _locked(file.fileno()):
                    remove_tree(scratch / marker.stem)
                    marker.unlink(missing_ok=True)

    def _folder(self, name: str) -> Path:
        folder = self.cache / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InfrastructureError(
                f"cannot create {folder}: {error.strerror}", advice="WQLAB_CACHE must be writable by the lab's user."
            ) from error
        return folder


def _git_hosts(text: str) -> frozenset[str]:
    hosts = frozenset(filter(None, (entry.strip().lower() for entry in text.split(","))))
    for host in sorted(hosts):
        if not _GIT_HOST.fullmatch(host):
            raise InfrastructureError(
                f"WQLAB_PRIVATE_GIT_HOSTS: {host!r} is no host",
                advice="Write names or addresses, with a port unless it is the usual one:"
                " git.lab.example,10.1.2.3,git.lab.example:8443,[fd00::1]",
            )
    return hosts


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait_a_moment() -> None:
    # flock has no wait with a timeout, and the waiting worker has to notice that it was canceled.
    threading.Event().wait(LOCK_RETRY_S)


def remove_tree(folder: Path) -> None:
    """Removes what a hostile build may have left: folders without permissions, links, any depth. Follows no link."""
    if subprocess.run(["rm", "-rf", "--", folder], capture_output=True, check=False).returncode != 0:
        subprocess.run(["chmod", "-R", "u+rwx", "--", folder], capture_output=True, check=False)
        subprocess.run(["rm", "-rf", "--", folder], capture_output=True, check=False)


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def has_hash(path: Path, sha256: str) -> bool:
    """Whether `path` is a file that can be read and has this content."""
    try:
        return path.is_file() and sha256_of(path) == sha256
    except OSError:
        return False


def free_bytes(folder: Path) -> int:
    """What an unprivileged user can still write on the filesystem of `folder`."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def open_regular(root: Path, relative: str) -> int:
    """Opens a regular file under `root`, following no link at any step, not even to a folder; read-only.

    For files that submitted code made. Raises OSError when there is no such file or a step is not what it must be.
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
    """Copies a regular file that submitted code made under `root` to `target`.

    Raises OSError when it is missing, reached through a link, no regular file, or larger than `limit` bytes.
    """
    with os.fdopen(open_regular(root, relative), "rb") as source, target.open("xb") as copy:
        left = limit
        while chunk := source.read(min(_CHUNK, left + 1)):
            left -= len(chunk)
            if left < 0:
                raise OSError(f"{relative} is larger than {limit} bytes")
            copy.write(chunk)
