"""Release and build-id of kernel images, in each compression that a kernel's build knows and this host can unpack."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from wqlab_worker.build.kernel_image import ImageError, KernelImage, read_kernel_image

BUILD_ID = "00112233445566778899aabbccddeeff00112233"


@pytest.fixture(scope="module")
def vmlinux(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A linked program with a known build-id, in place of a kernel."""
    folder = tmp_path_factory.mktemp("vmlinux")
    (folder / "a.c").write_text("void _start(void) {}\n")
    options = ["-nostdlib", "-static", f"-Wl,--build-id=0x{BUILD_ID}"]
    subprocess.run(["gcc", *options, str(folder / "a.c"), "-o", str(folder / "vmlinux")], check=True)
    return (folder / "vmlinux").read_bytes()


def image(payload: bytes, release: bytes = b"6.12.1-lab (dev@host) #1 SMP\0") -> bytes:
    """Return a bzImage with this payload behind one sector of set-up code."""
    sectors = 1
    header = bytearray(512 * (sectors + 1))
    header[0x1F1] = sectors
    struct.pack_into("<H", header, 0x1FE, 0xAA55)
    header[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", header, 0x206, 0x020F)
    struct.pack_into("<H", header, 0x20E, 0x300 - 0x200)
    header[0x300 : 0x300 + len(release)] = release
    struct.pack_into("<II", header, 0x248, 64, len(payload))
    return bytes(header) + bytes(64) + payload


def by_program(*command: str) -> Callable[[bytes], bytes]:
    def pack(data: bytes) -> bytes:
        if shutil.which(command[0]) is None:
            pytest.skip(f"no {command[0]} here")
        return subprocess.run(command, input=data, capture_output=True, check=True).stdout

    return pack


@pytest.mark.parametrize(
    "pack",
    [gzip.compress, lzma.compress, bz2.compress, by_program("zstd", "-c"), by_program("lz4", "-lc"), bytes],
    ids=["gzip", "xz", "bzip2", "zstd", "lz4", "none"],
)
def test_release_and_build_id_are_read(tmp_path: Path, vmlinux: bytes, pack: Callable[[bytes], bytes]) -> None:
    """The build appends the size of the vmlinux to its compressed form."""
    path = tmp_path / "bzImage"
    path.write_bytes(image(pack(vmlinux) + struct.pack("<I", len(vmlinux))))
    assert read_kernel_image(path) == KernelImage("6.12.1-lab", BUILD_ID)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x7fELF" + bytes(1000), "a vmlinux; give the bzImage"),
        (b"#!/bin/sh\n" * 100, "no x86 kernel image"),
        (b"", "no x86 kernel image"),
        (image(b"\x1f\x8bdamaged"), "cannot be unpacked"),
        (image(b"LZO?"), "unknown format"),
        (image(b"", b"6.1\ntouch owned (dev@host) #1 SMP\0"), "names no folder of modules"),
        (image(b"", b"../../6.1 (dev@host) #1 SMP\0"), "names no folder of modules"),
        (image(gzip.compress(b"\x7fELF, but no kernel")), "cannot be told from others"),
    ],
)
def test_other_files_are_refused_with_the_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "given"
    path.write_bytes(content)
    with pytest.raises(ImageError, match=reason) as caught:
        read_kernel_image(path)
    assert str(path) in str(caught.value)
