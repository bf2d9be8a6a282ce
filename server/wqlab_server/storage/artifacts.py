"""The content store: bytes named by their SHA-256, written whole or not at all.

They lie in a local folder or in a bucket of anything that speaks S3. Callers see no difference: what was announced by
its hash is visible once every byte has come and been hashed here, is read whole or by range, and never changes.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, Self, cast
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, S3Store

from ..settings import Settings

_FAN_OUT = 2
_PIECE = 1 << 18
# A request waits for this, and its sender repeats it: better a clear answer soon.
_RETRIES = {"max_retries": 4, "retry_timeout": timedelta(seconds=20)}

_OF_THE_CONNECTION = ("allow_http", "connect_timeout", "timeout", "proxy_url", "proxy_ca_certificate", "proxy_excludes")


class ArtifactMismatch(Exception):
    """The bytes that came have another hash than announced."""


class ArtifactTooLarge(Exception):
    """More bytes than one artifact may have."""


class StoreUnavailable(Exception):
    """The store does not answer, or refuses; the text names it and its reason."""


class StoreMisconfigured(ValueError):
    """A setting of the store that cannot work; the text names it and the fix."""


class ArtifactStore:
    """Every method may raise StoreUnavailable."""

    def __init__(self, store: LocalStore | S3Store, spool: Path, limit: int, *, name: str) -> None:
        self._store = store
        self._spool = spool
        self._limit = limit
        self._name = name

    @classmethod
    def of(cls, settings: Settings) -> ArtifactStore:
        """What the settings name; reaches nothing yet. Raises StoreMisconfigured."""
        folder, limit = settings.artifact_dir.absolute(), settings.artifact_limit
        if not settings.artifact_url:
            return cls(LocalStore(folder, mkdir=True), folder, limit, name=str(folder))
        store = _bucket(settings.artifact_url, settings.artifact_options)
        folder.mkdir(parents=True, exist_ok=True)
        return cls(store, folder, limit, name=settings.artifact_url)

    # --- reading ----------------------------------------------------------------------------------------------------

    def size(self, sha256: str) -> int:
        """Bytes. Raises FileNotFoundError."""
        with self._reaching():
            return obstore.head(self._store, _key(sha256))["size"]

    def has(self, sha256: str) -> bool:
        try:
            self.size(sha256)
        except FileNotFoundError:
            return False
        return True

    def read(self, sha256: str) -> bytes:
        """All of it, for what is known to be small. Raises FileNotFoundError."""
        with self._reaching():
            return bytes(obstore.get(self._store, _key(sha256)).bytes())

    async def stream(self, sha256: str, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes from `start` up to, not including, `end`, in pieces. Raises FileNotFoundError."""
        if start == end:
            return
        with self._reaching():
            found = await obstore.get_async(self._store, _key(sha256), options={"range": (start, end)})
            async for piece in found.stream(min_chunk_size=_PIECE):
                yield bytes(piece)

    def check(self) -> None:
        """Asks the store for something, as an operator wants to know at once. Raises StoreUnavailable."""
        try:
            with self._reaching():
                for _ in obstore.list(self._store, prefix="00", chunk_size=1):
                    return
        except FileNotFoundError as error:
            raise StoreUnavailable(f"the artifact store {self._name} is not there: make the bucket") from error

    # --- writing ----------------------------------------------------------------------------------------------------

    def writer(self, sha256: str) -> ArtifactWriter:
        return ArtifactWriter(self, sha256)

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

    def _partial(self, sha256: str) -> tuple[IO[bytes], Path]:
        folder = (self._spool / _key(sha256)).parent if isinstance(self._store, LocalStore) else self._spool
        folder.mkdir(parents=True, exist_ok=True)
        handle, path = tempfile.mkstemp(dir=folder, prefix=".partial-")
        return os.fdopen(handle, "wb"), Path(path)

    def _publish(self, partial: Path, sha256: str) -> None:
        """Makes a file whose hash is right visible, at once and for good."""
        if isinstance(self._store, LocalStore):
            partial.replace(self._spool / _key(sha256))
            return
        with self._reaching():  # in parts when it is large; a bucket shows an object when its last part is there
            obstore.put(self._store, _key(sha256), partial)

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except BaseError as error:
            why = str(error).strip().splitlines()[0][:300]
            raise StoreUnavailable(f"the artifact store {self._name} cannot be used: {why}") from error


class ArtifactWriter:
    """Writes aside and shows nothing before `commit`; leaving the block without it keeps nothing."""

    def __init__(self, store: ArtifactStore, sha256: str) -> None:
        self._store, self._sha256 = store, sha256
        self._found, self._size = hashlib.sha256(), 0

    def __enter__(self) -> Self:
        self._file, self._partial = self._store._partial(self._sha256)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._partial.unlink(missing_ok=True)

    def write(self, piece: bytes) -> None:
        """Raises ArtifactTooLarge."""
        self._size += len(piece)
        if self._size > self._store._limit:
            raise ArtifactTooLarge(f"an artifact may have {self._store._limit} bytes")
        self._found.update(piece)
        self._file.write(piece)

    def commit(self) -> int:
        """Number of bytes, now in the store. Raises ArtifactMismatch, StoreUnavailable."""
        found = self._found.hexdigest()
        if found != self._sha256:
            raise ArtifactMismatch(f"the {self._size} bytes that came have sha256 {found}, not {self._sha256}")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._store._publish(self._partial, self._sha256)
        return self._size


def _key(sha256: str) -> str:
    return f"{sha256[:_FAN_OUT]}/{sha256}"


def _bucket(url: str, options: Path | None) -> S3Store:
    parts = urlsplit(url)
    if parts.scheme != "s3" or not parts.netloc:
        raise StoreMisconfigured(
            f"WQLAB_ARTIFACT_URL={url}: write s3://BUCKET or s3://BUCKET/PREFIX, or leave it empty"
        )
    given = _options(options) if options else {}
    # obstore keeps what is about the connection apart, though in the environment all of it begins with AWS_.
    client = {name: given.pop(f"aws_{name}") for name in _OF_THE_CONNECTION if f"aws_{name}" in given}
    try:
        # What the file does not say, obstore takes from its environment (AWS_ACCESS_KEY_ID and so on).
        return S3Store.from_url(
            url, config=cast(Any, given), client_options=cast(Any, client or None), retry_config=cast(Any, _RETRIES)
        )
    except BaseError as error:
        raise StoreMisconfigured(f"WQLAB_ARTIFACT_URL={url}: {str(error).splitlines()[0]}") from error


def _options(path: Path) -> dict[str, str]:
    """NAME=value lines in obstore's own names; # begins a comment."""
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
        if not name.lower().startswith("aws_"):  # obstore would end the process for it
            raise StoreMisconfigured(f"WQLAB_ARTIFACT_OPTIONS={path}, line {number}: {name} does not begin with AWS_")
        found[name.strip().lower()] = value.strip()
    return found
