"""A bare mirror of every kernel tree: fetched from its URL, or imported from a Debian source package."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass

from wqlab_contracts.messages import Source
from wqlab_contracts.specs import Tree

from ..failures import InfrastructureError, UserError
from ..workspace import Progress, Workspace, no_progress
from .debian import import_package
from .fetch import MIRROR, as_infrastructure, fetch
from .git import Git, GitError, create_bare


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
            head = import_package(git, tree.debian_source, tree.debian_suite, progress)
            git.run("update-ref", "refs/heads/master", head)
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
