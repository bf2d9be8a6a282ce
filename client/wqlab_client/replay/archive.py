"""Read a bundle, which may come from anyone: names, links, numbers and sizes are checked before anything is unpacked.

Nothing is extracted under a name of the bundle. The limits below bound memory and disk, whatever the file says.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

from pydantic import BaseModel, ValidationError

from wqlab_contracts.bundle import FORMAT, MANIFEST, SIGNATURE, Manifest, is_file_name

from ..errors import UsageError

FILES_LIMIT = 40_000
DIRECTORY_BYTES = 16 << 20
"""Maximum size of the ZIP file's list of files, which is held in memory."""
MANIFEST_BYTES = 16 << 20
SIGNATURE_BYTES = 10_000
MODEL_BYTES = 128 << 20
"""Maximum size of report.json and run.json, which are held in memory."""
TEXT_BYTES = 64 << 20
SAMPLES_BYTES = 512 << 20
TOTAL_BYTES = 16 << 30
"""Maximum size of all files of a bundle, unpacked."""
_READ_BYTES = 1 << 20
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_ENCRYPTED = 0x1
_ADVICE = "ask for the file again, from its source"

_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError, IndexError)
"""Exceptions of the zipfile module for a damaged file: it seeks and parses as the file says."""

M = TypeVar("M", bound=BaseModel)


class BundleError(UsageError):
    """The file is no bundle, is damaged, was changed, or exceeds a limit."""

    def __init__(self, path: Path, what: str, fix: str = _ADVICE) -> None:
        super().__init__(f"{path}: {what}", fix)


class Bundle:
    """An open bundle. Every file is checked against the manifest when it is read."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path = path
        self._zip = archive
        self._entries = self._checked_entries(archive.infolist())
        self.manifest_content = self._read(MANIFEST, MANIFEST_BYTES)
        self.signature_content = self._read(SIGNATURE, SIGNATURE_BYTES)
        self.manifest = self._parse_manifest()
        self._check_names()

    # --- opening ----------------------------------------------------------------------------------------------------

    def _checked_entries(self, infos: list[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
        if len(infos) > FILES_LIMIT:
            raise self._error(f"{len(infos)} files, more than the {FILES_LIMIT} that a bundle may have")
        entries: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            name, mode = info.filename, info.external_attr >> 16
            if not is_file_name(name) or info.orig_filename != name:
                raise self._error(f"the file name {info.orig_filename[:200]!r} is not a plain relative path")
            if name in entries:
                raise self._error(f"two files are named {name}")
            if stat.S_IFMT(mode) not in {0, stat.S_IFREG}:
                raise self._error(f"{name} is a link or a special file")
            if info.flag_bits & _ENCRYPTED or info.compress_type not in _METHODS:
                raise self._error(f"{name} is encrypted or compressed by a method other than deflate")
            entries[name] = info
        total = sum(info.file_size for info in infos)
        if total > TOTAL_BYTES:
            raise self._error(
                f"{total >> 20} MiB unpacked, more than the {TOTAL_BYTES >> 20} MiB that a bundle may have"
            )
        for name in (MANIFEST, SIGNATURE):
            if name not in entries:
                raise self._error(f"no {name}: this is not a bundle of `wqlab bundle`", "pass the file that it wrote")
        return entries

    def _parse_manifest(self) -> Manifest:
        try:
            return Manifest.model_validate_json(self.manifest_content, extra="ignore")
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            if where == "format":
                raise self._error(
                    f"format {first['input']!r}, but this wqlab reads format {FORMAT}", "use the wqlab of that version"
                ) from None
            raise self._error(f"{MANIFEST} is invalid at {where[:100] or 'its top'}: {first['msg']}") from None

    def _check_names(self) -> None:
        """Raise BundleError unless the files are exactly those of the manifest, with the sizes that it gives."""
        present, listed = self._entries.keys() - {MANIFEST, SIGNATURE}, self.manifest.files.keys()
        if missing := sorted(listed - present):
            raise self._error(f"{missing[0][:200]!r} is in the manifest but not in the bundle")
        if added := sorted(present - listed):
            raise self._error(f"{added[0]} is in the bundle but not in the manifest")
        for name, file in self.manifest.files.items():
            if self._entries[name].file_size != file.size:
                raise self._error(f"{name} has {self._entries[name].file_size} bytes, the manifest says {file.size}")

    # --- reading ----------------------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        return list(self.manifest.files)

    def check_size(self, names: Sequence[str], limit: int) -> None:
        """Raise BundleError if one of the files is missing, or if all together have more than `limit` bytes."""
        for name in names:
            if name not in self.manifest.files:
                raise self._error(f"no {name}")
        if sum(self.manifest.files[name].size for name in names) > limit:
            raise self._error(f"{names[0]} and others have more than the {limit >> 20} MiB that they may have")

    def check_files(self) -> None:
        """Read every file and compare its hash with the manifest's. Raises BundleError for the first that differs."""
        for name in self.manifest.files:
            for _ in self.chunks(name):
                pass

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the content of a file. Raises BundleError at its end if its hash is not that of the manifest."""
        digest = hashlib.sha256()
        for chunk in self._raw_chunks(name):
            digest.update(chunk)
            yield chunk
        if digest.hexdigest() != self.manifest.files[name].sha256:
            raise self._error(f"{name} was changed: its SHA-256 is not the one in the manifest")

    def content(self, name: str, limit: int = TEXT_BYTES) -> bytes:
        """Return a whole file. Raises BundleError if it is larger than `limit` bytes or missing."""
        if name not in self.manifest.files:
            reason = self.manifest.absent.get(name, "")
            raise self._error(f"no {name}{f': {reason}' if reason else ''}")
        if self.manifest.files[name].size > limit:
            raise self._error(f"{name} has more than the {limit >> 20} MiB that it may have")
        return b"".join(self.chunks(name))

    def model(self, name: str, model: type[M]) -> M:
        """Return a JSON file as a model. Fields that a newer lab adds are ignored. Raises BundleError."""
        try:
            return model.model_validate_json(self.content(name, MODEL_BYTES), extra="ignore")
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])[:100]
            raise self._error(
                f"{name} is invalid at {where or 'its top'}: {first['msg']}", "use the wqlab of the bundle's version"
            ) from None

    def extract(self, name: str, target: Path, limit: int) -> None:
        """Write a file's content to `target`, a path that the caller chose."""
        if self.manifest.files[name].size > limit:
            raise self._error(f"{name} has more than the {limit >> 20} MiB that it may have")
        with target.open("wb") as file:
            for chunk in self.chunks(name):
                file.write(chunk)

    def _read(self, name: str, limit: int) -> bytes:
        if self._entries[name].file_size > limit:
            raise self._error(f"{name} has more than the {limit} bytes that it may have")
        return b"".join(self._raw_chunks(name))

    def _raw_chunks(self, name: str) -> Iterator[bytes]:
        try:
            # ZipFile reads at most the size that the list of files gives, and checks the CRC at the end.
            with self._zip.open(self._entries[name]) as file:
                while chunk := file.read(_READ_BYTES):
                    yield chunk
        except _DAMAGE as error:
            raise self._error(f"{name} is damaged: {error}") from None

    def _error(self, what: str, fix: str = _ADVICE) -> BundleError:
        return BundleError(self.path, what, fix)


@contextmanager
def open_bundle(path: Path) -> Iterator[Bundle]:
    """Open a bundle and check its list of files. Raises BundleError if it is no bundle or exceeds a limit."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    with file, _open_zip(path, file) as archive:
        yield Bundle(path, archive)


def _open_zip(path: Path, file: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(_BoundedFile(file))
    except _ReadTooLarge:
        raise BundleError(path, f"its list of files has more than {DIRECTORY_BYTES >> 20} MiB") from None
    except _DAMAGE as error:
        raise BundleError(path, f"not a ZIP file: {error}") from None


class _ReadTooLarge(Exception):
    """A single read is larger than the list of files may be."""


class _BoundedFile:
    """File that refuses large single reads: the zipfile module reads the list of files, of any size, at once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        if size > DIRECTORY_BYTES or (size < 0 and self._rest() > DIRECTORY_BYTES):
            raise _ReadTooLarge
        return self._file.read(size)

    def _rest(self) -> int:
        return os.fstat(self._file.fileno()).st_size - self._file.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        """Do nothing: `open_bundle` closes the file."""
