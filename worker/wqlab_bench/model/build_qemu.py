"""Build the patched QEMU of modelled devices: `model-qemu/<hash>/qemu-system-*` in the cache.

    python -m wqlab_bench.model.build_qemu [--background]

builds it unless the cache has it. The source is the tarball of Debian 12, which stays the same as long as that release
is on the mirrors; a point release only adds patches, which are not used here. With `--background` the command returns
at once, and the build goes on with the lowest priority.
"""

from __future__ import annotations

import argparse
import fcntl
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from wqlab_contracts.specs import CpuArch
from wqlab_host.apt import Apt, AptError

from .. import confinement
from ..instrument.build_plugin import InstrumentUnsupported, compiler
from ..qemu_program import PROGRAM

SOURCE = "q/qemu/qemu_7.2+dfsg.orig.tar.xz"
"""Path of the tarball in Debian's pool of component main."""
SHA256 = "91aca71520040edc40b8d437aa3004dae614f58e286cf653ee8996c07af2962f"
VERSION = "7.2.0"
CONFIGURATION = (
    "--target-list=x86_64-softmmu",
    "--without-default-features",
    "--without-default-devices",
    "--enable-system",
    "--enable-tcg",
    "--enable-plugins",
    "--enable-seccomp",
    "--enable-fdt=system",
    "--disable-docs",
    "--disable-tools",
    "--disable-werror",
    "--disable-install-blobs",
)
"""Arguments of QEMU's configure. The patch selects the devices of the machine."""
ARCHITECTURES: tuple[CpuArch, ...] = ("x86_64",)
"""Of the guests. For arm64, the machine `virt` does not link without the devices that QEMU's default has."""
COMMAND = "make model"
MINUTES = 5
"""Time of a build on two idle cores, for messages."""
_TOOLS = ("meson", "ninja", "pkg-config", "patch", "xz")
_LIBRARIES = ("glib-2.0", "gthread-2.0", "pixman-1", "libseccomp", "zlib")
"""Libraries by their names in pkg-config. libfdt has none: configure reports it."""
_PACKAGES = "lab/packages-model.txt"
_PATCHES = Path(__file__).parent
_NICENESS = 19
_STEPS = """
tar -xJf "$1" --strip-components=1
shift
for patch; do
    echo "patch ${patch##*/}"
    patch -p1 --no-backup-if-mismatch < "$patch"
done
mkdir build
cd build
"""


class BuildError(Exception):
    """The build failed; the message says why, and where its log is."""


def find_program(cache: Path, arch: CpuArch) -> Path:
    """Return the built program for guests of `arch`. Raises InstrumentUnsupported if it is missing."""
    if arch not in ARCHITECTURES:
        raise InstrumentUnsupported(f"modelled devices have architecture {', '.join(ARCHITECTURES)}, not {arch}")
    program = cache / "model-qemu" / content_key() / PROGRAM[arch]
    if not program.exists():
        raise InstrumentUnsupported(
            f"the QEMU of modelled devices is not built; `{COMMAND}` builds it (about {MINUTES} minutes on two cores)"
        )
    return program


def patches() -> list[Path]:
    """Return the patches in the order in which they apply. Raises InstrumentUnsupported if there are none."""
    found = sorted(_PATCHES.glob("*.patch"))
    if not found:
        raise InstrumentUnsupported("this version has no patch for the QEMU of modelled devices; install another one")
    return found


@functools.cache
def patch_hash() -> str:
    """Return the SHA-256 of the patches. Raises InstrumentUnsupported."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in patches())).hexdigest()


@functools.cache
def content_key() -> str:
    """Return a hash of what determines the program: source, patches, configuration, compiler.

    Raises InstrumentUnsupported.
    """
    steps = hashlib.sha256(_STEPS.encode()).hexdigest()
    inputs = [SHA256, patch_hash(), steps, *CONFIGURATION, compiler()]
    return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:32]


def describe() -> str:
    """Return the description of the emulator for reports, `QEMU 7.2.0, patch sha256:...`."""
    return f"QEMU {VERSION}, patch sha256:{patch_hash()}"


def build(cache: Path, *, wait: bool = True) -> Path:
    """Build the programs unless the cache has them, and return their folder.

    Of two builders one waits for the other; without `wait` it raises BlockingIOError. Raises BuildError and
    InstrumentUnsupported.
    """
    folder = cache / "model-qemu"
    built = folder / content_key()
    folder.mkdir(parents=True, exist_ok=True)
    if built.exists():
        return built
    with _lock(folder / "lock", wait):
        if not built.exists():
            _check_tools()
            tarball = _fetch(cache)
            for left in folder.glob("build-*/"):  # of a builder that was killed
                shutil.rmtree(left)
            with tempfile.TemporaryDirectory(prefix="build-", dir=folder) as name:
                finished = _build(tarball, Path(name), log_file(cache))
                finished.rename(built)
    return built


def log_file(cache: Path) -> Path:
    return cache / "model-qemu" / "build.log"


def _build(tarball: Path, work: Path, log: Path) -> Path:
    """Build in the empty folder `work` and return a folder with nothing but the programs."""
    source, finished = work / "source", work / "finished"
    source.mkdir()
    finished.mkdir()
    jobs = len(os.sched_getaffinity(0))
    configure = " ".join(("../configure", *CONFIGURATION))
    programs = " ".join(PROGRAM[arch] for arch in ARCHITECTURES)
    script = f"set -eu\n{_STEPS}{configure}\nninja -j {jobs} {programs}\nstrip {programs}\ncp {programs} {finished}\n"
    environment = [f"{name}={value}" for name, value in {**confinement.PLAIN_ENVIRONMENT, "HOME": "/tmp"}.items()]  # noqa: S108
    words = ["env", "-C", str(source), *environment, "sh", "-c", script, "build", str(tarball), *map(str, patches())]
    command = confinement.confine(words, [tarball, *patches()], writable=[work], network=False)
    log.write_bytes(b"")
    with log.open("ab") as output:
        done = subprocess.run(
            ["nice", "-n", str(_NICENESS), *command], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            check=False, env=confinement.PLAIN_ENVIRONMENT,
        )  # fmt: skip
    if done.returncode:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise BuildError(f"QEMU for modelled devices could not be built; the end of {log}:\n{end}")
    return finished


def _fetch(cache: Path) -> Path:
    """Return the tarball, and download it unless the cache has it. Raises BuildError."""
    tarball = cache / "model-qemu" / Path(SOURCE).name
    if tarball.exists() and hashlib.sha256(tarball.read_bytes()).hexdigest() == SHA256:
        return tarball
    try:
        Apt(cache / "apt").download_from_pool(SOURCE, SHA256, tarball)
    except AptError as error:
        raise BuildError(f"cannot download the source of QEMU: {error}") from error
    return tarball


def _check_tools() -> None:
    """Raise BuildError if a program or library that the build needs is missing."""
    missing = [name for name in _TOOLS if shutil.which(name) is None]
    if not missing:
        known = [subprocess.run(["pkg-config", "--exists", name], check=False).returncode == 0 for name in _LIBRARIES]
        missing = [name for name, exists in zip(_LIBRARIES, known, strict=True) if not exists]
    if missing:
        raise BuildError(f"{', '.join(missing)} missing; `{COMMAND}` installs the packages of {_PACKAGES}")


@contextmanager
def _lock(file: Path, wait: bool) -> Iterator[None]:
    with file.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield


def _yield_to_other_sessions() -> None:
    """Lower the priority of this session: with autogroups, niceness only counts inside one (sched(7))."""
    with suppress(OSError):  # a kernel without autogroups
        Path("/proc/self/autogroup").write_text(str(_NICENESS))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="wqlab_bench.model.build_qemu", description="Build the QEMU of modelled devices."
    )
    parser.add_argument("--background", action="store_true", help="return at once; a running build is left alone")
    parser.add_argument("--detached", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    cache = Path(os.environ["WQLAB_CACHE"]).absolute()
    try:
        if (cache / "model-qemu" / content_key()).exists():
            return 0
        if chosen.background:
            _detach(cache)
            return 0
        if chosen.detached:
            _yield_to_other_sessions()
        else:
            print(f"building QEMU for modelled devices, about {MINUTES} minutes on two cores; log: {log_file(cache)}")
        print(build(cache, wait=not chosen.detached))
    except BlockingIOError:
        return 0
    except InstrumentUnsupported as error:
        print(error, file=sys.stderr)
        return 0 if chosen.background else 4
    except BuildError as error:
        print(error, file=sys.stderr)
        return 4
    return 0


def _detach(cache: Path) -> None:
    """Start this command again in a session of its own, without a terminal. Its log tells how it ended."""
    log_file(cache).parent.mkdir(parents=True, exist_ok=True)
    with log_file(cache).open("ab") as output:
        subprocess.Popen(
            [sys.executable, "-m", "wqlab_bench.model.build_qemu", "--detached"],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
