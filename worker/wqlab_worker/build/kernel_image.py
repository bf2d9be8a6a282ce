"""Read release and GNU build-id of an x86 kernel image (bzImage, vmlinuz), which holds a compressed vmlinux."""

from __future__ import annotations

import bz2
import lzma
import re
import shutil
import struct
import subprocess
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .build_id import read_build_id

IMAGE_LIMIT = 256 << 20
"""Most bytes of an image, and of the vmlinux in it; those of a distribution have about 15 and 80 MiB."""
_RELEASE_LIMIT = 512
_RELEASE = re.compile(r"[!-.0-~]{1,64}")
"""What `uname -r` may print: printable, and no path."""
_BOOT_FLAG, _MAGIC = 0xAA55, b"HdrS"
_PROTOCOL_WITH_PAYLOAD = 0x0208


@dataclass(frozen=True)
class KernelImage:
    """Identity of the kernel in an image."""

    release: str
    """Output of `uname -r` on that kernel."""
    build_id_gnu: str


class ImageError(ValueError):
    """The file is no kernel image, or what it holds cannot be read; the message says why and what to do."""


def read_kernel_image(path: Path) -> KernelImage:
    """Return release and build-id of an image. Raises ImageError; OSError if the file cannot be read.

    Layout: Documentation/arch/x86/boot.rst, "The Real-Mode Kernel Header".
    """
    with path.open("rb") as file:
        image = file.read(IMAGE_LIMIT + 1)
    if len(image) > IMAGE_LIMIT:
        raise ImageError(f"{path} has more than {IMAGE_LIMIT >> 20} MiB, so it is no kernel image")
    if len(image) < 0x260 or struct.unpack_from("<H", image, 0x1FE)[0] != _BOOT_FLAG or image[0x202:0x206] != _MAGIC:
        what = "a vmlinux; give the bzImage of the same build" if image[:4] == b"\x7fELF" else "no x86 kernel image"
        raise ImageError(f"{path} is {what}")
    setup_sectors = image[0x1F1] or 4
    (protocol,) = struct.unpack_from("<H", image, 0x206)
    (release_at,) = struct.unpack_from("<H", image, 0x20E)
    if protocol < _PROTOCOL_WITH_PAYLOAD or not release_at:
        raise ImageError(f"{path} is a kernel older than 2.6.26, whose header does not tell where the kernel is")
    text = image[release_at + 0x200 : release_at + 0x200 + _RELEASE_LIMIT].partition(b"\0")[0]
    release = text.decode("ascii", errors="replace").partition(" ")[0]
    if not _RELEASE.fullmatch(release):
        raise ImageError(f"{path} has the release {release[:80]!r}, which names no folder of modules")
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    return KernelImage(release, _build_id(path, image[start : start + length]))


def _build_id(path: Path, payload: bytes) -> str:
    vmlinux = _decompress(path, payload)
    with tempfile.NamedTemporaryFile(prefix="vmlinux-") as file:
        file.write(vmlinux)
        file.flush()
        try:
            return read_build_id(Path(file.name))
        except ValueError as error:
            raise ImageError(
                f"the kernel in {path} cannot be told from others: {error}; link it with --build-id"
            ) from error


def _decompress(path: Path, payload: bytes) -> bytes:
    """Return the vmlinux. The build appends its size to the payload, so bytes follow the compressed data."""
    for magic, name, unpack in _FORMATS:
        if payload.startswith(magic):
            try:
                found = unpack(payload)
            except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError) as error:
                raise ImageError(f"the kernel in {path} cannot be unpacked ({name}): {error}") from error
            if len(found) > IMAGE_LIMIT:
                raise ImageError(f"the kernel in {path} has more than {IMAGE_LIMIT >> 20} MiB")
            return found
    raise ImageError(f"the kernel in {path} is compressed in an unknown format: it begins with {payload[:4].hex()}")


def _gzip(data: bytes) -> bytes:
    return zlib.decompressobj(wbits=31).decompress(data, IMAGE_LIMIT + 1)


def _xz(data: bytes) -> bytes:
    return lzma.LZMADecompressor(memlimit=1 << 30).decompress(data, IMAGE_LIMIT + 1)


def _bzip2(data: bytes) -> bytes:
    return bz2.BZ2Decompressor().decompress(data, IMAGE_LIMIT + 1)


def _by_program(*command: str) -> Callable[[bytes], bytes]:
    """Return a function that unpacks by a program, which may complain about the size behind the data."""

    def unpack(data: bytes) -> bytes:
        if shutil.which(command[0]) is None:
            raise ValueError(f"install the program {command[0]}")
        done = subprocess.run(command, input=data, capture_output=True, check=False)
        if not done.stdout:
            raise ValueError(done.stderr.decode(errors="replace").strip() or f"{command[0]} printed nothing")
        return done.stdout

    return unpack


_FORMATS: tuple[tuple[bytes, str, Callable[[bytes], bytes]], ...] = (
    (b"\x1f\x8b", "gzip", _gzip),
    (b"\xfd7zXZ\0", "xz", _xz),
    (b"BZh", "bzip2", _bzip2),
    (b"\x5d\x00\x00", "lzma", _xz),
    (b"\x28\xb5\x2f\xfd", "zstd", _by_program("zstd", "-dcq")),
    (b"\x02\x21\x4c\x18", "lz4", _by_program("lz4", "-dcq")),
    (b"\x7fELF", "uncompressed", bytes),
)
"""Beginning of the payload, name of the format, function that unpacks. LZO is left out: no distribution uses it."""
