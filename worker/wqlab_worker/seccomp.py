"""A system call filter for the sandbox: refuse memory that no limit of a process or filesystem counts.

Files of memfd_create(2), shared memory segments, message queues and shared anonymous mappings belong to no process and
no mounted filesystem: a process can fill them and then unmap or close most of what would be counted. The refused calls
fail with ENOSYS, as on a kernel without them, so programs use files in /tmp instead.
"""

from __future__ import annotations

import errno
import platform
import struct

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH_* of linux/audit.h by machine."""
_X32 = 0x40000000
"""Bit of the numbers of x32's system calls."""
_REFUSED = {
    # memfd_create, shmget, msgget, mq_open, userfaultfd, bpf, perf_event_open, add_key, request_key, keyctl
    "x86_64": (319, 29, 68, 240, 323, 321, 298, 248, 249, 250),
    "aarch64": (279, 194, 186, 180, 282, 280, 241, 217, 218, 219),
}
_REFUSED_EVERYWHERE = (425, 447)
"""io_uring_setup and memfd_secret, which have the same number on all architectures."""
_MMAP = {"x86_64": 9, "aarch64": 222}
_SHARED_ANONYMOUS = 0x21
"""MAP_SHARED | MAP_ANONYMOUS; MAP_SHARED_VALIDATE has the bit of MAP_SHARED, too."""

_LOAD, _AND, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | errno.ENOSYS, 0x80000000
_NUMBER, _ARCHITECTURE, _FLAGS = 0, 4, 40
"""Offsets in struct seccomp_data: nr, arch, and the low half of args[3] on a little-endian machine."""


def program(machine: str = "") -> bytes | None:
    """Return the filter as an array of struct sock_filter for `machine` (default: this one); None if it is unknown.

    Calls of another architecture, such as 32-bit ones on x86_64, kill the process: their numbers differ.
    """
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        return None
    refused = (*_REFUSED[machine], *_REFUSED_EVERYWHERE)
    after = 5  # steps between the last comparison with a refused call and the step that refuses
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_GREATER_EQUAL, len(refused) + after, 0, _X32),
        *((_JUMP_EQUAL, len(refused) - 1 - index + after, 0, number) for index, number in enumerate(refused)),
        (_JUMP_EQUAL, 0, 3, _MMAP[machine]),
        (_LOAD, 0, 0, _FLAGS),
        (_AND, 0, 0, _SHARED_ANONYMOUS),
        (_JUMP_EQUAL, 1, 0, _SHARED_ANONYMOUS),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
