"""Write cpio archives in the "newc" format of an initramfs.

Owners and device nodes are only numbers in the archive, so any user can write them. Format:
Documentation/driver-api/early-userspace/buffer-format.rst of the Linux tree. Decision 27 says why no library is used.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import BinaryIO

_MAGIC = b"070701"
_TRAILER = "TRAILER!!!"


@dataclass(frozen=True)
class Entry:
    """A member of an archive.

    `mode` includes the file type bits. `data` is the content of a file or the target of a symbolic link, `device` the
    major and minor number of a device node.
    """

    name: str
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


def directory(name: str) -> Entry:
    return Entry(name, stat.S_IFDIR | 0o755)


def file(name: str, data: bytes, executable: bool = False) -> Entry:
    return Entry(name, stat.S_IFREG | (0o755 if executable else 0o644), data)


def symlink(name: str, target: str) -> Entry:
    return Entry(name, stat.S_IFLNK | 0o777, target.encode())


def character_device(name: str, major: int, minor: int) -> Entry:
    return Entry(name, stat.S_IFCHR | 0o600, device=(major, minor))


def write_archive(entries: list[Entry], output: BinaryIO) -> None:
    """Write the members in the given order, with owner 0 and date 0, so that equal entries give equal bytes.

    Raises ValueError if a member comes before its folder: the kernel unpacks in order and creates no parent folders.
    """
    known = {""}
    for number, entry in enumerate(entries, start=1):
        parent = entry.name.rpartition("/")[0]
        if parent not in known:
            raise ValueError(f"{entry.name} comes before its folder")
        if stat.S_ISDIR(entry.mode):
            known.add(entry.name)
        _write(output, entry, number)
    _write(output, Entry(_TRAILER, 0), 0)


def _write(output: BinaryIO, entry: Entry, inode: int) -> None:
    name = entry.name.encode() + b"\0"
    links, owner, group, date, checksum = 1, 0, 0, 0, 0
    fields = (
        inode, entry.mode, owner, group, links, date, len(entry.data), 0, 0, *entry.device, len(name), checksum,
    )  # fmt: skip
    header = _MAGIC + b"".join(b"%08x" % field for field in fields)
    output.write(_padded(header + name) + _padded(entry.data))


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
