"""The machine's apt, used to resolve, download and unpack; no privilege is needed."""

from __future__ import annotations

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
"""What apt makes of its package lists, in the private folders: it reads the lists anew when they have changed."""
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class AptError(Exception):
    """apt or dpkg failed: the text has the command and its last words."""


class Apt:
    """Packages of one architecture and suite.

    The machine's own architecture and suite come from its package lists as they are. Anything else (`foreign`) has
    lists of its own in `private`, fetched from the mirrors that the machine's sources name.
    """

    def __init__(self, private: Path, arch: CpuArch = "x86_64", suite: str | None = None) -> None:
        self._arch = DEBIAN_ARCH[arch]
        self._suite = suite
        self._private = private / f"{suite or 'own'}-{self._arch}"
        self._mirrors = private / "mirrors"
        self._options = [*_OPTIONS, "-o", f"Dir::Cache::pkgcache={self._private / _INDEX}"]

    def versions(self, packages: Sequence[str], *, fresh: bool = False) -> dict[str, str]:
        """Candidate version of each package. Raises AptError.

        Lists that are there are used as they are, without a network; `fresh` fetches them again, into `private`,
        because a mirror no longer has what old lists name.
        """
        self._private.mkdir(parents=True, exist_ok=True)
        foreign = self._suite is not None or self._arch != _run(["dpkg", "--print-architecture"]).strip()
        if foreign:
            self._use_private_lists(foreign)
        if not fresh:
            # Where this fails they were never fetched, or the machine's were removed.
            with suppress(AptError):
                return self._versions(packages)
        if not foreign:
            self._use_private_lists(foreign)
        _run(["apt-get", *self._options, "update"])
        return self._versions(packages)

    def unpack(self, versions: dict[str, str], scratch: Path) -> Path:
        """Downloads (apt checks the hashes) and unpacks into one tree below `scratch`, which is returned."""
        packages, tree = scratch / "packages", scratch / "tree"
        packages.mkdir(parents=True)
        wanted = [f"{name}={version}" for name, version in versions.items()]
        _run(["apt-get", *self._options, "download", *wanted], packages)
        for package in sorted(packages.glob("*.deb")):
            _run(["dpkg-deb", "-x", str(package), str(tree)])
        return tree

    def _versions(self, packages: Sequence[str]) -> dict[str, str]:
        answer = _run(["apt-get", *self._options, "download", "--print-uris", *packages])
        versions = {name: version.replace("%3a", ":") for name, version, _ in _URI.findall(answer)}
        if missing := set(packages) - set(versions):
            raise AptError(f"apt knows no package {', '.join(sorted(missing))} for {self._arch}")
        return versions

    def _use_private_lists(self, foreign: bool) -> None:
        lists = self._private / "lists"
        (lists / "partial").mkdir(parents=True, exist_ok=True)
        self._options += ["-o", f"Dir::State::lists={lists}/"]
        if foreign:
            # The machine's own packages are of another architecture or suite: they decide nothing here.
            status = self._private / "status"
            if not status.exists():
                status.touch()
            self._options += ["-o", f"APT::Architecture={self._arch}", "-o", f"APT::Architectures={self._arch}"]
            self._options += ["-o", f"Dir::State::status={status}"]
        if self._suite is not None:
            sources = self._private / "sources.list"
            wanted = f"deb [signed-by={_KEYRING}] {_debian_mirror(self._mirrors)} {self._suite} main\n"
            if not sources.exists() or sources.read_text() != wanted:
                sources.write_text(wanted)
            self._options += ["-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=/dev/null"]


def _debian_mirror(private: Path) -> str:
    """Where the machine gets the packages of its own Debian release from. Raises AptError.

    apt tells by its package lists. Where they were removed, as in a container's image, some are fetched into `private`.
    """
    lists = private / "lists"
    private.mkdir(parents=True, exist_ok=True)
    options = [*_OPTIONS, "-o", f"Dir::Cache::pkgcache={private / _INDEX}"]
    aside = [*options, "-o", f"Dir::State::lists={lists}/"]
    if mirror := _mirror_by_lists(options) or _mirror_by_lists(aside):
        return mirror
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    _run(["apt-get", *aside, "update"])
    if mirror := _mirror_by_lists(aside):
        return mirror
    raise AptError("apt's sources name no mirror of this machine's own Debian release")


def _mirror_by_lists(options: Sequence[str]) -> str | None:
    release = re.search(r"^VERSION_CODENAME=(\w+)$", Path("/etc/os-release").read_text(), re.MULTILINE)
    wanted = ["indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"]
    for line in _run(["apt-get", *options, *wanted]).splitlines():
        uri, suite, component = line.split()
        if component == "main" and release and suite == release[1]:
            return uri
    return None


def _run(command: list[str], directory: Path | None = None) -> str:
    return tool.output(command, AptError, directory)
