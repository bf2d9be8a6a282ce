"""Confine QEMU, so that a guest that breaks out of it finds no files, processes or secrets of the host.

bubblewrap gives QEMU namespaces of its own for users, processes, mounts, IPC and the host name: it sees /usr, its
images and a private /tmp, and no environment. The network namespace stays the host's, because QEMU itself listens on
the forwarded SSH port. bubblewrap's filter of system calls refuses all socket families that QEMU does not need, and
QEMU's own (`-sandbox`) other programs, privileges and obsolete calls.
"""

from __future__ import annotations

import functools
import logging
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from wqlab_host import socket_filter

log = logging.getLogger(__name__)

SECCOMP = ("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny")
"""Options of QEMU."""
PLAIN_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
"""What programs need that start or contain QEMU."""
LAB_MARKS = ("WQLAB_STATE", "WQLAB_DATA_DIR")
"""Environment variables by which `wqlab-lab stop` finds the processes of a lab."""


def environment() -> dict[str, str]:
    """Return the environment of the program that starts QEMU: no tokens and no addresses of the lab."""
    marks = {name: os.environ[name] for name in LAB_MARKS if name in os.environ}
    return {**PLAIN_ENVIRONMENT, **marks}


def confine(
    command: Sequence[str],
    visible: Sequence[Path],
    devices: Sequence[Path] = (),
    writable: Sequence[Path] = (),
    *,
    network: bool = True,
) -> list[str]:
    """Return `command` in namespaces where it sees only `visible` (read-only) and `writable` files and folders.

    It also sees `devices`, and without `network` no network.

    On a host that allows no user namespaces, the command is returned unchanged, and a warning is logged once.
    """
    if not is_available():
        return list(command)
    return [*_bwrap(visible, devices, writable, network=network), *command]


@functools.cache
def is_available() -> bool:
    """Return True if this host allows the namespaces."""
    try:
        done = subprocess.run([*_bwrap((), ()), "true"], capture_output=True, text=True, check=False, env=environment())
    except OSError as error:
        reason = str(error)
    else:
        reason = done.stderr.strip() if done.returncode else ""
    if reason:
        log.warning("guests run without namespaces of their own, only under QEMU's seccomp filter: %s", reason)
    return not reason


@functools.cache
def _filter_file(pid: int) -> str | None:
    """Return the file with the filter of sockets, which lasts as long as process `pid`, which is this one.

    None on a machine for which there is no filter.
    """
    descriptor = socket_filter.open_program()
    return None if descriptor is None else f"/proc/{pid}/fd/{descriptor}"


def _start_bwrap() -> list[str]:
    """Return the words that start bubblewrap with the filter of sockets, which it reads from a descriptor."""
    file = _filter_file(os.getpid())
    if file is None:
        return ["bwrap"]
    return ["bash", "-c", 'exec {filter}<"$0" && exec bwrap --seccomp "$filter" "$@"', file]


def _bwrap(
    visible: Sequence[Path], devices: Sequence[Path], writable: Sequence[Path] = (), *, network: bool = True
) -> list[str]:
    arguments = [*_start_bwrap(), "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    arguments += ["--unshare-cgroup-try", *([] if network else ["--unshare-net"])]
    # QEMU is the first process of its namespace, so that it is the only child of bwrap (see Machine.kill).
    arguments += ["--as-pid-1", "--die-with-parent", "--cap-drop", "ALL", "--clearenv"]
    arguments += ["--uid", "65534", "--gid", "65534", "--hostname", "guest", "--ro-bind", "/usr", "/usr"]
    for link in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        if Path("/", link).is_symlink():
            arguments += ["--symlink", f"usr/{link}", f"/{link}"]
    arguments += ["--ro-bind-try", "/etc/alternatives", "/etc/alternatives"]
    arguments += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    arguments += ["--proc", "/proc", "--dev", "/dev", "--size", str(64 << 20), "--tmpfs", "/tmp"]  # noqa: S108
    for path in visible:
        arguments += ["--ro-bind", str(path), str(path)]
    for path in writable:
        arguments += ["--bind", str(path), str(path)]
    for path in devices:
        arguments += ["--dev-bind-try", str(path), str(path)]
    return [*arguments, "--remount-ro", "/", "--chdir", "/", "--"]
