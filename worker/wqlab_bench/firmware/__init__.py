"""Assemble the option ROMs of emulated devices with binutils."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from wqlab_host import tool

_SOURCE = Path(__file__).parent / "smt_last.s"
_BLOCK = 512


class FirmwareError(Exception):
    """The ROM cannot be built; the message has the output of the failed tool."""


def smt_last(folder: Path) -> Path:
    """Return the ROM that numbers SMT siblings last, and build it in `folder` unless it exists.

    Raises FirmwareError.
    """
    rom = folder / f"smt_last-{hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]}.rom"
    if rom.exists():
        return rom
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        scratch = Path(name)
        _run(["as", "--32", str(_SOURCE), "-o", str(scratch / "rom.o")])
        # Without -j, the assembler's note sections would end up in the image.
        _run(["objcopy", "-O", "binary", "-j", ".text", str(scratch / "rom.o"), str(scratch / "code")])
        finished = scratch / "rom"
        finished.write_bytes(pad_and_checksum((scratch / "code").read_bytes()))
        finished.rename(rom)
    return rom


def pad_and_checksum(code: bytes) -> bytes:
    """Pad the ROM to whole blocks, fill in its length and make the sum of its bytes 0, as a BIOS requires."""
    image = bytearray(code + b"\0" * (-(len(code) + 1) % _BLOCK) + b"\0")
    image[2] = len(image) // _BLOCK
    image[-1] = -sum(image) % 256
    return bytes(image)


def _run(command: list[str]) -> None:
    tool.output(command, FirmwareError)
