"""Shift the text and data of a kernel in its linker script. Runs inside the sandbox, with the standard library only.

Usage: shift_layout.py SCRIPT TEXT DATA BSS, with shifts in bytes. The first call keeps the script as kbuild made it in
SCRIPT.unshifted; every call starts from that copy. Exit status 3: a place for the padding was not found; stdout says
which.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_PLACES = (
    # The main input sections of .text, .data and .bss: *(.text .text.fixup), *(.data) and *(.bss), with more names if
    # the kernel is compiled with a section for each function (include/asm-generic/vmlinux.lds.h).
    ("functions (.text)", re.compile(r"\*\((\.text(?: [^)]{0,4000})?)\)")),
    ("variables (.data)", re.compile(r"\*\((\.data(?: [^)]{0,4000})?)\)")),
    ("zeroed variables (.bss)", re.compile(r"\*\((\.bss(?: [^)]{0,4000})?)\)")),
)
_FOLDERS = [
    *("init", "usr", "arch", "kernel", "certs", "mm", "fs", "ipc", "security", "crypto", "block", "io_uring", "rust"),
    *("lib", "drivers", "sound", "net", "virt"),
]
"""Top folders of the kernel in the order of the link. A few objects are aligned to a page or more, which would undo a
single shift before them; so each folder is shifted."""
MISSING = 3


def shifted(script: str, shifts: tuple[int, int, int]) -> str:
    """Return the linker script with padding (bytes) before each folder's functions, variables and zeroed variables.

    Raises ValueError if the script lacks one of the places.
    """
    for (name, place), size in zip(_PLACES, shifts, strict=True):
        found = place.search(script)
        if found is None:
            raise ValueError(name)
        parts = [f". += {size}; {folder}/*({found[1]})" for folder in _FOLDERS]
        parts.append(f". += {size}; {found[0]}")
        script = script[: found.start()] + " ".join(parts) + script[found.end() :]
    return script


def main() -> None:
    path = Path(sys.argv[1])
    original = path.with_name(f"{path.name}.unshifted")
    if not original.exists():
        path.rename(original)
    text, data, bss = map(int, sys.argv[2:5])
    try:
        script = shifted(original.read_text(), (text, data, bss))
    except ValueError as error:
        print(error)
        sys.exit(MISSING)
    path.unlink(missing_ok=True)
    # A new file is newer than vmlinux, so that make links it again.
    path.write_text(script)


if __name__ == "__main__":
    main()
