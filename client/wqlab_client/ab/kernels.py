"""Find the kernels named on the command line, each with its modules and configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wqlab_contracts.messages import Artifact
from wqlab_worker.build.kernel_image import ImageError, read_kernel_image
from wqlab_worker.build.kernel_package import unpack_kernel_package, unpack_package_files
from wqlab_worker.failures import JobError

from ..errors import UsageError

GIVEN = "given"
"""Tree and recipe of a kernel that was not built here."""
_PACKAGE = "deb:"
_RPM = "rpm:"
_IMAGE = "arch/x86/boot/bzImage"


@dataclass(frozen=True)
class GivenKernel:
    """A kernel of the command line, with the modules and the configuration that were found beside it."""

    name: str
    """As given on the command line."""
    image: Path
    release: str
    build_id_gnu: str
    modules: Path | None
    """Folder of its modules: `lib/modules/RELEASE`, or the folder in which it was built."""
    config: Path | None
    commit: str = ""
    """Full hash of the commit that it was built from; empty for an image."""
    changes: bytes = b""
    """Mails or a diff that were applied to that commit."""
    recipe: str = GIVEN
    reproducer: str = ""
    """Command that builds it again; empty for an image."""
    compiler: str = ""
    built: tuple[tuple[Artifact, Path], ...] = ()
    """Files of its build that devices get, each with its path."""
    failed_modules: Mapping[str, str] = field(default_factory=dict)
    """Module of wqlab that cannot be built for it -> reason."""


def is_file_name(name: str) -> bool:
    """Return True if `name` is a path or a package, False if it is a commit or the working tree of this folder."""
    return name.startswith((_PACKAGE, _RPM, "/", "./", "../", "~"))


def find_kernel(name: str, cache: Path, modules: Path | None = None) -> GivenKernel:
    """Return the kernel at a path: an image, a folder in which a kernel was built, or an unpacked package; or that of a
    Debian package `deb:linux-image-RELEASE`, or of files `rpm:FILE,FILE...` of packages, unpacked into `cache`.

    `modules` replaces what is found beside the image. Raises UsageError if there is no kernel, or more than one.
    """
    path = _package(name, cache) if name.startswith((_PACKAGE, _RPM)) else Path(name).expanduser()
    image = _image_in(path) if path.is_dir() else path
    try:
        found = read_kernel_image(image)
    except ImageError as error:
        raise UsageError(str(error), "give a bzImage or vmlinuz, or the folder of the build") from None
    except OSError as error:
        raise UsageError(f"kernel {name}: {error.strerror or error}", "give the path of a bzImage or vmlinuz") from None
    folder, config = _beside(image.resolve(), found.release)
    if modules is not None:
        folder = _modules_in(modules, found.release)
    return GivenKernel(name, image, found.release, found.build_id_gnu, folder, config)


def _package(name: str, cache: Path) -> Path:
    try:
        if name.startswith(_RPM):
            files = name.removeprefix(_RPM).split(",")
            return unpack_package_files([Path(each).expanduser() for each in files], cache)
        return unpack_kernel_package(name.removeprefix(_PACKAGE), cache)
    except JobError as error:
        raise UsageError(error.failure.summary, error.failure.advice) from None


def _image_in(folder: Path) -> Path:
    if (built := folder / _IMAGE).exists():
        return built
    patterns = ("vmlinuz-*", "boot/vmlinuz-*", "lib/modules/*/vmlinuz", "usr/lib/modules/*/vmlinuz")
    images = sorted(path for each in patterns for path in folder.glob(each))
    if len(images) == 1:
        return images[0]
    what = f"{len(images)} kernels: {', '.join(each.name for each in images)}" if images else "no kernel"
    raise UsageError(f"{folder} has {what}", "give the path of one bzImage or vmlinuz")


def _beside(image: Path, release: str) -> tuple[Path | None, Path | None]:
    """Return folder of the modules and configuration of an image, as builds and distributions place them."""
    if image.parts[-4:] == tuple(_IMAGE.split("/")):
        root = image.parents[3]
        return (root if (root / "modules.order").exists() else None), _existing(root / ".config")
    # /boot/vmlinuz-RELEASE, also of a package that was unpacked. Some distributions keep the image beside the modules.
    candidates = [image.parent.parent / "lib/modules" / release, image.parent.parent / "usr/lib/modules" / release]
    own = image.parent if image.parent.name == release else None
    folder = next((each for each in (own, *candidates) if each is not None and each.is_dir()), None)
    config = _existing(image.parent / f"config-{release}") or (_existing(folder / "config") if folder else None)
    return folder, config


def _existing(path: Path) -> Path | None:
    return path if path.exists() else None


def _modules_in(folder: Path, release: str) -> Path:
    """Return the folder of a release's modules: as given, or below it. Raises UsageError."""
    for each in (folder / "lib/modules" / release, folder / release, folder):
        if each.is_dir() and (each.name == release or (each / "modules.order").exists()):
            return each
    raise UsageError(
        f"--modules {folder}: no modules of {release}", f"give lib/modules/{release}, or the folder above lib/modules"
    )
