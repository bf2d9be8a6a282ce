"""Build the partition of the Debian on a machine that has a system of its own: `own-systems/<hash>.ext4` in the cache.

mmdebstrap installs it from the machine's own mirror in a user namespace, without privileges. It is a real Debian:
systemd, sshd, Debian's kernel, and `grub-reboot`. It has no secrets of a lab: the key that may log in goes into the
copy on a machine's disk (`system_disk`).
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

from wqlab_host import apt, tool

SUITE = "bookworm"
PACKAGES = (
    "systemd-sysv", "udev", "kmod", "dbus", "libpam-systemd", "openssh-server", "iproute2", "e2fsprogs",
    "linux-image-amd64", "initramfs-tools", "grub2-common",
)  # fmt: skip
MODULES = (
    "arch/*", "block/*", "crypto/*", "fs/*", "lib/*", "drivers/ata/*", "drivers/nvme/*", "drivers/scsi/s*",
    "drivers/p[tp]*", "drivers/net/ethernet/intel/e1000e/*", "drivers/watchdog/*", "drivers/i2c/*", "drivers/mfd/*",
    "drivers/firmware/efi/*",
)  # fmt: skip
"""Kernel modules that are kept, of 400 MB: those of file systems and of the devices that QEMU has."""
LABEL = "own"
"""Label of the file system, by which GRUB and the kernel find it (debian_hooks/customize.sh)."""
SIZE_MIB = 1024
"""The image takes as much space as was written, a third of it."""

_HOOKS = Path(__file__).parent / "debian_hooks"
_MAKE_FILE_SYSTEM = """\
mount -t tmpfs tree "$1"
tar --extract --preserve-permissions --numeric-owner --exclude='./dev/*' --file "$2" --directory "$1"
mke2fs -q -t ext4 -O ^metadata_csum_seed,^orphan_file -L "$4" -d "$1" "$3" "$5M"
"""
"""The files' owners are those of a user namespace, whose file system vanishes with it, also if this is killed. Devices
are left out, because only a real root may make them; the kernel mounts its own /dev. GRUB 2.06 cannot read the two
features."""


class DebianError(Exception):
    """The system cannot be installed; the message has the failed step and its output."""


def build(cache: Path) -> Path:
    """Return the path of the partition's image, and build it unless it is cached. Raises DebianError."""
    try:
        return _build(cache)
    except apt.AptError as error:
        raise DebianError(str(error)) from error


def _build(cache: Path) -> Path:
    packages = apt.Apt(cache / "apt", suite=SUITE)
    folder = cache / "own-systems"
    for fresh in (False, True):  # a cached image needs no network
        image = folder / f"{content_key(packages.versions(PACKAGES, fresh=fresh))}.ext4"
        if image.exists():
            image.touch()  # retention deletes what was not used
            return image
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="build-", dir=folder) as name:
        scratch = Path(name)
        archive, tree, made = scratch / "debian.tar", scratch / "tree", scratch / "debian.ext4"
        tree.mkdir()
        _run(_install(archive, packages.source()))
        namespace = ["unshare", "--map-auto", "--map-root-user", "--mount", "sh", "-ec", _MAKE_FILE_SYSTEM, "sh"]
        _run([*namespace, str(tree), str(archive), str(made), LABEL, str(SIZE_MIB)])
        made.chmod(0o644)
        # A rename is atomic, also if two builders race.
        made.rename(image)
    return image


def content_key(versions: dict[str, str]) -> str:
    """Return a hash of the inputs of the image: package versions and the source of this builder."""
    own = [Path(__file__), Path(apt.__file__), *sorted(_HOOKS.glob("*.sh"))]
    inputs = {
        "packages": versions,
        "builder": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in own},
    }
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:32]


def _install(archive: Path, source: str) -> list[str]:
    """Return the command that installs the system into an archive. `source` is a line of apt's sources."""
    modules = "/lib/modules/*/kernel"
    left_out = ["/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", f"{modules}/*"]
    return [
        "mmdebstrap", "--mode=unshare", "--variant=minbase", "--quiet",
        "--aptopt=APT::Install-Recommends \"false\"", f"--include={','.join(PACKAGES)}",
        *(f"--dpkgopt=path-exclude={path}" for path in left_out),
        *(f"--dpkgopt=path-include={modules}/{path}" for path in MODULES),
        # As text: in the namespace the caller's private folders cannot be read.
        *(f"--{hook}-hook={(_HOOKS / f'{hook}.sh').read_text()}" for hook in ("essential", "customize")),
        SUITE, str(archive), source,
    ]  # fmt: skip


def _run(command: list[str]) -> None:
    tool.output(command, DebianError)
