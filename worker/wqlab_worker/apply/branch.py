"""Fetch a series that is a git branch, find its base and put it on top of the tree's own commits."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.mails import mbox
from wqlab_contracts.messages import GitSeries
from wqlab_contracts.specs import Tree

from ..failures import UserError
from ..workspace import Progress
from .confined_git import ConfinedGit, ConfinedGitError, create_confined
from .fetch import fetch
from .git import Git
from .mirror import Mirror

_REFERENCE = LinearPattern(r"[A-Za-z0-9_][A-Za-z0-9._/@+-]*")
IDENTITY_LIMIT = 1000
"""Longest name or address of an author, in characters: it becomes an argument of a program, of at most 128 KiB."""
FETCHED = "refs/fetched/series"
"""The branch, as fetched."""
_FETCHED_BASE = "refs/fetched/base"


class Branch(NamedTuple):
    """Commits `base..commit` in `git`, a clean repository that borrows the mirror's objects."""

    git: ConfinedGit
    base: str
    commit: str
    title: str
    texts: list[str]
    """Commit messages."""


def fetch_branch(series: GitSeries, tree: Tree, mirror: Mirror, folder: Path, progress: Progress) -> Branch:
    """Fetch the branch. Raises UserError if it cannot be fetched or compared with the tree."""
    git = create_confined(mirror.git.workspace, folder, "git", [], mirror.git.directory)
    _fetch(git, series, series.ref, FETCHED, progress)
    commit = git.commit(FETCHED)
    if commit is None:
        raise UserError(f"{series.url} has no branch, tag or commit {series.ref!r}")
    base = _base_of(series, tree, mirror, git, commit, progress=progress)
    if git.run("rev-list", "--count", f"{base}..{commit}").strip() == "0":
        raise UserError(
            f"{series.ref} has nothing on top of {base[:12]}",
            advice="Either the tree already has the branch, or --base names the last commit of the branch.",
        )
    base, commit = _rebase_onto_mirror(tree, mirror, git, base, commit, progress=progress)
    check_count(git, base, commit)
    texts = git.run("log", "-z", "--format=%B", f"{base}..{commit}").split("\0")[:-1]
    subjects = git.run("log", "-z", "--reverse", "--format=%s", "--no-merges", f"{base}..{commit}").split("\0")[:-1]
    title = subjects[0] if len(subjects) == 1 else f"{series.ref} ({len(subjects)} patches)"
    return Branch(git, base, commit, title, texts)


def _fetch(git: ConfinedGit, series: GitSeries, ref: str, into: str, progress: Progress) -> None:
    """Fetch `ref` and report progress every second; for a canceled or lost job `progress` raises and ends the fetch."""
    fetch(
        *(git.fetching(), series.url, [f"+{source_reference(ref)}:{into}"]),
        private_network=False,
        on_tick=lambda: progress(f"fetching {ref} of {series.url}", 0, 0),
    )


def source_reference(ref: str) -> str:
    """Return `ref` if it is safe to give to git. Raises UserError if it is not."""
    if not _REFERENCE.fullmatch(ref) or ".." in ref or ref.endswith((".lock", "/")):
        raise UserError(f"{ref!r} is not a branch, a tag or a full commit id")
    return ref


def _base_of(
    series: GitSeries, tree: Tree, mirror: Mirror, git: ConfinedGit, commit: str, *, progress: Progress
) -> str:
    """Return the named base commit, or the merge-base with the tree if none is named."""
    if series.base is None:
        try:
            return git.run("merge-base", commit, mirror.head).strip()
        except ConfinedGitError:
            raise UserError(
                f"{series.ref} and tree {tree.name} have no commit in common",
                advice="Choose the tree on which the branch is based, or name the commit below the branch's first patch"
                f" with --base (its files must be identical to those of a commit in {tree.name}).",
            ) from None
    base = git.commit(source_reference(series.base))
    if base is None:
        try:
            _fetch(git, series, series.base, _FETCHED_BASE, progress)
            base = git.commit(_FETCHED_BASE)
        except UserError:
            base = None
    if base is None:
        raise UserError(
            f"base {series.base!r} is neither in tree {tree.name} nor in {series.url}",
            advice="Give --base as a commit id (at least 7 digits), a branch or a tag.",
        )
    try:
        git.run("merge-base", "--is-ancestor", base, commit)
    except ConfinedGitError:
        raise UserError(f"base {series.base} is not an ancestor of {series.ref}") from None
    return base


def _rebase_onto_mirror(
    tree: Tree, mirror: Mirror, git: ConfinedGit, base: str, commit: str, *, progress: Progress
) -> tuple[str, str]:
    """Return base and tip of the same commits on top of the tree's own commit with the files of `base`.

    Two imports of one source archive have different commits but the same files, and only files matter for a kernel.
    Each commit takes two sandboxes, so their number is limited, merges included.
    """
    if mirror.git.commit(base) is not None:
        return base, commit
    own = mirror.head
    if git.tree(base) != git.tree(own):
        raise UserError(
            f"base {base[:12]} is not in tree {tree.name}, and its files are not those of {own[:12]}",
            advice="Choose the tree on which the branch is based.",
        )
    check_count(git, base, commit, "--first-parent")
    parent = own
    commits = git.run("rev-list", "--reverse", "--first-parent", f"{base}..{commit}").split()
    message = git.folder / "message"
    for number, each in enumerate(commits):
        progress(f"moving the commits onto {tree.name}", number, len(commits))
        # NUL separates, since a commit cannot hold it. A name may hold what Python takes for the end of a line.
        *author, text = git.run("log", "-1", "--format=%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B", each).split("\0")
        names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "AUTHOR_DATE", "COMMITTER_NAME", "COMMITTER_EMAIL", "COMMITTER_DATE")
        if max(map(len, author)) > IDENTITY_LIMIT:
            raise UserError(f"commit {each[:12]} has an author or committer of more than {IDENTITY_LIMIT} characters")
        identity = {f"GIT_{name}": value for name, value in zip(names, author, strict=True)}
        message.write_text(text)
        arguments = ("commit-tree", f"{each}^{{tree}}", "-p", parent, "-F", str(message))
        parent = git.run(*arguments, environment=identity).strip()
    return own, parent


def check_count(git: Git, base: str, commit: str, counted: str = "--no-merges") -> None:
    """Raise UserError if there are too many patches. `counted` is the option of git-rev-list(1) for what counts."""
    count = int(git.run("rev-list", "--count", counted, f"{base}..{commit}"))
    if count > mbox.PATCH_LIMIT:
        raise UserError(
            f"the branch has {count} patches on top of {base[:12]}; at most {mbox.PATCH_LIMIT} are allowed",
            advice="If the branch is based on another tree, name its base with --base.",
        )
