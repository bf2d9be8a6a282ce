"""Unpack the kernel of a package without privileges: from the machine's own apt sources, or from files."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_host.apt import Apt, AptError

from ..failures import UserError

_NAME = LinearPattern(r"linux-image-[a-z0-9][a-z0-9.+-]{0,99}")


def unpack_package_files(files: Sequence[Path], cache: Path) -> Path:
    """Return a folder with the files of RPM or Debian packages, kept in `cache`: a distribution may have the kernel in
    one package and its modules in others.

    Raises UserError if a file cannot be read, or if the program that unpacks it is missing.
    """
    digest = hashlib.sha256()
    for path in files:
        try:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}", advice="Name a file of a package.") from error
    target = cache / "packages" / digest.hexdigest()[:32]
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            folder = Path(scratch, "files")
            folder.mkdir()
            for path in files:
                _unpack(path, folder)
            folder.rename(target)
    return target


def _unpack(path: Path, folder: Path) -> None:
    is_deb = path.suffix == ".deb"
    command = ["dpkg-deb", "-x", str(path), str(folder)] if is_deb else ["bsdtar", "-xf", str(path), "-C", str(folder)]
    if shutil.which(command[0]) is None:
        raise UserError(
            f"{path.name} cannot be unpacked: {command[0]} is not installed",
            advice="Install libarchive-tools, or on Fedora bsdtar.",
        )
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"{path} is no package: {done.stderr.strip()[-300:]}", advice="Download it again.")


def unpack_kernel_package(name: str, cache: Path) -> Path:
    """Return the folder with the files of the package `linux-image-RELEASE`, kept in `cache`.

    Raises UserError if apt does not know the package, or if it has no kernel.
    """
    if _NAME.fullmatch(name) is None:
        raise UserError(f"{name} is no package of a kernel", advice="Name one as linux-image-6.1.0-50-amd64.")
    apt = Apt(cache / "apt")
    folder = cache / "packages"
    try:
        versions = apt.versions([name])
        target = folder / f"{name}_{versions[name].replace(':', '_')}"
        if not target.exists():
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                apt.unpack(versions, Path(scratch)).rename(target)
    except AptError as error:
        raise UserError(
            f"apt has no package {name}, or cannot download it",
            excerpt=str(error),
            advice="`apt-cache search linux-image` lists the packages; `apt-get update` renews the list.",
        ) from error
    if not list(target.glob("boot/vmlinuz-*")):
        raise UserError(
            f"package {name} has no kernel",
            advice=f"It only depends on one: `apt-cache depends {name}` names the package with the release.",
        )
    return target
