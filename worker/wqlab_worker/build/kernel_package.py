"""Unpack the kernel of a Debian package, from the machine's own apt sources, without privileges."""

from __future__ import annotations

import tempfile
from pathlib import Path

from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_host.apt import Apt, AptError

from ..failures import UserError

_NAME = LinearPattern(r"linux-image-[a-z0-9][a-z0-9.+-]{0,99}")


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
