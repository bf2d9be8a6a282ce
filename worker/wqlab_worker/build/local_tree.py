"""Read kernels of a repository on this machine, such as the one that a developer works in, without copying objects."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from wqlab_contracts.messages import ApplyJob, Source
from wqlab_contracts.specs import Tree

from ..apply.checkout import make_bundle
from ..apply.git import Git, GitError, create_bare
from ..apply.mailed_series import Mails, apply_mails
from ..apply.mirror import URL_FILE, Mirror, mirror_folder, open_mirror, release_of, source_at
from ..failures import UserError
from ..workspace import Progress, Workspace, no_progress

NAME = "here"
"""Name of the tree of a repository on this machine."""
WORKING_TREE = "."
"""Name of the files as they are now: tracked ones, and new ones that are not ignored."""
_NOT_SOURCE = ":(exclude,top)wqlab-ab-*"
"""Folders of `wqlab ab`, which it makes in the working tree."""
_MOST_COMMITS = 100
"""Maximum distance in commits of a build that is a change of another one; a larger change touches most files."""
_FIXED = {f"GIT_{who}_DATE": "@1767225600 +0000" for who in ("AUTHOR", "COMMITTER")}
"""Dates with which the same files give the same commit."""


@dataclass(frozen=True)
class LocalSource:
    """Files of a repository, as a Source."""

    source: Source
    commit: str
    """Commit that is built, or to which `changes` are applied."""
    changes: bytes = b""
    """Patches on top of `commit`: mails for `git am`, or a diff for `git apply`. Empty for a commit as it is."""


def local_source(
    folder: Path, name: str, workspace: Workspace, since: str = "", progress: Progress = no_progress
) -> LocalSource:
    """Return the source that `name` means in the repository that `folder` is in.

    `name` is a commit, WORKING_TREE, or `COMMIT+FILE` for the patches of an mbox on a commit. A source is described as
    a change of another commit if that helps, so that only the change is compiled: of `since` for a commit that is
    near, of the commit for changed files and mails. The mirror of the tree borrows the repository's objects, so they
    must stay while the kernel is built. Raises UserError if there is no
    repository or no such commit, or if the mails do not apply.
    """
    revision, plus, mails = name.partition("+")
    common = Path(_git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir"))
    wanted = "HEAD" if revision == WORKING_TREE else revision
    commit = _git(folder, "rev-parse", "--verify", f"{wanted}^{{commit}}")
    tree = Tree(name=NAME, summary=f"the repository {common}", url=str(common))
    path = mirror_folder(tree, workspace)
    workspace.use(path)
    with workspace.lock(f"mirror-{path.stem}", lambda: None):
        create_bare(workspace, path, [common])
        (path / URL_FILE).write_text(str(common))
    mirror = Mirror(open_mirror(tree, workspace), commit)
    if plus:
        return _with_mails(tree, mirror, folder / mails, progress)
    if revision == WORKING_TREE:
        tip = _commit_files(folder, mirror)
        if mirror.git.tree(tip) != mirror.git.tree(commit):
            return replace(_upon(tree, mirror.git, commit, tip), commit=commit, changes=_diff(mirror.git, commit, tip))
    elif since != commit and _is_near(mirror.git, since, commit):
        return _upon(tree, mirror.git, since, commit)
    return LocalSource(source_at(tree, mirror.git, commit), commit)


def makefile_lines(folder: Path, revision: str) -> list[str]:
    """Return the lines of the Makefiles of a commit that name the objects of an option. Raises UserError."""
    commit = "HEAD" if revision == WORKING_TREE else revision.partition("+")[0]
    return _git(folder, "grep", "-h", "obj-$(CONFIG_", commit, "--", ":/*Makefile", ":/*Kbuild").splitlines()


def _upon(tree: Tree, git: Git, base: str, commit: str) -> LocalSource:
    """Return a commit as a change of `base`."""
    with git.workspace.temporary("local") as folder:
        artifact = make_bundle(git, base, commit, folder, git.directory)
    source = source_at(tree, git, commit).model_copy(update={"base_commit": base, "bundle": artifact})
    return LocalSource(source, commit)


def _is_near(git: Git, base: str, commit: str) -> bool:
    """Return True if `commit` is some commits after `base`, with other files."""
    if not base or git.tree(base) == git.tree(commit):
        return False
    with suppress(GitError):
        git.run("merge-base", "--is-ancestor", base, commit)
        return int(git.run("rev-list", "--count", f"{base}..{commit}")) <= _MOST_COMMITS
    return False


def _commit_files(folder: Path, mirror: Mirror) -> str:
    """Commit the files as they are to the mirror, and return the commit. The repository is not changed."""
    git, top = mirror.git, _git(folder, "rev-parse", "--show-toplevel")
    index = Path(_git(folder, "rev-parse", "--path-format=absolute", "--git-path", "index"))
    with git.workspace.temporary("index") as scratch:
        environment = {"GIT_INDEX_FILE": str(scratch / "index"), **_FIXED}
        with suppress(FileNotFoundError):
            # The copied index knows which files are unchanged, so that git reads only the others.
            shutil.copyfile(index, scratch / "index")
        try:
            git.run(
                f"--work-tree={top}", "add", "--all", "--", ":/", _NOT_SOURCE, environment=environment, timeout_s=600.0
            )
            tree_oid = git.run("write-tree", environment=environment).strip()
            return git.run("commit-tree", tree_oid, "-p", mirror.head, "-m", "files", environment=environment).strip()
        except GitError as error:
            raise UserError(f"the working tree {top} cannot be read", excerpt=error.output) from error


def _diff(git: Git, base: str, commit: str) -> bytes:
    with git.workspace.temporary("diff") as scratch:
        git.run("diff", "--binary", f"--output={scratch / 'diff'}", base, commit)
        return (scratch / "diff").read_bytes()


def _with_mails(tree: Tree, mirror: Mirror, path: Path, progress: Progress) -> LocalSource:
    try:
        mails = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", advice="Write COMMIT+FILE with an mbox that exists.") from error
    job = ApplyJob(submission_id=0, tree=tree, series=None)
    with mirror.git.workspace.temporary("apply") as folder:
        series = Mails(mails.decode("utf-8", errors="surrogateescape"), base=mirror.head)
        found = apply_mails(series, job, mirror, folder, progress)
        source = Source(
            tree=tree,
            base_commit=found.base,
            tree_oid=found.git.tree(found.commit),
            commit=found.commit,
            bundle=make_bundle(found.git, found.base, found.commit, folder, mirror.git.directory),
            release=release_of(found.git, found.commit),
        )
    return LocalSource(source, found.base, mails)


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"git does not run: {error}", advice="Install git.") from error
    if done.returncode:
        said = done.stderr.strip().rpartition("\n")[2].removeprefix("fatal: ")
        raise UserError(
            f"{arguments[-1].removesuffix('^{commit}')} in {folder}: {said}",
            advice="Go to a clone of the kernel, and name commits that `git log` shows.",
        )
    return done.stdout.strip()
