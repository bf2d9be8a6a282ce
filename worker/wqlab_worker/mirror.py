"""A bare mirror of every kernel tree: fetched from its URL, or imported from a Debian source package.

A Debian source package is no git tree. It is imported as one commit without a parent whose author, date and message
are fixed, so that the same package version is the same commit on every machine.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from wqlab_contracts.messages import Source
from wqlab_contracts.specs import Tree

from .failures import InfrastructureError, UserError
from .fetch import MIRROR, as_infrastructure, fetch
from .git import Git, GitError, create_bare, git_environment, pipe
from .workspace import Progress, Workspace, no_progress

DEBIAN_SOURCES = Path("/usr/src")
_IMPORT_IDENTITY = b"wqlab <wqlab@localhost> 1767225600 +0000"  # 2026-01-01T00:00:00Z, an arbitrary fixed date
_UNPACK = {".xz": ["xz", "-dc", "-T0"], ".zst": ["zstd", "-dcq"], ".bz2": ["bzip2", "-dc"], ".gz": ["gzip", "-dc"]}


@dataclass(frozen=True)
class Mirror:
    git: Git
    head: str
    """The commit that the tree's branch is at."""


def update_mirror(tree: Tree, workspace: Workspace, progress: Progress = no_progress) -> Mirror:
    """The tree's mirror, up to date with its origin. Safe to call from several processes and to interrupt anywhere.

    Raises InfrastructureError when the origin cannot be had.
    """

    def waiting() -> None:
        progress(f"waiting for another worker that updates tree {tree.name}", 0, 0)

    with workspace.lock(f"mirror-{tree.name}", waiting):
        git = create_bare(workspace, workspace.mirrors / f"{tree.name}.git")
        _sweep(git)
        if tree.debian_source is not None:
            head = _import_debian(git, tree.debian_source, progress)
        else:
            head = _fetch_branch(git, tree, progress)
    return Mirror(git, head)


def _sweep(git: Git) -> None:
    """Removes what a killed git left: half a pack, and locks; only we write here, under the tree's own lock."""
    for pattern in ("objects/pack/tmp_*", "refs/**/*.lock", "*.lock"):
        for leftover in git.directory.glob(pattern):
            leftover.unlink(missing_ok=True)


def _fetch_branch(git: Git, tree: Tree, progress: Progress) -> str:
    reference = f"refs/heads/{tree.branch}"
    try:
        fetch(
            *(git, tree.url or "", [f"+{reference}:{reference}"]),
            private_network=True,
            limits=MIRROR,
            on_tick=lambda: progress(f"fetching {tree.url} {tree.branch}", 0, 0),
        )
    except UserError as error:
        raise as_infrastructure(error) from error
    head = git.commit(reference)
    if head is None:
        raise InfrastructureError(f"tree {tree.name} has no branch {tree.branch}")
    return head


# --- Debian source packages -------------------------------------------------------------------------------------


def _import_debian(git: Git, package: str, progress: Progress) -> str:
    archive, version = _installed(package)
    reference = f"refs/imports/{re.sub(r'[^A-Za-z0-9.+-]', '_', version)}"
    commit = git.commit(reference)
    if commit is None:
        progress(f"importing {package} {version}", 0, archive.stat().st_size)
        _fast_import(git, archive, reference, f"Import {package} {version}\n", progress)
        commit = git.commit(reference)
    if commit is None:
        raise InfrastructureError(f"importing {archive} gave no commit")
    git.run("update-ref", "refs/heads/master", commit)
    return commit


def _installed(package: str) -> tuple[Path, str]:
    """The package's source archive and its version."""
    advice = f"Install it: apt-get install {package}"
    archive = next((path for suffix in _UNPACK for path in DEBIAN_SOURCES.glob(f"{package}.tar{suffix}")), None)
    if archive is None:
        raise InfrastructureError(f"no {package}.tar.* in {DEBIAN_SOURCES}", advice=advice)
    try:
        shown = subprocess.run(
            ["dpkg-query", "--show", "--showformat=${Version}", package], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise InfrastructureError(f"package {package} is not installed", advice=advice) from error
    return archive, shown.stdout.strip()


def _fast_import(git: Git, archive: Path, reference: str, message: str, progress: Progress) -> None:
    """Streams the archive into git without unpacking it to disk. The reference appears last."""
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
            said = importer.communicate()[1].decode(errors="replace")
        except tarfile.TarError as error:
            importer.kill()
            raise InfrastructureError(f"{archive} is damaged: {error}") from error
        except BrokenPipeError:
            said = pipe(importer.stderr).read().decode(errors="replace")
        except BaseException:
            importer.kill()
            unpacked.kill()
            raise
        if importer.wait() != 0 or unpacked.wait() != 0:
            raise InfrastructureError(f"importing {archive} failed", excerpt=said)


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
            name = member.name.partition("/")[2]  # without the archive's top folder
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
    while source.read(1 << 20):  # padding behind the archive's end
        pass
    target.write(b"done\n")


def _quoted(name: str) -> bytes:
    return b'"' + name.encode("utf-8", "surrogateescape").replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def source_at(tree: Tree, git: Git, commit: str) -> Source:
    """A commit of the tree's own history as the source of a build."""
    return Source(
        tree=tree, base_commit=commit, tree_oid=git.tree(commit), commit=commit, release=release_of(git, commit)
    )


def release_of(git: Git, commit: str) -> str:
    """What `make kernelversion` prints for a commit, read from its Makefile without running anything."""
    with suppress(GitError):
        found = dict(
            re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(\S*)", git.file(commit, "Makefile"), re.M)
        )
        if "VERSION" in found and "PATCHLEVEL" in found:
            sublevel = found.get("SUBLEVEL", "")
            dotted = f"{found['VERSION']}.{found['PATCHLEVEL']}" + (f".{sublevel}" if sublevel else "")
            return f"{dotted}{found.get('EXTRAVERSION', '')}"
    return ""
