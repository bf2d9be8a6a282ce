"""Give a lab file systems of its own, without root: a mount namespace with small volumes and changed files."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_DROP_PRIVILEGES = "setpriv --ambient-caps=-all --inh-caps=-all"


@dataclass(frozen=True)
class Volume:
    """A tmpfs of `size_mib` at `path`. With `over`, a writable layer of that size on top of what the folder has."""

    path: Path
    size_mib: int
    over: bool = False

    def script(self, number: int) -> str:
        path, size = shlex.quote(str(self.path)), f"size={self.size_mib}m"
        if not self.over:
            return f"mkdir -p {path} && mount -t tmpfs -o {size},mode=0755 tmpfs {path}"
        layer = f"/mnt/{number}"
        return (
            f"mkdir {layer} && mount -t tmpfs -o {size} tmpfs {layer} && mkdir {layer}/upper {layer}/work && "
            f"mount -t overlay -o userxattr,lowerdir={path},upperdir={layer}/upper,workdir={layer}/work overlay {path}"
        )


class MountNamespace:
    """A mount namespace. It lasts as long as a process runs in it."""

    def __init__(self, holder: int) -> None:
        self._holder = holder

    def command(self, *command: str | Path) -> list[str]:
        """Return the command line that runs a program in the namespace, without privileges."""
        enter = ["nsenter", f"--target={self._holder}", "--user", "--preserve-credentials", "--mount", "--"]
        return [*enter, *map(str, command)]

    def path(self, inside: Path) -> Path:
        """Return a path outside that leads to a file of the namespace."""
        return Path(f"/proc/{self._holder}/root") / inside.relative_to("/")

    def fill(self, volume: Path) -> Path:
        """Fill a volume with a file, until the kernel refuses one more byte; return the file."""
        file = self.path(volume / "filler")
        with file.open("wb", buffering=0) as output:
            status = os.statvfs(output.fileno())
            for size in (1 << 20, status.f_frsize):
                try:
                    while True:
                        output.write(bytes(size))
                except OSError:
                    continue
        return file


@contextmanager
def mount_namespace(volumes: Sequence[Volume], preparation: Sequence[str] = ()) -> Iterator[MountNamespace]:
    """Mount the volumes in their order, then run the lines of shell `preparation` with privileges over mounts."""
    lines = ["set -e", "mount -t tmpfs -o size=1m tmpfs /mnt"]
    lines += [volume.script(number) for number, volume in enumerate(volumes)]
    lines += [*preparation, "echo mounted", f"exec {_DROP_PRIVILEGES} sleep infinity"]
    command = ["unshare", "--user", "--map-current-user", "--keep-caps", "--mount", "sh", "-c", "\n".join(lines)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "mounted\n", "the file systems could not be mounted"
            yield MountNamespace(holder.pid)
        finally:
            holder.terminate()
