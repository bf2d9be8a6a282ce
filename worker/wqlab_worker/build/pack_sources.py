"""Write a zip archive of the source files that a kernel was built from. Runs inside the sandbox.

Arguments: source folder, build folder, archive, largest size in bytes. kbuild lists the files of each object in
`.NAME.o.cmd`. Members are named relative to the source folder, generated files relative to the build folder.
"""

from __future__ import annotations

import sys
import zipfile
from os import walk
from os.path import normpath
from pathlib import Path

COMMANDS_LIMIT = 1 << 20
"""Bytes read from one list."""
FILE_LIMIT = 4 << 20
"""Larger files are left out."""
_SUFFIXES = (".c", ".h", ".S")
_LEFT_OUT = ("scripts/", "tools/")
"""Programs of the build, which are no part of the kernel."""


def listed_files(source: str, build: str) -> dict[str, Path]:
    """Return the path of each source file, by its name in the archive."""
    words: set[str] = set()
    for folder, _, names in walk(build):
        for name in names:
            if name.startswith(".") and name.endswith(".o.cmd"):
                with Path(folder, name).open(errors="replace") as commands:
                    words.update(word for word in commands.read(COMMANDS_LIMIT).split() if word.endswith(_SUFFIXES))
    found: dict[str, Path] = {}
    for word in words:
        path = normpath(f"{build}/{word}" if not word.startswith("/") else word)
        for root in (f"{source}/", f"{build}/"):
            if path.startswith(root) and not path.removeprefix(root).startswith(_LEFT_OUT):
                found.setdefault(path.removeprefix(root), Path(path))
    return found


def pack(source: str, build: str, target: Path, limit: int) -> None:
    """Write the archive with fixed times, so that equal files give an equal archive.

    Raises ValueError if it would be larger than `limit` bytes.
    """
    partial = target.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, path in sorted(listed_files(source, build).items()):
            if path.is_file() and path.stat().st_size <= FILE_LIMIT:
                with path.open("rb") as file:
                    archive.writestr(zipfile.ZipInfo(name), file.read(FILE_LIMIT), zipfile.ZIP_DEFLATED)
            if partial.stat().st_size > limit:
                raise ValueError(f"the source files need more than {limit} bytes")
    if partial.stat().st_size > limit:
        raise ValueError(f"the source files need more than {limit} bytes")
    partial.rename(target)


if __name__ == "__main__":
    pack(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
