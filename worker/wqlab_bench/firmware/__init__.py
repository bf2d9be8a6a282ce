"""Option ROMs that the bench's machines bring along, assembled with binutils."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from wqlab_host import tool

_SOURCE = Path(__file__).parent / "smt_last.s"
_BLOCK = 512


class FirmwareError(Exception):
    """The ROM cannot be built; the text has the tool's words."""


def smt_last(folder: Path) -> Path:
    """The ROM that numbers SMT siblings last, built into `folder` unless it is there. Raises FirmwareError."""
    rom = folder / f"smt_last-{hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]}.rom"
    if rom.exists():
        return rom
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        scratch = Path(name)
        _run(["as", "--32", str(_SOURCE), "-o", str(scratch / "rom.o")])
        # The assembler's little section notes would otherwise end up in the image.
        _run(["objcopy", "-O", "binary", "-j", ".text", str(scratch / "rom.o"), str(scratch / "code")])
        finished = scratch / "rom"
        finished.write_bytes(sealed((scratch / "code").read_bytes()))
        finished.rename(rom)
    return rom


def sealed(code: bytes) -> bytes:
    """Pads to whole blocks, fills in the length, and makes all bytes add up to 0, as a BIOS requires of a ROM."""
    image = bytearray(code + b"\0" * (-(len(code) + 1) % _BLOCK) + b"\0")
    image[2] = len(image) // _BLOCK
    image[-1] = -sum(image) % 256
    return bytes(image)


def _run(command: list[str]) -> None:
    tool.output(command, FirmwareError)
