"""Resolve a pair of commits of a tree's own repository, such as two heads of a branch that the lab watches."""

from __future__ import annotations

from contextlib import suppress

from wqlab_contracts.enums import Outcome
from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages import ApplyJob, ApplyResult, CommitPair, CommitRange, PatchSummary, Source
from wqlab_contracts.specs import Tree

from ..failures import UserError
from ..workspace import Progress, Workspace
from .checkout import make_bundle
from .confined_git import create_confined
from .git import Git, GitError
from .mirror import Mirror, fetch_commit, fetch_ref, release_of, source_at
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
    if pair.reverted is not None:
        return _with_revert(pair, pair.reverted, job, mirror, toolchain)
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


def _with_revert(pair: CommitPair, reverted: str, job: ApplyJob, mirror: Mirror, toolchain: str) -> ApplyResult:
    """Return the candidate with a commit reverted on top, as `git revert` does: a three-way merge of the candidate and
    the commit's parent, with the commit as the base.

    Raises UserError if the commit is not before the candidate, is a merge, or the files conflict.
    """
    git, workspace = mirror.git, mirror.git.workspace
    if not has_commit(git, pair.candidate, reverted):
        raise UserError(f"commit {reverted[:12]} is not before {pair.candidate[:12]}, so it cannot be reverted there")
    if len(git.run("rev-list", "--parents", "-n", "1", reverted).split()) != 2:
        raise UserError(f"commit {reverted[:12]} is a merge or has no parent; only an ordinary commit is reverted")
    subject = git.run("log", "-1", "--format=%s", reverted).strip()
    with workspace.temporary("revert") as folder:
        own = create_confined(workspace, folder, "revert", [], git.directory)
        undone = _commit(own, f"{reverted}^^{{tree}}", reverted, "undo")
        merged = own.run("merge-tree", "--write-tree", pair.candidate, undone, timeout_s=600.0, check=False)
        tree, *conflicts = merged.splitlines() or [""]
        if not tree or conflicts:
            raise UserError(
                f"commit {reverted[:12]} cannot be reverted on top of {pair.candidate[:12]}: the files conflict",
                excerpt="\n".join(conflicts)[-2000:],
            )
        commit = _commit(own, tree, pair.candidate, f'Revert "{subject}"')
        source = Source(
            tree=job.tree, base_commit=pair.candidate, tree_oid=own.tree(commit), commit=commit,
            bundle=make_bundle(own, pair.candidate, commit, folder, git.directory),
            release=release_of(git, pair.candidate),
        )  # fmt: skip
        patches = patch_summaries(own, pair.candidate, commit)
    return ApplyResult(
        outcome=Outcome.PASSED,
        baseline=source_at(job.tree, git, pair.baseline),
        candidate=source,
        title=f"{pair.ref} of {job.tree.name}: {pair.candidate[:12]} with {reverted[:12]} reverted",
        series_key=f"{pair.ref} of {job.tree.name}",
        patches=patches,
        checkpatch_skipped=NOT_CHECKED,
        toolchain=toolchain,
    )


def _commit(git: Git, tree: str, parent: str, message: str) -> str:
    """Write a commit that is the same on every machine."""
    fields = {"NAME": "wqlab", "EMAIL": "wqlab@localhost", "DATE": "@0 +0000"}
    identity = {f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in fields.items()}
    return git.run("commit-tree", tree, "-p", parent, "-m", message, environment=identity).strip()


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
