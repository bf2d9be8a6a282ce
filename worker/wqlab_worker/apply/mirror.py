"""Keep a bare mirror of each kernel tree, fetched from its URL or imported from a Debian source package.

That of a URL that a user gave is read in the sandbox: its objects may expand to anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages import Source
from wqlab_contracts.specs import Tree

from ..failures import InfrastructureError, UserError
from ..workspace import Progress, Workspace, no_progress
from .confined_git import ConfinedMirror, ignore_attributes
from .debian import import_package
from .fetch import MIRROR_LIMITS, Limits, as_infrastructure, fetch
from .git import Git, GitError, create_bare

URL_FILE = "wqlab-url"
"""File of a mirror with the URL that it is a mirror of."""
_VERSION = LinearPattern(r"(?m)^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(\S*)")


@dataclass(frozen=True)
class Mirror:
    """The mirror of a tree."""

    git: Git
    head: str
    """Commit at the tip of the tree's branch."""


def update_mirror(tree: Tree, workspace: Workspace, progress: Progress = no_progress) -> Mirror:
    """Update the mirror of the tree from its origin and return it.

    Safe to call from several processes and to interrupt at any point. Raises InfrastructureError if the origin is
    unavailable.
    """

    def waiting() -> None:
        progress(f"waiting for another worker that updates tree {tree.name}", 0, 0)

    with workspace.lock(_lock_name(tree, workspace), waiting):
        git = _open(tree, workspace)
        if tree.debian_source is not None:
            head = import_package(git, tree.debian_source, tree.debian_suite, progress)
            git.run("update-ref", "refs/heads/master", head)
        else:
            head = _fetch_branch(git, tree, progress)
    return Mirror(open_mirror(tree, workspace), head)


def mirror_folder(tree: Tree, workspace: Workspace) -> Path:
    """Return the folder of the tree's mirror: each URL has its own, so that no commit of one is taken for another's.

    It is NAME.git for the first URL of an operator's tree, and has a digest of the URL in its name for all others.
    """
    usual = workspace.mirrors / f"{tree.name}.git"
    if tree.origin == "operator" and _recorded_url(usual) in {None, tree.url or ""}:
        return usual
    digest = hashlib.sha256((tree.url or "").encode()).hexdigest()[:12]
    return workspace.mirrors / f"{tree.name}-{tree.origin}-{digest}.git"


def open_mirror(tree: Tree, workspace: Workspace) -> Git:
    """Return the mirror for reading; it may be missing."""
    folder = mirror_folder(tree, workspace)
    return Git(workspace, folder) if tree.origin == "operator" else ConfinedMirror(workspace, folder)


def _lock_name(tree: Tree, workspace: Workspace) -> str:
    """Return the lock of the mirror. That of a user's URL is its own, so that a slow server stops nobody else."""
    return f"mirror-{tree.name if tree.origin == 'operator' else mirror_folder(tree, workspace).stem}"


def _recorded_url(folder: Path) -> str | None:
    try:
        return (folder / URL_FILE).read_text()
    except FileNotFoundError:
        return None


def _open(tree: Tree, workspace: Workspace) -> Git:
    """Return the tree's mirror, made if it is missing. The caller holds the lock of the tree."""
    folder = mirror_folder(tree, workspace)
    workspace.use(folder)
    git = create_bare(workspace, folder)
    _remove_leftovers(git)
    ignore_attributes(folder)
    if _recorded_url(folder) is None:
        (folder / URL_FILE).write_text(tree.url or "")
    return git


def _fetch(git: Git, tree: Tree, refspec: str, on_tick: Callable[[], None]) -> None:
    """Fetch from the tree's URL: only an operator's may be in the lab's own network, and take any memory."""
    listed = tree.origin == "operator"
    limits = MIRROR_LIMITS if listed else replace(MIRROR_LIMITS, memory_bytes=Limits().memory_bytes)
    fetch(git, tree.url or "", [refspec], private_network=listed, limits=limits, on_tick=on_tick)


def fetch_commit(tree: Tree, commit: str, workspace: Workspace, progress: Progress = no_progress) -> Git:
    """Fetch one commit by its id into the mirror of the tree, unless it is there, and return the mirror.

    The caller knows the commit to be of the tree: servers also send commits that only a fork has. Raises UserError if
    the server does not have it or does not send commits by their id.
    """
    return _fetch_into(tree, f"+{commit}:refs/commits/{commit}", commit, workspace, progress)


def fetch_ref(tree: Tree, reference: str, workspace: Workspace, progress: Progress = no_progress) -> Git:
    """Fetch a branch or tag (`refs/heads/NAME`) of the tree's repository into its mirror and return the mirror.

    It is then `refs/watched/heads/NAME`. Raises UserError if the repository does not have it.
    """
    target = f"refs/watched/{reference.removeprefix('refs/')}"
    return _fetch_into(tree, f"+{reference}:{target}", None, workspace, progress)


def _fetch_into(tree: Tree, refspec: str, commit: str | None, workspace: Workspace, progress: Progress) -> Git:
    def waiting() -> None:
        progress(f"waiting for another worker that updates tree {tree.name}", 0, 0)

    with workspace.lock(_lock_name(tree, workspace), waiting):
        git, mirror = _open(tree, workspace), open_mirror(tree, workspace)
        if commit is None or mirror.commit(commit) is None:
            source = refspec.partition(":")[0].removeprefix("+")
            _fetch(git, tree, refspec, lambda: progress(f"fetching {source} of {tree.url}", 0, 0))
    return mirror


def _remove_leftovers(git: Git) -> None:
    """Remove incomplete packs and lock files of a killed git. The caller holds the lock of the tree."""
    for pattern in ("objects/pack/tmp_*", "refs/**/*.lock", "*.lock"):
        for leftover in git.directory.glob(pattern):
            leftover.unlink(missing_ok=True)


def _fetch_branch(git: Git, tree: Tree, progress: Progress) -> str:
    reference = f"refs/heads/{tree.branch}"
    try:
        _fetch(
            git,
            tree,
            f"+{reference}:{reference}",
            lambda: progress(f"fetching {tree.url} {tree.branch}", 0, 0),
        )
    except UserError as error:
        if tree.origin == "user":
            raise
        raise as_infrastructure(error) from error
    head = open_mirror(tree, git.workspace).commit(reference)
    if head is None:
        raise InfrastructureError(f"tree {tree.name} has no branch {tree.branch}")
    return head


def source_at(tree: Tree, git: Git, commit: str) -> Source:
    """Return the Source for a commit of the tree's own history."""
    return Source(
        tree=tree, base_commit=commit, tree_oid=git.tree(commit), commit=commit, release=release_of(git, commit)
    )


def release_of(git: Git, commit: str) -> str:
    """Return what `make kernelversion` prints for a commit, read from its Makefile; empty if it has no version."""
    with suppress(GitError):
        found = {match[1]: match[2] for match in _VERSION.finditer(git.file(commit, "Makefile"))}
        if "VERSION" in found and "PATCHLEVEL" in found:
            sublevel = found.get("SUBLEVEL", "")
            dotted = f"{found['VERSION']}.{found['PATCHLEVEL']}" + (f".{sublevel}" if sublevel else "")
            return f"{dotted}{found.get('EXTRAVERSION', '')}"
    return ""
