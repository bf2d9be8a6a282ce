"""Check out the files of a Source (commit, tree id, bundle) into a folder.

The files of a base commit are kept and shared. A candidate is a copy of its base by hard links, in which git replaces
the files that the series changes (git never writes into an existing file). Sandboxes bind the folders read-only.
A candidate is read and written inside the sandbox, after its size was checked.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from wqlab_contracts.enums import ArtifactKind
from wqlab_contracts.messages import Artifact, Source

from ..failures import InfrastructureError, UserError
from ..workspace import Progress, Workspace, no_progress, remove_tree
from .confined_git import ConfinedGit, ConfinedGitError, ConfinedMirror, create_confined, limits_text
from .git import Git, GitError
from .mirror import fetch_commit, mirror_folder, open_mirror, update_mirror
from .series_size import check_size, check_whole_tree

MINUTES = 60.0
# A new hard link changes the ctime of the inode; without these options git would read every file again.
_TRUST = ("-c", "core.trustctime=false", "-c", "core.checkStat=minimal", "-c", "checkout.workers=0")


@dataclass(frozen=True)
class Change:
    """A file in which a candidate differs from its base."""

    status: str
    """Status letter of git-diff-tree(1), --name-status: M for a file with other content."""
    path: str


@dataclass(frozen=True)
class CheckedOut:
    """The files of a Source."""

    files: Path
    base_tree_oid: str = ""
    """Tree id of the kept base from which the files were copied; empty if they were not copied."""
    changes: tuple[Change, ...] = ()
    """Differences from the base. All other files are the same inodes, with the same modification times."""


@contextmanager
def checked_out(source: Source, workspace: Workspace, progress: Progress = no_progress) -> Iterator[CheckedOut]:
    """Check out the files of `source` for the duration of the context. They must not be written.

    Raises InfrastructureError if the commit is unavailable or its tree is not `source.tree_oid`, UserError if a series
    is larger than the limits of `series_size`.
    """
    mirror = mirror_folder(source.tree, workspace)
    workspace.use(mirror)
    base = open_mirror(source.tree, workspace)
    needed = source.commit if source.bundle is None else source.base_commit
    if not mirror.is_dir() or base.commit(needed) is None:
        base = update_mirror(source.tree, workspace, progress).git
    if source.bundle is None and source.tree.url is not None and base.commit(needed) is None:
        # A head of another branch, which may have been rewritten; the apply job has checked that it is the tree's.
        with suppress(UserError):  # `_check_tree` names the commit
            fetch_commit(source.tree, needed, workspace, progress)
    if source.bundle is None:
        _check_tree(base, source)
        yield CheckedOut(base_files(base, source.commit, workspace, progress))
        return
    if base.commit(source.base_commit) is None:
        raise InfrastructureError(f"tree {source.tree.name} has no commit {source.base_commit}")
    with workspace.temporary("source") as folder:
        # The repository has a folder of its own, whose size is limited.
        repository = folder / "repository"
        repository.mkdir()
        bundle = workspace.path_of(source.bundle)
        git = create_confined(workspace, repository, "git", [bundle], mirror)
        unbundle(git, bundle, "refs/heads/series")
        _check_tree(git, source)
        try:
            checked = _write_series(git, base, source, folder / "files", progress)
        except ConfinedGitError as error:
            raise UserError("git cannot check out the series", excerpt=error.output, advice=limits_text()) from error
        yield checked


def _write_series(git: ConfinedGit, base: Git, source: Source, files: Path, progress: Progress) -> CheckedOut:
    """Write the files of a series to the new folder `files`."""
    shared = base_files(base, source.base_commit, git.workspace, progress)

    def tick() -> None:
        progress(f"checking out {source.commit[:12]}", 0, 0)

    check_size(git, source.base_commit, source.commit, tick)
    index = git.folder / "index"
    _link_copy(shared, files)
    shutil.copyfile(_index_of(shared), index)
    git.pipeline(
        [
            "git",
            *_TRUST,
            f"--work-tree={files}",
            "read-tree",
            "-m",
            "-u",
            source.base_commit,
            source.commit,
        ],
        environment={"GIT_INDEX_FILE": str(index)},
        shared=[files],
        on_tick=tick,
    )
    return CheckedOut(files, base.tree(source.base_commit), _changes(git, source))


def base_files(git: Git, commit: str, workspace: Workspace, progress: Progress = no_progress) -> Path:
    """Return the kept folder with the files of a commit of a mirror, and make it if it is missing."""
    tree_oid = git.tree(commit)
    files = workspace.sources / tree_oid
    workspace.use(files)

    def waiting() -> None:
        progress(f"waiting for another worker that checks out {commit[:12]}", 0, 0)

    with workspace.lock(f"source-{tree_oid}", waiting):
        if not files.is_dir():
            with workspace.temporary("source") as folder:
                _write_tree(git, commit, folder / "files", folder / "index", progress)
                (folder / "index").rename(_index_of(files))
                (folder / "files").rename(files)
    return files


def make_bundle(git: Git, base: str, commit: str, folder: Path, mirror: Path) -> Artifact:
    """Keep the commits `base..commit` as a bundle that every machine accepts; `mirror` has `base`."""
    workspace = git.workspace
    git.run("update-ref", BUNDLE_REFERENCE, commit)
    path = folder / "clean.bundle"
    git.run("bundle", "create", "--quiet", str(path), BUNDLE_REFERENCE, f"^{base}", timeout_s=600.0)
    # Every machine that fetches the bundle checks its objects, and would refuse it later.
    unbundle(create_confined(workspace, folder, "checked", [], mirror), path, BUNDLE_REFERENCE)
    return workspace.keep(path, ArtifactKind.BUNDLE, "series.bundle")


def unbundle(git: ConfinedGit, bundle: Path, reference: str) -> None:
    """Fetch the only branch of a bundle, which `git` can see, into `reference` and check every object.

    Raises InfrastructureError if the bundle is missing, UserError if git refuses it.
    """
    if not bundle.is_file():
        raise InfrastructureError(f"the series' bundle {bundle.name} is not on this machine")
    try:
        # `git fetch` of a bundle checks no objects before git 2.46.
        git.pipeline(
            ["sed", "1,/^$/d", str(bundle)],  # the header ends at the first empty line, then comes the pack
            ["git", "index-pack", "--stdin", "--fix-thin", f"--strict={_ACCEPTED}"],
        )
        heads = git.run("bundle", "list-heads", str(bundle), BUNDLE_REFERENCE).split()
        git.run("update-ref", reference, heads[0] if heads else "")
    except ConfinedGitError as error:
        raise UserError(
            "git refuses an object of the series",
            excerpt=error.output,
            advice="Find it with: git fsck --strict. Make the commit again with git, and submit again.",
        ) from error


_ACCEPTED = ",".join(
    f"{name}=ignore"
    for name in ("missingEmail", "zeroPaddedFilemode", "missingSpaceBeforeDate", "badDate", "badTimezone")
)
"""Mistakes of git-fsck(1) that old commits have and that do no harm."""
BUNDLE_REFERENCE = "refs/heads/series"
"""The one branch that a bundle holds."""


def _check_tree(git: Git, source: Source) -> None:
    """Raise InfrastructureError unless the source's commit has the tree that the source names."""
    if git.commit(source.commit) is None:
        raise InfrastructureError(f"tree {source.tree.name} has no commit {source.commit}")
    found = git.tree(source.commit)
    if found != source.tree_oid:
        raise InfrastructureError(f"commit {source.commit} has the tree {found}, not {source.tree_oid}")


def _changes(git: ConfinedGit, source: Source) -> tuple[Change, ...]:
    words = git.run("diff-tree", "-r", "-z", "--no-renames", "--name-status", source.base_commit, source.commit)
    fields = iter(words.split("\0")[:-1])
    return tuple(Change(status, path) for status, path in zip(fields, fields, strict=True))


def _index_of(files: Path) -> Path:
    return files.with_name(f"{files.name}.index")


def _write_tree(git: Git, commit: str, files: Path, index: Path, progress: Progress) -> None:
    progress(f"checking out {commit[:12]}", 0, 0)
    files.mkdir()
    words = (*_TRUST, f"--work-tree={files}", "read-tree", "-m", "-u", commit)
    environment = {"GIT_INDEX_FILE": str(index)}
    try:
        if isinstance(git, ConfinedMirror):
            with git.reader() as reader:
                check_whole_tree(reader, commit)
                reader.pipeline(["git", *words], environment=environment, shared=[files.parent])
        else:
            git.run(*words, environment=environment, timeout_s=10 * MINUTES)
    except ConfinedGitError as error:
        raise UserError(f"git cannot check out {commit[:12]}", excerpt=error.output, advice=limits_text()) from error
    except GitError as error:
        remove_tree(files)
        raise InfrastructureError(f"cannot check out {commit}", excerpt=error.output) from error


def _link_copy(source: Path, target: Path) -> None:
    done = subprocess.run(["cp", "-al", "--", source, target], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InfrastructureError(f"cannot copy {source}", excerpt=done.stderr)
