"""Build the root filesystem image that the golden system and all variants boot: `rootfs/<hash>.cpio` in the cache.

The image is named by a hash of its inputs: the versions of the packages, the list of programs and our own files. It has
no secrets and is the same for all devices. Any user can build it from the machine's own apt sources, because packages
are only unpacked, never configured.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

from wqlab_contracts.specs import CpuArch
from wqlab_host import apt, tool

from . import cpio, shared_libraries

PACKAGES = (
    "busybox-static", "dash", "dmsetup", "dropbear-bin", "fio", "kexec-tools", "libaio1", "libblkid1", "libc6",
    "libcrypt1", "libdevmapper1.02.1", "libedit2", "libinih1", "libmd0", "libbsd0", "libnuma1", "libpcre2-8-0",
    "libselinux1", "libsmartcols1", "libtinfo6", "libtomcrypt1", "libtommath1", "libgmp10", "libudev1", "liburcu8",
    "libuuid1", "mawk", "openssh-client", "openssh-sftp-server", "util-linux", "xfsprogs", "zlib1g",
    # The encoder of plan cmwq-load: 2.6 MB, most of it the C++ library.
    "mjpegtools", "libgcc-s1", "libmjpegutils-2.1-0", "libmpeg2encpp-2.1-0", "libstdc++6",
    # For plans of single subsystems: 2 MB.
    "btrfs-progs", "coreutils", "erofs-utils", "liblz4-1", "rt-tests", "wireguard-tools",
    # For plans rt-app and rt-app-scopes: 0.1 MB.
    "libjson-c5", "rt-app",
)  # fmt: skip

PROGRAMS = {
    "bin/busybox": "usr/bin/busybox",
    "bin/dash": "usr/bin/sh",
    "usr/bin/mawk": "usr/bin/awk",
    "usr/bin/fio": "usr/bin/fio",
    "usr/bin/hackbench": "usr/bin/hackbench",
    "usr/bin/lscpu": "usr/bin/lscpu",
    "usr/bin/mkfs.erofs": "usr/sbin/mkfs.erofs",
    "usr/bin/mpeg2enc": "usr/bin/mpeg2enc",
    "usr/bin/rt-app": "usr/bin/rt-app",
    "usr/bin/scp": "usr/bin/scp",
    "usr/bin/split": "usr/bin/split",
    "usr/bin/chrt": "usr/bin/chrt",
    "usr/bin/taskset": "usr/bin/taskset",
    "usr/bin/wg": "usr/bin/wg",
    "usr/lib/openssh/sftp-server": "usr/lib/sftp-server",
    "usr/sbin/dropbear": "usr/sbin/dropbear",
    "usr/bin/dropbearkey": "usr/bin/dropbearkey",
    "usr/sbin/xfs_io": "usr/sbin/xfs_io",
    "bin/btrfs": "usr/bin/btrfs",
    "sbin/blkdiscard": "usr/sbin/blkdiscard",
    "sbin/dmsetup": "usr/sbin/dmsetup",
    "sbin/kexec": "usr/sbin/kexec",
    "sbin/mkfs.btrfs": "usr/sbin/mkfs.btrfs",
    "sbin/mkfs.xfs": "usr/sbin/mkfs.xfs",
    "sbin/vmcore-dmesg": "usr/sbin/vmcore-dmesg",
}
"""Path in the unpacked packages -> path in the image. All other commands are applets of busybox.

`sh` is dash and `awk` is mawk, because Debian's busybox shell prefers its applets to programs on PATH, and busybox's
awk reads 016 as an octal number.
"""

NEWER_SUITE = "trixie"
NEWER_PACKAGES = ("libc6", "netperf")
NEWER_PROGRAMS = ("netperf", "netserver")
"""Programs in /usr/bin that only the newer Debian release has.

They run with the loader and the libraries of that release in `NEWER_FOLDER`.
"""
NEWER_FOLDER = f"usr/lib/{NEWER_SUITE}"

NEVER_CALLED = {
    "libgfapi.so.0", "libnbd.so.0", "libibverbs.so.1", "librdmacm.so.1", "librados.so.2", "librbd.so.1",
    "libpmemblk.so.1", "libpmem.so.1", "libxenctrl.so.4.17",
    "liblzo2.so.2", "libzstd.so.1",
}  # fmt: skip
"""Libraries of fio's network engines, kexec's Xen support, and btrfs' receive and restore: 50 MB that no plan uses.

The image has stand-ins for them (`shared_libraries.stand_in_sources`).
"""

FOLDERS = (
    "dev", "etc", "etc/dropbear", "lab", "lab/plan", "mnt", "proc", "root", "root/.ssh", "run", "sys", "tmp", "usr",
    "usr/bin", "usr/lib", "usr/lib/wqlab", "usr/lib64", "usr/sbin", "var", "var/log",
)  # fmt: skip
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64", "var/run": "/run"}
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "etc/group": "root:x:0:\n",
    "etc/shells": "/bin/sh\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/profile": "export PATH=/usr/sbin:/usr/bin\n",
}
TRIPLET: dict[CpuArch, str] = {"x86_64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
"""Debian's name of an architecture in library folders and compilers."""

_GUEST = Path(__file__).parent / "guest"
OWN = {
    "init": "init",
    "network.sh": "usr/sbin/wqlab-network",
    "disks.sh": "usr/sbin/wqlab-disks",
    "crash_kernel.sh": "usr/sbin/wqlab-crash-kernel",
    "crash_init": "usr/lib/wqlab/crash_init",
}
"""Our script in `guest/` -> path in the image."""
_MONITOR = _GUEST / "wqmon.c"
_COUNTER = _GUEST / "wqcount.c"
_MARKER = _GUEST / "wqmark.c"


class RootfsError(Exception):
    """The image cannot be built; the message has the failed step and its output."""


def build(cache: Path, arch: CpuArch = "x86_64") -> Path:
    """Return the path of the image, and build it unless it is cached. Raises RootfsError."""
    try:
        return _build(cache, arch)
    except apt.AptError as error:
        raise RootfsError(str(error)) from error


def _build(cache: Path, arch: CpuArch) -> Path:
    packages, newer = apt.Apt(cache / "apt", arch), apt.Apt(cache / "apt", arch, NEWER_SUITE)
    folder = cache / "rootfs"
    for fresh in (False, True):  # a cached image needs no network
        versions = packages.versions(PACKAGES, fresh=fresh)
        newer_versions = newer.versions(NEWER_PACKAGES, fresh=fresh)
        image = folder / f"{content_key(versions, newer_versions, arch)}.cpio"
        if image.exists():
            return image
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="build-", dir=folder) as name:
        scratch = Path(name)
        tree = packages.unpack(versions, scratch)
        entries = Image(arch, tree, scratch).entries(_applets(cache, scratch))
        entries += newer_entries(arch, newer.unpack(newer_versions, scratch / "newer"))
        archive = scratch / "rootfs.cpio"
        with archive.open("wb") as output:
            cpio.write_archive(entries, output)
        archive.chmod(0o644)
        # A rename is atomic, also if two builders race.
        archive.rename(image)
    return image


def content_key(versions: dict[str, str], newer: dict[str, str], arch: CpuArch) -> str:
    """Return a hash of the inputs of the image: package versions and the source of this builder."""
    modules = [Path(__file__), Path(apt.__file__), Path(cpio.__file__), Path(shared_libraries.__file__)]
    own = [*modules, _MONITOR, _COUNTER, _MARKER, _MARKER.with_suffix(".h"), *(_GUEST / name for name in OWN)]
    inputs = {
        "arch": arch,
        "packages": versions,
        NEWER_SUITE: newer,
        "builder": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in own},
    }
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:32]


def _applets(cache: Path, scratch: Path) -> list[str]:
    """Return the paths of busybox's applets, as listed by the build for this machine's own architecture."""
    native = apt.Apt(cache / "apt")
    tree = native.unpack(native.versions(["busybox-static"]), scratch / "native")
    return _run([str(tree / "bin/busybox"), "--list-full"]).split()


class Image:
    """The content of the image for one architecture, from the packages unpacked in `tree`."""

    def __init__(self, arch: CpuArch, tree: Path, scratch: Path) -> None:
        self._arch = arch
        self._triplet = TRIPLET[arch]
        self._tree = tree
        self._scratch = scratch

    def entries(self, applets: list[str]) -> list[cpio.Entry]:
        """Return the members of the image, folders first."""
        entries = [cpio.directory(name) for name in FOLDERS]
        entries += [cpio.symlink(name, target) for name, target in LINKS.items()]
        entries += [cpio.file(name, text.encode()) for name, text in FILES.items()]
        # The kernel opens it for the first process before any filesystem is mounted.
        entries.append(cpio.character_device("dev/console", 5, 1))
        entries += [cpio.file(target, (_GUEST / name).read_bytes(), True) for name, target in OWN.items()]
        entries += [cpio.file(target, (self._tree / name).read_bytes(), True) for name, target in PROGRAMS.items()]
        entries += [cpio.file(name, data, True) for name, data in self.libraries().items()]
        entries.append(cpio.file("usr/bin/wqmon", self.static_program(_MONITOR), executable=True))
        entries.append(cpio.file("usr/bin/wqcount", self.static_program(_COUNTER), executable=True))
        entries.append(cpio.file("usr/bin/wqmark", compile_marker(self._arch, self._scratch), executable=True))
        taken = {entry.name for entry in entries}
        for applet in applets:
            name = f"usr/{applet.removeprefix('usr/')}" if not applet.startswith("linuxrc") else ""
            if name and name not in taken and f"usr/bin/{Path(name).name}" not in taken:
                entries.append(cpio.symlink(name, "/bin/busybox"))
        return entries

    def libraries(self) -> dict[str, bytes]:
        """Return path in the image -> content of all libraries that the programs load, and their loader."""
        tree = self._tree
        programs = [tree / name for name in PROGRAMS]
        found = shared_libraries.closure(programs, [tree / "lib" / self._triplet, tree / "usr/lib" / self._triplet])
        for soname, users in found.absent.items():
            if soname not in NEVER_CALLED:
                names = ", ".join(sorted(str(user.relative_to(tree)) for user in users))
                raise RootfsError(f"{names} needs {soname}; add its package to PACKAGES")
        images = {f"usr/lib/{soname}": path.read_bytes() for soname, path in found.libraries.items()}
        for loader in {shared_libraries.interpreter(program) or "" for program in programs} - {""}:
            images[f"usr/{loader.lstrip('/')}"] = (tree / loader.lstrip("/")).read_bytes()
        if found.absent:
            stand_in = self.stand_in(found)
            images |= {f"usr/lib/{soname}": stand_in for soname in found.absent}
        return images

    def static_program(self, source: Path) -> bytes:
        """Compile a program of one file for the image's architecture."""
        program = self._scratch / source.stem
        _run([f"{self._triplet}-gcc", "-O2", "-Wall", "-Wextra", "-static", "-s", str(source), "-o", str(program)])
        return program.read_bytes()

    def stand_in(self, found: shared_libraries.Closure) -> bytes:
        """Compile one library of aborting functions to stand in for all absent libraries."""
        provided = {name for library in found.libraries.values() for name in shared_libraries.defined(library)}
        users = {user for group in found.absent.values() for user in group}
        missing = {
            symbol for user in users for symbol in shared_libraries.undefined(user) if symbol.name not in provided
        }
        for name, text in shared_libraries.stand_in_sources(missing).items():
            (self._scratch / name).write_text(text)
        library = self._scratch / "stand-in.so"
        _run(
            [
                f"{self._triplet}-gcc", "-w", "-shared", "-fPIC", "-nostdlib", "-fno-builtin", "-s", "-O1",
                str(self._scratch / "stand-in.c"), f"-Wl,--version-script={self._scratch / 'stand-in.map'}",
                "-o", str(library),
            ]
        )  # fmt: skip
        return library.read_bytes()


def compile_marker(arch: CpuArch, scratch: Path) -> bytes:
    """Compile `wqmark`, which talks to the plugin of instrumented devices, in `scratch`. It needs no C library."""
    program = scratch / "wqmark"
    _run(
        [
            f"{TRIPLET[arch]}-gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-fno-stack-protector",
            "-nostdlib", "-static", "-s", str(_MARKER), "-o", str(program),
        ]
    )  # fmt: skip
    return program.read_bytes()


def newer_entries(arch: CpuArch, tree: Path) -> list[cpio.Entry]:
    """Return the members for `NEWER_PROGRAMS`, whose packages are unpacked in `tree`.

    Each program is started through its own loader, by a link to the loader that has the program's name. The process
    then has this name too; otherwise traces and `ps` would show the loader's. Raises RootfsError if a library is
    missing.
    """
    programs = {name: tree / "usr/bin" / name for name in NEWER_PROGRAMS}
    found = shared_libraries.closure(programs.values(), [tree / "usr/lib" / TRIPLET[arch]])
    if found.absent:
        raise RootfsError(
            f"{', '.join(NEWER_PROGRAMS)} need {', '.join(found.absent)}; add the packages to NEWER_PACKAGES"
        )
    files = dict(found.libraries)
    entries = [cpio.directory(NEWER_FOLDER), cpio.directory(f"{NEWER_FOLDER}/bin")]
    for name, path in programs.items():
        loader = tree / "usr" / (shared_libraries.interpreter(path) or "").lstrip("/")
        files[loader.name] = loader
        entries.append(cpio.file(f"{NEWER_FOLDER}/bin/{name}", path.read_bytes(), True))
        entries.append(cpio.symlink(f"{NEWER_FOLDER}/{name}", loader.name))
        start = f"/{NEWER_FOLDER}/{name} --library-path /{NEWER_FOLDER} /{NEWER_FOLDER}/bin/{name}"
        entries.append(cpio.file(f"usr/bin/{name}", f'#!/bin/sh\nexec {start} "$@"\n'.encode(), True))
    entries += [cpio.file(f"{NEWER_FOLDER}/{name}", path.read_bytes(), True) for name, path in files.items()]
    return entries


def _run(command: list[str]) -> str:
    return tool.output(command, RootfsError)
