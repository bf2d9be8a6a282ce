"""Hash what a device loads of a build, so that the server knows byte-identical kernels."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

_CHUNK = 1 << 20
EXPANDED_LIMIT = 4 << 30
"""Most bytes of modules that are read; sparse members of an archive expand to more than its size."""
MEMBER_LIMIT = 20_000


def content_digest(image: Path, own_modules: Path | None, modules: Iterable[Path]) -> str:
    """Return the SHA-256 over the kernel image and the names and contents of all modules; empty if it is not known.

    `own_modules` is the archive of the kernel's own modules, whose time stamps differ between builds. It is not known
    for an archive that is unreadable or exceeds the limits: such a kernel is equal to no other.
    """
    files = {"image": _hash_file(image), **{f"module {path.name}": _hash_file(path) for path in modules}}
    if own_modules is not None:
        try:
            files |= _hash_members(own_modules)
        except (tarfile.TarError, OSError, EOFError, ValueError):
            return ""
    return hashlib.sha256("".join(f"{name}\0{digest}\n" for name, digest in sorted(files.items())).encode()).hexdigest()


def _hash_members(archive: Path) -> dict[str, str]:
    """Hash each regular file of the archive. Raises ValueError if it exceeds a limit."""
    found: dict[str, str] = {}
    expanded = 0
    with tarfile.open(archive, mode="r:") as members:
        for number, member in enumerate(members):
            expanded += member.size
            if number >= MEMBER_LIMIT or expanded > EXPANDED_LIMIT:
                raise ValueError("the archive of modules exceeds a limit")
            if member.isreg() and (content := members.extractfile(member)) is not None:
                found[f"own module {member.name}"] = _hash(content)  # type: ignore[arg-type]  # IO[bytes]
            elif not member.isdir():
                found[f"own module {member.name}"] = f"{member.type!r} {member.linkname}"
    return found


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return _hash(file)


def _hash(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()
