"""A system call filter for the sandbox: refuse socket families, and memory that no limit of a process counts.

Files of memfd_create(2), shared memory segments, message queues and shared anonymous mappings belong to no process and
no mounted filesystem: a process can fill them and then unmap or close most of what would be counted. The refused calls
fail with ENOSYS, as on a kernel without them, so programs use files in /tmp instead. For sockets see
`wqlab_host.socket_filter`.
"""

from __future__ import annotations

import platform

from wqlab_host.socket_filter import (
    ALLOW,
    AND,
    ARCHITECTURES,
    JUMP_EQUAL,
    LOAD,
    NUMBER,
    REFUSE,
    RETURN,
    pack,
    start,
)

_REFUSED = {
    # memfd_create, shmget, msgget, mq_open, userfaultfd, bpf, perf_event_open, add_key, request_key, keyctl
    "x86_64": (319, 29, 68, 240, 323, 321, 298, 248, 249, 250),
    "aarch64": (279, 194, 186, 180, 282, 280, 241, 217, 218, 219),
}
_MEMFD_SECRET = 447
"""The same number on all architectures."""
_MMAP = {"x86_64": 9, "aarch64": 222}
_SHARED_ANONYMOUS = 0x21
"""MAP_SHARED | MAP_ANONYMOUS; MAP_SHARED_VALIDATE has the bit of MAP_SHARED, too."""
_FLAGS = 40
"""Offset of the low half of args[3] in struct seccomp_data on a little-endian machine."""


def program(machine: str = "") -> bytes | None:
    """Return the filter as an array of struct sock_filter for `machine` (default: this one); None if it is unknown."""
    machine = machine or platform.machine()
    if machine not in ARCHITECTURES:
        return None
    refused = (*_REFUSED[machine], _MEMFD_SECRET)
    after = 5  # steps between the last comparison with a refused call and the step that refuses
    return pack(
        [
            *start(machine),
            (LOAD, 0, 0, NUMBER),
            *((JUMP_EQUAL, len(refused) - 1 - index + after, 0, number) for index, number in enumerate(refused)),
            (JUMP_EQUAL, 0, 3, _MMAP[machine]),
            (LOAD, 0, 0, _FLAGS),
            (AND, 0, 0, _SHARED_ANONYMOUS),
            (JUMP_EQUAL, 1, 0, _SHARED_ANONYMOUS),
            (RETURN, 0, 0, ALLOW),
            (RETURN, 0, 0, REFUSE),
        ]
    )
