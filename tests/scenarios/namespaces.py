"""Emulate the machines of a small network with network namespaces, without root.

`enter` starts a program in a new user and network namespace, in which it may create further namespaces and virtual
links. Other programs run without privileges, as on a real machine (bubblewrap requires this).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

_WITHOUT_PRIVILEGES = ("setpriv", "--ambient-caps=-all", "--inh-caps=-all")


def enter(*command: str) -> list[str]:
    """Return the command line that runs `command` with privileges over the network."""
    return ["unshare", "--user", "--map-current-user", "--keep-caps", "--net", *command]


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


class Hub:
    """The central namespace, to which every machine has a link."""

    ADDRESS = "10.77.0.1"

    def __init__(self) -> None:
        _ip("link", "set", "lo", "up")
        _ip("address", "add", f"{self.ADDRESS}/32", "dev", "lo")
        self.machines = 0

    def command(self, *command: str | Path) -> list[str]:
        return [*_WITHOUT_PRIVILEGES, *map(str, command)]


class Machine:
    """Namespace whose only link leads to the hub."""

    def __init__(self, hub: Hub) -> None:
        hub.machines += 1
        self._holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        self._net = f"/proc/{self._holder.pid}/ns/net"
        own = Path("/proc/self/ns/net").stat().st_ino
        while Path(self._net).stat().st_ino == own:
            if self._holder.poll() is not None:
                raise RuntimeError("cannot create a network namespace")
        here, there = f"hub{hub.machines}", f"far{hub.machines}"
        self._link = here
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

    def command(self, *command: str | Path) -> list[str]:
        """Return the command line that runs a program on this machine."""
        return ["nsenter", f"--net={self._net}", *_WITHOUT_PRIVILEGES, *map(str, command)]

    def cut(self) -> None:
        _ip("link", "set", self._link, "down")

    def reconnect(self) -> None:
        _ip("link", "set", self._link, "up")

    def close(self) -> None:
        self._holder.terminate()
        self._holder.wait()
