"""Take kexec out of the lab's root filesystem image, with its libraries, for machines that do not have it."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

_PROGRAM = "usr/sbin/kexec"
_LOADER = "usr/lib64/ld-linux-x86-64.so.2"
_SYSTEMD = "systemctl kexec"
_PLAIN = "setsid sh -c 'sleep 1; sync; echo u > /proc/sysrq-trigger; {kexec} -e' < /dev/null > /dev/null 2>&1 &"
"""For distributions without systemd: file systems are remounted read-only first."""
_OF_LAB = (
    "setsid sh -c 'for n in /sys/class/net/*; do ip link set ${n##*/} down; done; exec kexec -e' "
    "< /dev/null > /dev/null 2>&1 &"
)


def command(folder: str) -> str:
    """Return the command that runs kexec, unpacked into `folder` on the machine."""
    return f"{folder}/ld.so --library-path {folder} {folder}/kexec"


def start(folder: str, *, of_lab: bool, has_systemd: bool) -> str:
    """Return the command that ends the running system and starts the kernel that is loaded."""
    if of_lab:
        return _OF_LAB
    return _SYSTEMD if has_systemd else _PLAIN.format(kexec=command(folder))


def archive(rootfs: Path) -> bytes:
    """Return a tar archive with kexec, its loader as `ld.so` and its libraries. Raises ValueError if the image has no
    kexec."""
    wanted = {_PROGRAM: "kexec", _LOADER: "ld.so"}
    files = {name: data for name, data in members(rootfs) if name in wanted or name.startswith("usr/lib/lib")}
    if not wanted.keys() <= files.keys():
        raise ValueError(f"{rootfs} is no root filesystem image of wqlab: it has no {_PROGRAM}")
    found = {wanted[name]: files[name] for name in wanted}
    waiting = [files[_PROGRAM]]
    while waiting:
        for soname in _needed(waiting.pop()):
            data = files.get(f"usr/lib/{soname}")
            if data is not None and soname not in found:
                found[soname] = data
                waiting.append(data)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, data in sorted(found.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
    return stream.getvalue()


def members(image: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the files of an uncompressed cpio archive in the "newc" format."""
    with image.open("rb") as file:
        while len(header := file.read(110)) == 110 and header.startswith(b"070701"):
            size, name_size = int(header[54:62], 16), int(header[94:102], 16)
            name = file.read(_padded(110 + name_size) - 110)[: name_size - 1].decode()
            data = file.read(_padded(size))[:size]
            if name == "TRAILER!!!":
                return
            yield name, data


def _padded(size: int) -> int:
    return size + -size % 4


def _needed(data: bytes) -> list[str]:
    section = ELFFile(io.BytesIO(data)).get_section_by_name(".dynamic")
    if not isinstance(section, DynamicSection):
        return []
    return [tag.needed for tag in section.iter_tags("DT_NEEDED")]  # type: ignore[attr-defined]
