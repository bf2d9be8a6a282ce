"""Machines of a small network, as network namespaces of one machine; needs no root.

`enter` starts a program in a user namespace of its own with a network of its own: there this process may make others
and cables between them. Programs that are to behave as on any machine get no privileges (bubblewrap insists).
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_PLAIN = ("setpriv", "--ambient-caps=-all", "--inh-caps=-all")


def enter(*command: str) -> list[str]:
    """The command line that runs `command` as the network's root."""
    return ["unshare", "--user", "--map-current-user", "--keep-caps", "--net", *command]


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


class Hub:
    """This namespace, which every machine has a cable to."""

    ADDRESS = "10.77.0.1"

    def __init__(self) -> None:
        _ip("link", "set", "lo", "up")
        _ip("address", "add", f"{self.ADDRESS}/32", "dev", "lo")
        self.machines = 0

    def plain(self, *command: str | Path) -> list[str]:
        return [*_PLAIN, *map(str, command)]


class Machine:
    """A namespace that reaches the hub by one cable, and nothing else."""

    def __init__(self, hub: Hub) -> None:
        hub.machines += 1
        self._holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        self._net = f"/proc/{self._holder.pid}/ns/net"
        own = os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116 - a link that leads nowhere else
        while os.stat(self._net).st_ino == own:  # noqa: PTH116
            if self._holder.poll() is not None:
                raise RuntimeError("no network namespace could be made")
        here, there = f"hub{hub.machines}", f"far{hub.machines}"
        self._cable = here
        _ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", str(self._holder.pid))
        _ip("address", "add", f"10.77.{hub.machines}.1/30", "dev", here)
        _ip("link", "set", here, "up")
        for arguments in (
            ("link", "set", "lo", "up"),
            ("address", "add", f"10.77.{hub.machines}.2/30", "dev", there),
            ("link", "set", there, "up"),
            ("route", "add", "default", "via", f"10.77.{hub.machines}.1"),
        ):
            subprocess.run(["nsenter", f"--net={self._net}", "ip", *arguments], check=True)

    def plain(self, *command: str | Path) -> list[str]:
        """The command line that runs a program on this machine."""
        return ["nsenter", f"--net={self._net}", *_PLAIN, *map(str, command)]

    def cut(self) -> None:
        _ip("link", "set", self._cable, "down")

    def mend(self) -> None:
        _ip("link", "set", self._cable, "up")

    def close(self) -> None:
        self._holder.terminate()
        self._holder.wait()
