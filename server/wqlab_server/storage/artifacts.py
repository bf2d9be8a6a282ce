"""Store artifacts by their SHA-256 in a local folder or an S3 bucket (content-addressed storage).

Both stores behave the same: an artifact becomes visible after all its bytes have been received and its hash verified,
never partially; it is read whole or by range, and never changes.
"""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, Protocol, Self, cast
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, S3Store

FULL_VOLUME = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of a write to a volume without space, or beyond the user's quota."""
_FAN_OUT = 2
_PARTIAL = ".partial-"
_CHUNK = 1 << 18
# A request waits for these retries, and its sender repeats the request: a clear error soon is better.
_RETRIES = {"max_retries": 4, "retry_timeout": timedelta(seconds=20)}

_CONNECTION_OPTIONS = (
    "allow_http",
    "connect_timeout",
    "timeout",
    "proxy_url",
    "proxy_ca_certificate",
    "proxy_excludes",
)


class ArtifactMismatch(Exception):
    """The received bytes do not have the announced hash."""


class ArtifactTooLarge(Exception):
    """The artifact exceeds the size limit."""


class StoreUnavailable(Exception):
    """The store does not answer or refuses the request; the message names the store and the reason."""


class StoreFull(StoreUnavailable):
    """The volume of the store has no space left; the message names the folder and the bytes that are free."""


class StoreMisconfigured(ValueError):
    """A setting of the store is invalid; the message names the setting and the fix."""


class StoreSettings(Protocol):
    """Settings that say where artifacts are stored, and how many bytes."""

    @property
    def artifact_dir(self) -> Path: ...
    @property
    def artifact_limit(self) -> int: ...
    @property
    def artifact_url(self) -> str: ...
    @property
    def artifact_options(self) -> Path | None: ...


@dataclass(frozen=True)
class StoredFile:
    """A file in the store."""

    sha256: str
    size: int
    """In bytes."""
    stored_at: datetime


class ArtifactStore:
    """Content-addressed store. Every method may raise StoreUnavailable."""

    def __init__(self, store: LocalStore | S3Store, spool: Path, limit: int, *, name: str) -> None:
        self._store = store
        self._spool = spool
        self._limit = limit
        self._name = name

    @classmethod
    def of(cls, settings: StoreSettings) -> ArtifactStore:
        """Return the store that the settings name, without connecting to it. Raises StoreMisconfigured."""
        folder, limit = settings.artifact_dir.absolute(), settings.artifact_limit
        if not settings.artifact_url:
            return cls(LocalStore(folder, mkdir=True), folder, limit, name=str(folder))
        store = _make_s3_store(settings.artifact_url, settings.artifact_options)
        folder.mkdir(parents=True, exist_ok=True)
        return cls(store, folder, limit, name=settings.artifact_url)

    # --- reading ----------------------------------------------------------------------------------------------------

    def size(self, sha256: str) -> int:
        """Return the artifact's size in bytes. Raises FileNotFoundError."""
        with self._translating_errors():
            return obstore.head(self._store, _key(sha256))["size"]

    def has(self, sha256: str) -> bool:
        """Return True if the artifact is stored."""
        try:
            self.size(sha256)
        except FileNotFoundError:
            return False
        return True

    def read(self, sha256: str) -> bytes:
        """Return the whole content; only for artifacts that are known to be small. Raises FileNotFoundError."""
        with self._translating_errors():
            return bytes(obstore.get(self._store, _key(sha256)).bytes())

    def chunks(self, sha256: str) -> Iterator[bytes]:
        """Yield the whole content in chunks: the caller never holds all of it in memory. Raises FileNotFoundError."""
        with self._translating_errors():
            for chunk in obstore.get(self._store, _key(sha256)).stream(min_chunk_size=_CHUNK):
                yield bytes(chunk)

    async def stream(self, sha256: str, start: int, end: int) -> AsyncIterator[bytes]:
        """Yield the bytes from `start` up to, but not including, `end`, in chunks. Raises FileNotFoundError."""
        if start == end:
            return
        with self._translating_errors():
            found = await obstore.get_async(self._store, _key(sha256), options={"range": (start, end)})
            async for chunk in found.stream(min_chunk_size=_CHUNK):
                yield bytes(chunk)

    @property
    def name(self) -> str:
        """Folder or URL of the store."""
        return self._name

    def files(self) -> Iterator[StoredFile]:
        """Yield every stored artifact."""
        with self._translating_errors():
            for batch in obstore.list(self._store):
                for found in batch:
                    sha256 = found["path"].rpartition("/")[2]
                    if len(sha256) == hashlib.sha256().digest_size * 2:
                        yield StoredFile(sha256, found["size"], found["last_modified"])

    def free_bytes(self) -> int | None:
        """Return the bytes that can still be written to the store's volume; None for a bucket."""
        if not isinstance(self._store, LocalStore):
            return None
        try:
            status = os.statvfs(self._spool)
        except OSError as error:
            raise StoreUnavailable(f"the artifact store {self._name} cannot be used: {error.strerror}") from error
        return status.f_bavail * status.f_frsize

    def check(self) -> None:
        """Send one request to the store, to find a problem at startup. Raises StoreUnavailable."""
        try:
            with self._translating_errors():
                for _ in obstore.list(self._store, prefix="00", chunk_size=1):
                    return
        except FileNotFoundError as error:
            raise StoreUnavailable(f"the artifact store {self._name} does not exist: create the bucket") from error

    # --- writing ----------------------------------------------------------------------------------------------------

    def writer(self, sha256: str) -> ArtifactWriter:
        """Return a writer for an artifact with this hash; use it as a context manager."""
        return ArtifactWriter(self, sha256)

    def put(self, sha256: str, chunks: Iterable[bytes]) -> int:
        """Store the bytes and return their number.

        Storing an artifact again is harmless, also concurrently. Raises ArtifactMismatch or ArtifactTooLarge, and then
        stores nothing.
        """
        with self.writer(sha256) as writer:
            for chunk in chunks:
                writer.write(chunk)
            return writer.commit()

    def put_bytes(self, content: bytes) -> tuple[str, int]:
        """Store `content` under its own hash; return (sha256, size)."""
        sha256 = hashlib.sha256(content).hexdigest()
        return sha256, self.put(sha256, [content])

    def delete(self, sha256: str) -> None:
        """Remove the artifact; nothing happens if it is not stored."""
        try:
            with self._translating_errors():
                obstore.delete(self._store, _key(sha256))
        except FileNotFoundError:
            return

    def remove_partial_files(self, older_than_s: float) -> None:
        """Remove the partial files of uploads that ended with their process."""
        limit = datetime.now(UTC).timestamp() - older_than_s
        for partial in self._spool.rglob(f"{_PARTIAL}*"):
            with suppress(FileNotFoundError):
                if partial.stat().st_mtime < limit:
                    partial.unlink()

    def _open_partial(self, sha256: str) -> tuple[IO[bytes], Path]:
        folder = (self._spool / _key(sha256)).parent if isinstance(self._store, LocalStore) else self._spool
        with self._translating_errors():
            folder.mkdir(parents=True, exist_ok=True)
            handle, path = tempfile.mkstemp(dir=folder, prefix=_PARTIAL)
        # Unbuffered: no bytes are left for close(), which would fail on a full volume.
        return os.fdopen(handle, "wb", buffering=0), Path(path)

    def _publish(self, partial: Path, sha256: str) -> None:
        """Make a file with a verified hash visible, atomically."""
        if isinstance(self._store, LocalStore):
            with self._translating_errors():
                partial.replace(self._spool / _key(sha256))
            return
        with self._translating_errors():  # multipart for large files; the object appears after its last part
            obstore.put(self._store, _key(sha256), partial)

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        try:
            yield
        except BaseError as error:
            reason = str(error).strip().splitlines()[0][:300]
            raise StoreUnavailable(f"the artifact store {self._name} cannot be used: {reason}") from error
        except OSError as error:
            if error.errno not in FULL_VOLUME:
                raise
            status = os.statvfs(self._spool)
            free = status.f_bavail * status.f_frsize
            raise StoreFull(f"the volume of the artifact store {self._spool} is full: {free} bytes are free") from error


class ArtifactWriter:
    """Write an artifact to a partial file; `commit` publishes it, and leaving the block without it discards it."""

    def __init__(self, store: ArtifactStore, sha256: str) -> None:
        self._store, self._sha256 = store, sha256
        self._hash, self._size = hashlib.sha256(), 0

    def __enter__(self) -> Self:
        self._file, self._partial = self._store._open_partial(self._sha256)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._partial.unlink(missing_ok=True)

    def write(self, chunk: bytes) -> None:
        """Append bytes. Raises ArtifactTooLarge, StoreFull."""
        self._size += len(chunk)
        if self._size > self._store._limit:
            raise ArtifactTooLarge(f"an artifact may have at most {self._store._limit} bytes")
        self._hash.update(chunk)
        with self._store._translating_errors():
            rest = memoryview(chunk)
            while rest:
                rest = rest[self._file.write(rest) :]

    def commit(self) -> int:
        """Verify the hash, publish the artifact and return its size. Raises ArtifactMismatch, StoreUnavailable."""
        found = self._hash.hexdigest()
        if found != self._sha256:
            raise ArtifactMismatch(f"the {self._size} bytes received have sha256 {found}, not {self._sha256}")
        with self._store._translating_errors():
            os.fsync(self._file.fileno())
        self._store._publish(self._partial, self._sha256)
        return self._size


def _key(sha256: str) -> str:
    return f"{sha256[:_FAN_OUT]}/{sha256}"


def _make_s3_store(url: str, options: Path | None) -> S3Store:
    parts = urlsplit(url)
    if parts.scheme != "s3" or not parts.netloc:
        raise StoreMisconfigured(
            f"WQLAB_ARTIFACT_URL={url}: write s3://BUCKET or s3://BUCKET/PREFIX, or leave it empty"
        )
    given = _read_options(options) if options else {}
    # obstore takes connection options separately, although all variables in the environment begin with AWS_.
    client = {name: given.pop(f"aws_{name}") for name in _CONNECTION_OPTIONS if f"aws_{name}" in given}
    try:
        # obstore takes options that are not in the file from the environment (AWS_ACCESS_KEY_ID and so on).
        return S3Store.from_url(
            url, config=cast(Any, given), client_options=cast(Any, client or None), retry_config=cast(Any, _RETRIES)
        )
    except BaseError as error:
        raise StoreMisconfigured(f"WQLAB_ARTIFACT_URL={url}: {str(error).splitlines()[0]}") from error


def _read_options(path: Path) -> dict[str, str]:
    """Read NAME=value lines with obstore's option names; # begins a comment. Raises StoreMisconfigured."""
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise StoreMisconfigured(f"WQLAB_ARTIFACT_OPTIONS={path}: {error.strerror}") from error
    found = {}
    for number, line in enumerate(lines, start=1):
        name, sign, value = line.strip().partition("=")
        if not name or name.startswith("#"):
            continue
        if not sign:
            raise StoreMisconfigured(f"WQLAB_ARTIFACT_OPTIONS={path}, line {number}: write NAME=value")
        if not name.lower().startswith("aws_"):  # obstore would abort the process
            raise StoreMisconfigured(f"WQLAB_ARTIFACT_OPTIONS={path}, line {number}: {name} does not begin with AWS_")
        found[name.strip().lower()] = value.strip()
    return found
