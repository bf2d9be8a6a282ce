"""Install Debian as a file system image: the operating system that a dual-boot machine has of its own.

It is the release of this host, with its kernel, systemd, an SSH server and GRUB's tools. Any user with subordinate ids
can build it.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import tempfile
from pathlib import Path

from wqlab_host import apt, tool

LABEL = "own"
"""Label of the file system, by which GRUB and the kernel find it."""
SIZE_MIB = 1600
PACKAGES = (
    "grub-common", "grub2-common", "initramfs-tools", "kmod", "linux-image-amd64", "openssh-server", "systemd-sysv",
    "udev",
)  # fmt: skip
MODULES = ("ahci", "sd_mod", "ext4")
"""Modules of the initramfs: with all of Debian's it takes an emulated machine a minute to unpack."""
_NETWORK = """\
[Match]
Type=ether
[Network]
DHCP=ipv4
[DHCPv4]
ClientIdentifier=mac
"""
_OFF = (
    "apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer"
)
_INSTALL = f"""\
set -eu
root=$1
printf '%s' {shlex.quote(_NETWORK)} > "$root/etc/systemd/network/dhcp.network"
echo 'LABEL={LABEL} / ext4 defaults,errors=remount-ro 0 1' > "$root/etc/fstab"
echo dual-boot > "$root/etc/hostname"
sed -i 's/^MODULES=.*/MODULES=list/' "$root/etc/initramfs-tools/initramfs.conf"
printf '%s\\n' {" ".join(MODULES)} >> "$root/etc/initramfs-tools/modules"
echo RESUME=none > "$root/etc/initramfs-tools/conf.d/resume"
chroot "$root" update-initramfs -u
chroot "$root" systemctl enable systemd-networkd.service
chroot "$root" systemctl disable {_OFF}
install -d "$root/boot/grub"
install -d -m 700 "$root/root/.ssh"
"""
_RESULT = "system.ext4"
_PACK = f"""\
set -eu
# Another mount of the folder is without /proc, /sys and /dev, which are mounted in it now.
mkdir "$1.tree"
mount --bind "$1" "$1.tree"
mke2fs -q -t ext4 -L {LABEL} -d "$1.tree" "$1.made" {SIZE_MIB}M
umount "$1.tree"
rmdir "$1.tree"
mv "$1.made" "$1/{_RESULT}"
"""
_EXCLUDED = ("/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*")


class DebianError(Exception):
    """The system cannot be installed; the message has the failed command and its output."""


def build(cache: Path) -> Path:
    """Return the image of the file system, and install it unless it is cached. Raises DebianError."""
    try:
        return _build(cache)
    except apt.AptError as error:
        raise DebianError(str(error)) from error


def _build(cache: Path) -> Path:
    folder = cache / "rehearsal"
    folder.mkdir(parents=True, exist_ok=True)
    image = folder / f"debian-{_content_key(apt.Apt(cache / 'apt').versions(PACKAGES))}.ext4"
    if image.exists():
        return image
    suite = tool.output(["sh", "-c", '. /etc/os-release; echo "$VERSION_CODENAME"'], DebianError).strip()
    # The users of mmdebstrap's namespace cannot write to this user's folders, but can read them.
    with tempfile.TemporaryDirectory(prefix="wqlab-debian-") as name:
        scratch = Path(name)
        scratch.chmod(0o755)
        command = ["mmdebstrap", "--quiet", "--mode=unshare", "--variant=minbase", "--format=null"]
        command += [f"--dpkgopt=path-exclude={pattern}" for pattern in _EXCLUDED]
        command += [
            f"--include={','.join(PACKAGES)}",
            f'--customize-hook=sh {_script(scratch, "install", _INSTALL)} "$1"',
            f'--customize-hook=sh {_script(scratch, "pack", _PACK)} "$1"',
            f"--customize-hook=download /{_RESULT} {scratch / _RESULT}",
        ]
        tool.output([*command, suite, "/dev/null", *_sources()], DebianError)
        partial = image.with_suffix(".partial")
        tool.output(["cp", "--sparse=always", str(scratch / _RESULT), str(partial)], DebianError)
        partial.rename(image)
    return image


def _script(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text)
    return file


def _content_key(versions: dict[str, str]) -> str:
    """Return a hash of what the image is made of: the versions of the packages and this module's source."""
    inputs = {"packages": versions, "builder": hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:32]


def _sources() -> list[str]:
    """Return the files with this host's package sources of Debian."""
    given = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("debian.*"))]
    return [str(path) for path in given if path.exists() and path.read_text().strip()]
