"""A system call filter that refuses sockets of all families but those that programs on a plain host need.

A network namespace does not confine AF_VSOCK, which reaches the hypervisor of the host and its other guests. Other
families, such as AF_ALG or AF_PACKET, are parts of the kernel that nothing in a sandbox or an emulator needs.
"""

from __future__ import annotations

import errno
import os
import platform
import socket
import struct
from collections.abc import Sequence

Step = tuple[int, int, int, int]
"""Code, jump if true, jump if false and operand of struct sock_filter."""

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH_* of linux/audit.h by machine."""
ALLOWED_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
LOAD, AND, JUMP_EQUAL, JUMP_GREATER_EQUAL, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000 | errno.ENOSYS, 0x80000000
NUMBER, ARCHITECTURE = 0, 4
"""Offsets in struct seccomp_data: nr and arch."""

_FIRST_ARGUMENT = 16
"""Offset of the low half of args[0] on a little-endian machine; the family is an int."""
_REFUSE_FAMILY = 0x00050000 | errno.EAFNOSUPPORT
_X32 = 0x40000000
"""Bit of the numbers of x32's system calls."""
_SOCKET = {"x86_64": (41, 53), "aarch64": (198, 199)}
"""Numbers of the system calls socket and socketpair, by machine."""
_IO_URING_SETUP = 425
"""Refused, because io_uring creates sockets by requests in shared memory, which a filter of system calls cannot see."""


def start(machine: str) -> list[Step]:
    """Return the steps that each filter begins with: they refuse calls of x32 and socket families, and io_uring.

    Calls of another architecture, such as 32-bit ones on x86_64, kill the process: their numbers differ.
    """
    socket_call, pair_call = _SOCKET[machine]
    count = len(ALLOWED_FAMILIES)
    return [
        (LOAD, 0, 0, ARCHITECTURE),
        (JUMP_EQUAL, 1, 0, ARCHITECTURES[machine]),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        (JUMP_GREATER_EQUAL, 1, 0, _X32),
        (JUMP_EQUAL, 0, 1, _IO_URING_SETUP),
        (RETURN, 0, 0, REFUSE),
        (JUMP_EQUAL, 1, 0, socket_call),
        (JUMP_EQUAL, 0, count + 2, pair_call),
        (LOAD, 0, 0, _FIRST_ARGUMENT),
        *((JUMP_EQUAL, count - index, 0, int(family)) for index, family in enumerate(ALLOWED_FAMILIES)),
        (RETURN, 0, 0, _REFUSE_FAMILY),
    ]


def pack(steps: Sequence[Step]) -> bytes:
    """Return steps as an array of struct sock_filter."""
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def program(machine: str = "") -> bytes | None:
    """Return the filter for `machine` (default: this one); None if it is unknown."""
    machine = machine or platform.machine()
    if machine not in ARCHITECTURES:
        return None
    return pack([*start(machine), (RETURN, 0, 0, ALLOW)])


def open_program() -> int | None:
    """Return a descriptor of a file in memory that has the filter; None if this machine is unknown."""
    content = program()
    if content is None:
        return None
    descriptor = os.memfd_create("socket-filter")
    os.write(descriptor, content)
    return descriptor
