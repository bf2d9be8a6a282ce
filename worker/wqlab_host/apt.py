"""Resolve, download and unpack packages with the machine's apt, without privileges."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from wqlab_contracts.specs import CpuArch

from . import tool

DEBIAN_ARCH: dict[CpuArch, str] = {"x86_64": "amd64", "arm64": "arm64"}

_URI = re.compile(r"^'[^']+' ([^_\s]+)_(\S+)_(\S+)\.deb ", re.MULTILINE)
_OPTIONS = (
    "-q",
    *("-o", "Debug::NoLocking=1"),
    *("-o", "Dir::Cache::srcpkgcache="),
)
_INDEX = "pkgcache.bin"
"""apt's cache of its package lists, in the private folders; apt rebuilds it after the lists have changed."""
_HELPER = "/usr/lib/apt/apt-helper"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class AptError(Exception):
    """apt or dpkg failed; the message has the command and the end of its output."""


class Apt:
    """Packages of one architecture and suite.

    For the machine's own architecture and suite, its package lists are used. For others (`foreign`), lists are fetched
    into `private` from the mirrors in the machine's sources.
    """

    def __init__(self, private: Path, arch: CpuArch = "x86_64", suite: str | None = None) -> None:
        self._arch = DEBIAN_ARCH[arch]
        self._suite = suite
        self._private = private / f"{suite or 'own'}-{self._arch}"
        self._mirrors = private / "mirrors"
        self._options = [*_OPTIONS, "-o", f"Dir::Cache::pkgcache={self._private / _INDEX}"]

    def versions(self, packages: Sequence[str], *, fresh: bool = False) -> dict[str, str]:
        """Return the candidate version of each package. Raises AptError.

        Existing lists are used without network access. With `fresh` they are fetched again, into `private`, because the
        mirror may no longer have the versions of old lists.
        """
        self._private.mkdir(parents=True, exist_ok=True)
        foreign = self._suite is not None or self._arch != _run(["dpkg", "--print-architecture"]).strip()
        if foreign:
            self._use_private_lists(foreign)
        if not fresh:
            # This fails if lists were never fetched, or the machine's were removed.
            with suppress(AptError):
                return self._versions(packages)
        if not foreign:
            self._use_private_lists(foreign)
        _run(["apt-get", *self._options, "update"])
        return self._versions(packages)

    def with_dependencies(self, packages: Sequence[str]) -> dict[str, str]:
        """Return the candidate version of each package and of all that they depend on. Raises AptError.

        Only for a foreign architecture or suite, where no package counts as installed. Fetches the lists first.
        """
        self.versions(packages, fresh=True)
        words = ["install", "--print-uris", "--yes", "--no-install-recommends", *packages]
        answer = _run(["apt-get", *self._options, *words])
        return {name: version.replace("%3a", ":") for name, version, _ in _URI.findall(answer)}

    def source(self) -> str:
        """Return the line of apt's sources for a foreign suite. Raises AptError."""
        return f"deb [signed-by={_KEYRING}] {_debian_mirror(self._mirrors)} {self._suite} main"

    def unpack(self, versions: dict[str, str], scratch: Path) -> Path:
        """Download the packages (apt checks the hashes), unpack them into one tree below `scratch` and return it."""
        packages, tree = scratch / "packages", scratch / "tree"
        packages.mkdir(parents=True)
        pinned = [f"{name}={version}" for name, version in versions.items()]
        _run(["apt-get", *self._options, "download", *pinned], packages)
        for package in sorted(packages.glob("*.deb")):
            _run(["dpkg-deb", "-x", str(package), str(tree)])
        return tree

    def download_from_pool(self, path: str, sha256: str, target: Path) -> None:
        """Download a file of the pool of this machine's Debian release, such as `q/qemu/qemu_7.2+dfsg.orig.tar.xz`.

        apt's own program does it, with its settings for proxies. Raises AptError, also if the file has another hash.
        """
        partial = target.with_name(f"{target.name}.{os.getpid()}")
        uri = f"{_debian_mirror(self._mirrors).rstrip('/')}/pool/main/{path}"
        try:
            _run([_HELPER, "download-file", uri, str(partial), f"SHA256:{sha256}"])
            partial.replace(target)
        finally:
            for left in target.parent.glob(f"{partial.name}*"):
                left.unlink()

    def _versions(self, packages: Sequence[str]) -> dict[str, str]:
        answer = _run(["apt-get", *self._options, "download", "--print-uris", *packages])
        versions = {name: version.replace("%3a", ":") for name, version, _ in _URI.findall(answer)}
        if missing := set(packages) - set(versions):
            raise AptError(f"apt does not know package {', '.join(sorted(missing))} for {self._arch}")
        return versions

    def _use_private_lists(self, foreign: bool) -> None:
        lists = self._private / "lists"
        (lists / "partial").mkdir(parents=True, exist_ok=True)
        self._options += ["-o", f"Dir::State::lists={lists}/"]
        if foreign:
            # Ignore the installed packages, which are of another architecture or suite.
            status = self._private / "status"
            if not status.exists():
                status.touch()
            self._options += ["-o", f"APT::Architecture={self._arch}", "-o", f"APT::Architectures={self._arch}"]
            self._options += ["-o", f"Dir::State::status={status}"]
        if self._suite is not None:
            sources = self._private / "sources.list"
            line = f"{self.source()}\n"
            if not sources.exists() or sources.read_text() != line:
                sources.write_text(line)
            self._options += ["-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=/dev/null"]


def _debian_mirror(private: Path) -> str:
    """Return the URL of the mirror of the machine's own Debian release, from apt's package lists. Raises AptError.

    If the lists were removed, as in container images, they are fetched into `private`.
    """
    lists = private / "lists"
    private.mkdir(parents=True, exist_ok=True)
    options = [*_OPTIONS, "-o", f"Dir::Cache::pkgcache={private / _INDEX}"]
    private_options = [*options, "-o", f"Dir::State::lists={lists}/"]
    if mirror := _mirror_by_lists(options) or _mirror_by_lists(private_options):
        return mirror
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    _run(["apt-get", *private_options, "update"])
    if mirror := _mirror_by_lists(private_options):
        return mirror
    raise AptError("apt's sources name no mirror of this machine's own Debian release")


def _mirror_by_lists(options: Sequence[str]) -> str | None:
    """Return the URL of the mirror in the package lists, or None."""
    release = re.search(r"^VERSION_CODENAME=(\w+)$", Path("/etc/os-release").read_text(), re.MULTILINE)
    query = ["indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"]
    for line in _run(["apt-get", *options, *query]).splitlines():
        uri, suite, component = line.split()
        if component == "main" and release and suite == release[1]:
            return uri
    return None


def _run(command: list[str], directory: Path | None = None) -> str:
    return tool.output(command, AptError, directory)
