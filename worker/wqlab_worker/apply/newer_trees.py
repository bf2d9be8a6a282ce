"""Tell whether a newer tree of the lab has a series already, or has changed the functions that the series changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages.apply import DIFFERENT_LIMIT, NewerTree
from wqlab_contracts.specs import Tree

from ..failures import JobError
from ..workspace import Workspace
from .changed_lines import touched_functions
from .confined_git import ConfinedGit, ConfinedGitError, ignore_attributes
from .git import create_bare
from .mirror import mirror_folder, open_mirror, release_of

_NUMBERS = LinearPattern(r"\d+(?:\.\d+)*")


def newer_trees(
    trees: Iterable[Tree], workspace: Workspace, folder: Path, *, mirror: Path, base: str, release: str,
    patches: Sequence[Path], changed: Sequence[str], touched: Sequence[str],
) -> list[NewerTree]:  # fmt: skip
    """Return for each tree that is newer than the base whether it has a series already; nothing is downloaded.

    A tree that this worker has no mirror of, or that cannot be compared, is left out. `mirror`: that of the base, whose
    release is `release`; `patches`: files of the series in `folder`; `changed` and `touched`: files and functions that
    it changes.
    """
    found = []
    for tree in trees:
        other = mirror_folder(tree, workspace)
        head = open_mirror(tree, workspace).commit("refs/heads/" + _branch(tree)) if other.is_dir() else None
        if head is None:
            continue
        with suppress(ConfinedGitError, JobError):
            git = _both(workspace, folder, mirror, other, tree.name)
            newer = release_of(git, head)
            if _version(newer) > _version(release):
                has = _has_series(git, head, patches)
                differs = [] if has else _different(git, base, head, changed, touched)
                found.append(NewerTree(tree=tree.name, release=newer, has_series=has, differs=differs))
    return found


def _branch(tree: Tree) -> str:
    """Return the branch of the mirror with the tree's head: that of an imported package is master."""
    return tree.branch if tree.url is not None else "master"


def _both(workspace: Workspace, folder: Path, mirror: Path, other: Path, name: str) -> ConfinedGit:
    """Return a repository that borrows the objects of both mirrors."""
    path = folder / f"with-{name}"
    create_bare(workspace, path, [mirror, other])
    ignore_attributes(path)
    return ConfinedGit(workspace, path, folder, (mirror, other))


def _version(release: str) -> tuple[int, ...]:
    """Return the numbers of a release: (6, 12, 117) of `6.12.117-1`; a release without any is the oldest."""
    match = _NUMBERS.match(release)
    return tuple(int(number) for number in match[0].split(".")) if match is not None else ()


def _has_series(git: ConfinedGit, head: str, patches: Sequence[Path]) -> bool:
    """Return True if the whole series can be reverted from a commit, so that the commit has all its changes."""
    index = {"GIT_INDEX_FILE": str(git.directory / "newer-index")}
    git.run("read-tree", head, environment=index)
    try:
        git.run("apply", "--cached", "--check", "--reverse", *map(str, reversed(patches)), environment=index)
    except ConfinedGitError:
        return False
    return bool(patches)


def _different(git: ConfinedGit, base: str, head: str, changed: Sequence[str], touched: Sequence[str]) -> list[str]:
    """Return the functions of the series that differ between the base and a commit."""
    difference = git.run("diff", "--no-ext-diff", "--no-textconv", base, head, "--", *changed)
    return [name for name in touched_functions([difference]) if name in set(touched)][:DIFFERENT_LIMIT]
