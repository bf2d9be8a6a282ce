"""Import kernel trees from Debian source packages.

A Debian source package is not a git tree. It is imported as one commit without a parent and with a fixed author, date
and message, so that the same package version gives the same commit on every machine.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from wqlab_contracts.specs import Tree
from wqlab_host.apt import Apt, AptError

from ..failures import InfrastructureError
from ..workspace import Progress
from .git import Git, git_environment, pipe

INSTALLED = Path("/usr/src")
IMPORT = "Import "
"""Beginning of the message of an imported commit, before package and version."""
_IMPORT_IDENTITY = b"wqlab <wqlab@localhost> 1767225600 +0000"  # 2026-01-01T00:00:00Z, an arbitrary fixed date
_UNPACK = {".xz": ["xz", "-dc", "-T0"], ".zst": ["zstd", "-dcq"], ".bz2": ["bzip2", "-dc"], ".gz": ["gzip", "-dc"]}


def import_package(git: Git, package: str, suite: str | None, progress: Progress) -> str:
    """Import the source of `package` and return its commit. The caller holds the lock of the tree.

    An installed package is used as it is; others are downloaded from Debian's mirror, which needs no privilege. `suite`
    is the Debian release of the package if it is not the machine's own. The version is that of the package lists that
    were fetched first, so a baseline does not change by itself. Raises InfrastructureError.
    """
    archive = _archive(INSTALLED, package)
    if suite is None and archive is not None:
        version = _installed_version(package)
        return _commit(git, version) or _import(git, package, version, archive, progress)
    apt = Apt(git.workspace.cache / "apt", suite=suite)
    with _apt_errors(package), git.workspace.lock("apt", lambda: progress("waiting for another download", 0, 0)):
        version = apt.versions([package])[package]
        if commit := _commit(git, version):
            return commit
        progress(f"downloading {package} {version}", 0, 0)
        with git.workspace.temporary("apt") as scratch:
            try:
                tree = apt.unpack({package: version}, scratch / "first")
            except AptError:  # the mirror no longer has a version of the old lists
                version = apt.versions([package], fresh=True)[package]
                tree = apt.unpack({package: version}, scratch / "second")
            archive = _archive(tree / "usr/src", package)
            if archive is None:
                raise InfrastructureError(f"package {package} {version} has no {package}.tar.* in /usr/src")
            return _import(git, package, version, archive, progress)


@contextmanager
def _apt_errors(package: str) -> Iterator[None]:
    """Turn an AptError into an InfrastructureError with advice."""
    try:
        yield
    except AptError as error:
        raise InfrastructureError(
            f"package {package} is neither installed nor available from Debian's mirror",
            excerpt=str(error),
            advice=f"Install it (apt-get install {package}), or make sure that this machine reaches its mirror.",
        ) from error


def _archive(folder: Path, package: str) -> Path | None:
    return next((path for suffix in _UNPACK for path in folder.glob(f"{package}.tar{suffix}")), None)


def _installed_version(package: str) -> str:
    try:
        shown = subprocess.run(
            ["dpkg-query", "--show", "--showformat=${Version}", package], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise InfrastructureError(
            f"{INSTALLED} has the source of {package}, but the package is not installed",
            advice=f"Install it: apt-get install {package}",
        ) from error
    return shown.stdout.strip()


def _reference(version: str) -> str:
    return f"refs/imports/{re.sub(r'[^A-Za-z0-9.+-]', '_', version)}"


def _commit(git: Git, version: str) -> str | None:
    """Return the commit of a version that was imported before, or None."""
    return git.commit(_reference(version))


def package_of(git: Git, tree: Tree, commit: str) -> str:
    """Return package and version that a commit was imported from: `linux-source-6.12 6.12.117-1`.

    Empty for a commit of a repository.
    """
    if tree.debian_source is None:
        return ""
    return git.run("log", "-1", "--format=%s", commit).strip().removeprefix(IMPORT)


def _import(git: Git, package: str, version: str, archive: Path, progress: Progress) -> str:
    progress(f"importing {package} {version}", 0, archive.stat().st_size)
    _fast_import(git, archive, _reference(version), f"{IMPORT}{package} {version}\n", progress)
    commit = _commit(git, version)
    if commit is None:
        raise InfrastructureError(f"importing {archive} gave no commit")
    return commit


def _fast_import(git: Git, archive: Path, reference: str, message: str, progress: Progress) -> None:
    """Stream the archive into git without unpacking it to disk. The reference is created last."""
    with (
        archive.open("rb") as packed,
        subprocess.Popen([*_UNPACK[archive.suffix]], stdin=packed, stdout=subprocess.PIPE) as unpacked,
        subprocess.Popen(
            ["git", f"--git-dir={git.directory}", "fast-import", "--quiet", "--done", "--depth=0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=git_environment(git.workspace),
        ) as importer,
    ):
        try:
            target = pipe(importer.stdin)
            target.write(_commit_header(reference, message))
            _write_files(pipe(unpacked.stdout), target, packed, archive.stat().st_size, progress)
            errors = importer.communicate()[1].decode(errors="replace")
        except tarfile.TarError as error:
            importer.kill()
            raise InfrastructureError(f"{archive} is damaged: {error}") from error
        except BrokenPipeError:
            errors = pipe(importer.stderr).read().decode(errors="replace")
        except BaseException:
            importer.kill()
            unpacked.kill()
            raise
        if importer.wait() != 0 or unpacked.wait() != 0:
            raise InfrastructureError(f"importing {archive} failed", excerpt=errors)


def _commit_header(reference: str, message: str) -> bytes:
    text = message.encode()
    return b"feature done\ncommit %s\nauthor %s\ncommitter %s\ndata %d\n%s\n" % (
        reference.encode(),
        _IMPORT_IDENTITY,
        _IMPORT_IDENTITY,
        len(text),
        text,
    )


def _write_files(source: IO[bytes], target: IO[bytes], packed: IO[bytes], total: int, progress: Progress) -> None:
    with tarfile.open(fileobj=source, mode="r|") as archive:
        for count, member in enumerate(archive):
            name = member.name.partition("/")[2]  # without the top folder of the archive
            if member.isreg():
                mode = b"100755" if member.mode & 0o100 else b"100644"
                target.write(b"M %s inline %s\ndata %d\n" % (mode, _quoted(name), member.size))
                shutil.copyfileobj(pipe(archive.extractfile(member)), target)
                target.write(b"\n")
            elif member.issym():
                link = member.linkname.encode()
                target.write(b"M 120000 inline %s\ndata %d\n%s\n" % (_quoted(name), len(link), link))
            elif not member.isdir():
                raise tarfile.TarError(f"{member.name} is neither file, folder nor symbolic link")
            if count % 1000 == 0:
                progress(f"importing {name}", packed.tell(), total)
    while source.read(1 << 20):  # read the padding after the end of the archive
        pass
    target.write(b"done\n")


def _quoted(name: str) -> bytes:
    return b'"' + name.encode("utf-8", "surrogateescape").replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
