"""Which system calls the filters of the sandbox and of QEMU refuse: each filter is executed as the kernel would."""

from __future__ import annotations

import errno
import socket
import struct
import subprocess
from collections.abc import Callable

import pytest

from wqlab_bench import confinement
from wqlab_host import socket_filter
from wqlab_worker import seccomp

ALLOWED, KILLED = 0x7FFF0000, 0x80000000
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
I386 = 0x40000003
SOCKET = {"x86_64": 41, "aarch64": 198}
SOCKETPAIR = {"x86_64": 53, "aarch64": 199}
MMAP = {"x86_64": 9, "aarch64": 222}
MEMFD_CREATE = {"x86_64": 319, "aarch64": 279}
READ = {"x86_64": 0, "aarch64": 63}
FAMILIES = range(1, 46)
"""AF_UNIX to AF_MCTP."""
NEEDED = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}

Program = Callable[[str], bytes | None]
both = pytest.mark.parametrize("program", [seccomp.program, socket_filter.program], ids=["sandbox", "qemu"])
machines = pytest.mark.parametrize("machine", ["x86_64", "aarch64"])


def answer(program: Program, machine: str, number: int, *arguments: int, arch: int | None = None) -> int:
    """Return what the filter says of a system call."""
    code = program(machine)
    assert code is not None
    steps = list(struct.iter_unpack("=HBBI", code))
    words = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<iIQ6Q", number, ARCHITECTURES[machine] if arch is None else arch, 0, *words)
    at = accumulator = 0
    while True:
        operation, if_true, if_false, operand = steps[at]
        at += 1
        if operation == 0x06:
            return int(operand)
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif operation == 0x54:
            accumulator &= operand
        else:
            taken = accumulator == operand if operation == 0x15 else accumulator >= operand
            at += if_true if taken else if_false


@both
@machines
@pytest.mark.parametrize("call", [SOCKET, SOCKETPAIR], ids=["socket", "socketpair"])
def test_only_the_needed_socket_families_are_allowed(program: Program, machine: str, call: dict[str, int]) -> None:
    refused = 0x00050000 | errno.EAFNOSUPPORT
    for family in (0, *FAMILIES, 1000, 0xFFFFFFFF):
        expected = ALLOWED if family in NEEDED else refused
        assert answer(program, machine, call[machine], family) == expected, family
        # The kernel reads only the low half of the argument.
        assert answer(program, machine, call[machine], family | 7 << 32) == expected, family


@both
@machines
def test_no_other_way_makes_a_socket(program: Program, machine: str) -> None:
    refused = 0x00050000 | errno.ENOSYS
    assert answer(program, machine, 425) == refused, "io_uring"
    assert answer(program, machine, SOCKET[machine] | 0x40000000, 40) == refused, "x32"
    assert answer(program, machine, 102, arch=I386) == KILLED, "socketcall of i386"
    assert answer(program, machine, READ[machine]) == ALLOWED


@machines
def test_the_sandbox_refuses_memory_that_nothing_counts(machine: str) -> None:
    refused = 0x00050000 | errno.ENOSYS
    assert answer(seccomp.program, machine, MEMFD_CREATE[machine]) == refused
    assert answer(seccomp.program, machine, 447) == refused
    assert answer(seccomp.program, machine, MMAP[machine], 0, 4096, 3, 0x21) == refused
    assert answer(seccomp.program, machine, MMAP[machine], 0, 4096, 3, 0x22) == ALLOWED


@pytest.mark.skipif(not confinement.is_available(), reason="this host allows no user namespaces")
def test_what_qemu_is_confined_by_has_no_vsock() -> None:
    tried = (
        "import socket\n"
        "for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_NETLINK, socket.AF_VSOCK, socket.AF_ALG):\n"
        "    try:\n"
        "        socket.socket(family, socket.SOCK_RAW if family == 16 else socket.SOCK_STREAM)\n"
        "        print('made', family.name)\n"
        "    except OSError as error:\n"
        "        print(error.errno, family.name)\n"
    )
    command = confinement.confine(["/usr/bin/python3", "-c", tried], [])
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=confinement.environment())
    refused = [f"{errno.EAFNOSUPPORT} AF_VSOCK", f"{errno.EAFNOSUPPORT} AF_ALG"]
    assert done.stdout.splitlines() == ["made AF_UNIX", "made AF_INET", "made AF_NETLINK", *refused]
