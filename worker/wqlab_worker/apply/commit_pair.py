"""Resolve a pair of commits of a tree's own repository, such as two heads of a branch that the lab watches."""

from __future__ import annotations

from contextlib import suppress

from wqlab_contracts.enums import Outcome
from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages import ApplyJob, ApplyResult, CommitPair, CommitRange, PatchSummary
from wqlab_contracts.specs import Tree

from ..failures import UserError
from ..workspace import Progress, Workspace
from .git import Git, GitError
from .mirror import Mirror, fetch_commit, fetch_ref, source_at
from .patch_summaries import patch_summaries

_REF = LinearPattern(r"[A-Za-z0-9_][A-Za-z0-9._/@+-]*")
NOT_CHECKED = "the commits are of the tree itself; checkpatch checks only series"


def resolve_pair(pair: CommitPair, job: ApplyJob, mirror: Mirror, toolchain: str, progress: Progress) -> ApplyResult:
    """Return both commits as sources, and how they are related.

    Their objects are read without the sandbox, as those of the tree's own branch. So a commit is taken only from the
    tree's branch, from `pair.ref` of the tree's repository, or if it is a commit that the lab has seen as the head of a
    watched tree, or one of its ancestors: by its id alone, a server would also send commits that anyone has pushed to
    a fork. Commits with the same files give equal kernels, which need no measurement. Raises UserError if a commit is
    not there.
    """
    tips = [mirror.head, fetch_named_ref(pair.ref, job.tree, mirror.git.workspace, progress)]
    git = mirror.git
    for commit in job.seen:
        with suppress(UserError):  # some servers send only commits that a ref has
            fetch_commit(job.tree, commit, git.workspace, progress)
        if git.commit(commit) is not None:
            tips.append(commit)
    for commit in (pair.baseline, pair.candidate):
        if git.commit(commit) is None or not any(has_commit(git, tip, commit) for tip in tips):
            raise UserError(
                f"commit {commit[:12]} is neither on {pair.ref} nor on {job.tree.branch} of tree {job.tree.name}",
                advice="If the branch was rewritten since, compare a commit that it still has.",
            )
    behind, ahead = git.run("rev-list", "--left-right", "--count", f"{pair.baseline}...{pair.candidate}").split()
    related = CommitRange(ahead=int(ahead), behind=int(behind))
    return ApplyResult(
        outcome=Outcome.PASSED,
        baseline=source_at(job.tree, git, pair.baseline),
        candidate=source_at(job.tree, git, pair.candidate),
        title=f"{pair.ref} of {job.tree.name}: {pair.baseline[:12]} to {pair.candidate[:12]}",
        series_key=f"{pair.ref} of {job.tree.name}",
        patches=_summaries(git, pair),
        checkpatch_skipped=NOT_CHECKED,
        range=related,
        toolchain=toolchain,
    )


def _summaries(git: Git, pair: CommitPair) -> list[PatchSummary]:
    """Return the commits that only the candidate has; none if there are too many to list."""
    try:
        return patch_summaries(git, pair.baseline, pair.candidate)
    except UserError:
        return []


def fetch_named_ref(ref: str, tree: Tree, workspace: Workspace, progress: Progress) -> str:
    """Fetch a branch, else a tag, of the tree's repository, and return its commit; an empty string if there is none.

    Raises UserError if `ref` is no name of a branch or tag, or the tree is a source package.
    """
    if not _REF.fullmatch(ref) or ".." in ref or ref.endswith((".lock", "/")):
        raise UserError(f"{ref!r} is not a branch or a tag")
    if tree.url is None:
        raise UserError(f"tree {tree.name} is a source package; only commits of a git repository can be compared")
    for kind in ("heads", "tags"):
        with suppress(UserError):
            git = fetch_ref(tree, f"refs/{kind}/{ref}", workspace, progress)
            return git.commit(f"refs/watched/{kind}/{ref}") or ""
    return ""


def has_commit(git: Git, tip: str, commit: str) -> bool:
    """Return True if `commit` is `tip` or one of its ancestors."""
    if not tip:
        return False
    try:
        git.run("merge-base", "--is-ancestor", commit, tip)
    except GitError:
        return False
    return True
