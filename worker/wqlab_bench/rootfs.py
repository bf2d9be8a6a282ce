"""Builds the root filesystem that the golden system and every variant boot: `rootfs/<hash>.cpio.zst` in the cache.

The image is a function of its inputs (packages with their versions, the list of programs, our own files), which name
it; nothing in it is secret or differs between boards. Built by any user from the machine's own apt sources: packages
are only unpacked, never configured.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import cpio, elf

PACKAGES = (
    "busybox-static", "dash", "dmsetup", "dropbear-bin", "fio", "kexec-tools", "libaio1", "libblkid1", "libc6",
    "libcrypt1", "libdevmapper1.02.1", "libedit2", "libinih1", "libmd0", "libbsd0", "libnuma1", "libpcre2-8-0",
    "libselinux1", "libsmartcols1", "libtinfo6", "libtomcrypt1", "libtommath1", "libgmp10", "libudev1", "liburcu8",
    "libuuid1", "mawk", "openssh-client", "openssh-sftp-server", "util-linux", "xfsprogs", "zlib1g",
)  # fmt: skip

PROGRAMS = {
    "bin/busybox": "usr/bin/busybox",
    "bin/dash": "usr/bin/sh",
    "usr/bin/mawk": "usr/bin/awk",
    "usr/bin/fio": "usr/bin/fio",
    "usr/bin/lscpu": "usr/bin/lscpu",
    "usr/bin/scp": "usr/bin/scp",
    "usr/bin/chrt": "usr/bin/chrt",
    "usr/bin/taskset": "usr/bin/taskset",
    "usr/lib/openssh/sftp-server": "usr/lib/sftp-server",
    "usr/sbin/dropbear": "usr/sbin/dropbear",
    "usr/bin/dropbearkey": "usr/bin/dropbearkey",
    "usr/sbin/xfs_io": "usr/sbin/xfs_io",
    "sbin/blkdiscard": "usr/sbin/blkdiscard",
    "sbin/dmsetup": "usr/sbin/dmsetup",
    "sbin/kexec": "usr/sbin/kexec",
    "sbin/mkfs.xfs": "usr/sbin/mkfs.xfs",
}
"""Path in the unpacked packages -> path in the image. Every other command is one of busybox's applets.

`sh` is dash and `awk` is mawk: Debian's busybox shell runs its own applets before anything on PATH, and busybox's awk
reads 016 as an octal number.
"""

NEVER_CALLED = {
    "libgfapi.so.0", "libnbd.so.0", "libibverbs.so.1", "librdmacm.so.1", "librados.so.2", "librbd.so.1",
    "libpmemblk.so.1", "libpmem.so.1", "libxenctrl.so.4.17",
}  # fmt: skip
"""Libraries of fio's network engines and kexec's Xen support: 50 MB that no plan calls (`elf.stand_in_sources`)."""

FOLDERS = (
    "dev", "etc", "etc/dropbear", "lab", "lab/plan", "mnt", "proc", "root", "root/.ssh", "run", "sys", "tmp", "usr",
    "usr/bin", "usr/lib", "usr/lib64", "usr/sbin", "var", "var/log",
)  # fmt: skip
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64", "var/run": "/run"}
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "etc/group": "root:x:0:\n",
    "etc/shells": "/bin/sh\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/profile": "export PATH=/usr/sbin:/usr/bin\n",
}
LIBRARY_FOLDERS = ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu")
ZSTD_LEVEL = 19
"""Unpacking time does not depend on the level; every byte saved is one less to load, hash and copy by kexec."""

_INIT = Path(__file__).parent / "guest" / "init"
_URI = re.compile(r"^'[^']+' (\S+)_(\S+)_(\S+)\.deb ", re.MULTILINE)


class RootfsError(Exception):
    """The image cannot be built: the text says which step failed, with its output."""


def build(cache: Path) -> Path:
    """The image's path; builds it if the cache lacks it. Raises RootfsError."""
    apt = _Apt(cache / "apt")
    versions = apt.versions(PACKAGES)
    folder = cache / "rootfs"
    image = folder / f"{content_key(versions)}.cpio.zst"
    if image.exists():
        return image
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="build-", dir=folder) as name:
        scratch = Path(name)
        tree = apt.unpack(versions, scratch)
        archive = scratch / "rootfs.cpio"
        with archive.open("wb") as output:
            cpio.write_archive(_entries(tree, scratch), output)
        packed = scratch / "rootfs.cpio.zst"
        _run(["zstd", "-q", f"-{ZSTD_LEVEL}", "-T0", str(archive), "-o", str(packed)])
        packed.chmod(0o644)
        # Renaming makes it appear whole or not at all, also when two builders race.
        packed.rename(image)
    return image


def content_key(versions: dict[str, str]) -> str:
    """Hash of everything the image is made from: package versions and the text of this builder."""
    own = [Path(__file__), Path(cpio.__file__), Path(elf.__file__), _INIT]
    inputs = {
        "packages": versions,
        "builder": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in own},
    }
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:32]


class _Apt:
    """The machine's apt, used to resolve and download; nothing is installed and no privilege is needed."""

    def __init__(self, private: Path) -> None:
        self._private = private
        self._options = [
            "-q",
            "-o",
            "Debug::NoLocking=1",
            "-o",
            "Dir::Cache::pkgcache=",
            "-o",
            "Dir::Cache::srcpkgcache=",
        ]

    def versions(self, packages: Sequence[str]) -> dict[str, str]:
        """Candidate version of each package, from the machine's package lists or, failing that, from fresh ones."""
        try:
            return self._versions(packages)
        except RootfsError:
            lists = self._private / "lists"
            (lists / "partial").mkdir(parents=True, exist_ok=True)
            self._options += ["-o", f"Dir::State::lists={lists}/"]
            _run(["apt-get", *self._options, "update"])
            return self._versions(packages)

    def _versions(self, packages: Sequence[str]) -> dict[str, str]:
        answer = _run(["apt-get", *self._options, "download", "--print-uris", *packages])
        versions = {name: version.replace("%3a", ":") for name, version, _ in _URI.findall(answer)}
        if missing := set(packages) - set(versions):
            raise RootfsError(f"apt knows no package {', '.join(sorted(missing))}")
        return versions

    def unpack(self, versions: dict[str, str], scratch: Path) -> Path:
        """Downloads (apt checks the hashes) and unpacks into one tree, which is returned."""
        packages, tree = scratch / "packages", scratch / "tree"
        packages.mkdir()
        wanted = [f"{name}={version}" for name, version in versions.items()]
        _run(["apt-get", *self._options, "download", *wanted], packages)
        for package in sorted(packages.glob("*.deb")):
            _run(["dpkg-deb", "-x", str(package), str(tree)])
        return tree


def _entries(tree: Path, scratch: Path) -> list[cpio.Entry]:
    """The image's members, folders first."""
    entries = [cpio.directory(name) for name in FOLDERS]
    entries += [cpio.symlink(name, target) for name, target in LINKS.items()]
    entries += [cpio.file(name, text.encode()) for name, text in FILES.items()]
    # The kernel opens it for the first process before any file system is mounted.
    entries.append(cpio.character_device("dev/console", 5, 1))
    entries.append(cpio.file("init", _INIT.read_bytes(), executable=True))
    entries += [cpio.file(target, (tree / name).read_bytes(), True) for name, target in PROGRAMS.items()]
    entries += [cpio.file(name, data, True) for name, data in _libraries(tree, scratch).items()]
    taken = {entry.name for entry in entries}
    for applet in _run([str(tree / "bin/busybox"), "--list-full"]).split():
        name = f"usr/{applet.removeprefix('usr/')}" if not applet.startswith("linuxrc") else ""
        if name and name not in taken and f"usr/bin/{Path(name).name}" not in taken:
            entries.append(cpio.symlink(name, "/bin/busybox"))
    return entries


def _libraries(tree: Path, scratch: Path) -> dict[str, bytes]:
    """Path in the image -> content: every library the programs load, and their loader."""
    programs = [tree / name for name in PROGRAMS]
    found = elf.closure(programs, [tree / folder for folder in LIBRARY_FOLDERS])
    for soname, users in found.absent.items():
        if soname not in NEVER_CALLED:
            names = ", ".join(sorted(str(user.relative_to(tree)) for user in users))
            raise RootfsError(f"{names} needs {soname}: add its package to PACKAGES")
    images = {f"usr/lib/{soname}": path.read_bytes() for soname, path in found.libraries.items()}
    for loader in {elf.interpreter(program) or "" for program in programs} - {""}:
        images[f"usr/{loader.lstrip('/')}"] = (tree / loader.lstrip("/")).read_bytes()
    stand_in = _stand_in(found, scratch)
    images |= {f"usr/lib/{soname}": stand_in for soname in found.absent}
    return images


def _stand_in(found: elf.Closure, scratch: Path) -> bytes:
    """One library of aborting functions in place of all absent ones."""
    provided = {name for library in found.libraries.values() for name in elf.defined(library)}
    users = {user for group in found.absent.values() for user in group}
    lacking = {symbol for user in users for symbol in elf.undefined(user) if symbol.name not in provided}
    for name, text in elf.stand_in_sources(lacking).items():
        (scratch / name).write_text(text)
    library = scratch / "stand-in.so"
    _run(
        [
            "gcc", "-w", "-shared", "-fPIC", "-nostdlib", "-fno-builtin", "-s", "-O1", str(scratch / "stand-in.c"),
            f"-Wl,--version-script={scratch / 'stand-in.map'}", "-o", str(library),
        ]
    )  # fmt: skip
    return library.read_bytes()


def _run(command: list[str], directory: Path | None = None) -> str:
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=directory, env=environment)
    if result.returncode:
        raise RootfsError(f"{' '.join(command)}: {(result.stderr or result.stdout).strip()[-2000:]}")
    return result.stdout
