"""Hash what a device loads of a build, so that the server knows byte-identical kernels.

Submitted code makes the archive of modules, so it is read by the same reader as for the device (`tar_reader`), in
bounded memory and time.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from ..tar_reader import TarReader

BYTES_LIMIT = 1 << 30
"""Most bytes of the archive that are read."""
MEMBER_LIMIT = 20_000


def content_digest(image: Path, own_modules: Path | None, modules: Iterable[Path]) -> str:
    """Return the SHA-256 over the kernel image and the names and contents of all modules; empty if it is not known.

    `own_modules` is the archive of the kernel's own modules, whose time stamps and order differ between builds. It is
    not known for an archive that is unreadable, exceeds the limits or has a module twice, since the device then gets
    the first one: such a kernel is equal to no other.
    """
    files = [("image", _hash_file(image)), *((f"module {path.name}", _hash_file(path)) for path in modules)]
    if own_modules is not None:
        try:
            files += _hash_members(own_modules)
        except (tarfile.TarError, OSError, ValueError):
            return ""
    # JSON, because a name in the archive can hold any character that could separate it from its hash.
    return hashlib.sha256(json.dumps(sorted(files)).encode()).hexdigest()


def _hash_members(archive: Path) -> list[tuple[str, str]]:
    """Return name and hash of each file of the archive. Raises tarfile.TarError and ValueError as described above."""
    found: list[tuple[str, str]] = []
    modules: set[str] = set()
    with archive.open("rb") as file:
        reader = TarReader(file, total_bytes=BYTES_LIMIT, members=MEMBER_LIMIT)
        for member in reader:
            if member.isreg():
                digest = hashlib.sha256()
                for piece in reader.chunks():
                    digest.update(piece)
                found.append((f"own module {member.name}", digest.hexdigest()))
            else:
                found.append((f"own module {member.name}", f"{member.type!r} {member.linkname}"))
            module = PurePosixPath(member.name).name.replace("-", "_")
            if module.endswith(".ko") and module in modules:
                raise ValueError(f"the archive has two modules {module}")
            modules.add(module)
    return found


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
