"""List the commits of a tree's own repository between a good and a bad one, for a bisection."""

from __future__ import annotations

from contextlib import suppress

from wqlab_contracts.enums import Outcome
from wqlab_contracts.linear_patterns import LinearPattern
from wqlab_contracts.messages.commit_lists import COMMIT_LIMIT, CommitListJob, CommitListResult, ListedCommit, short
from wqlab_contracts.text import control_character

from ..failures import UserError
from ..workspace import Progress, Workspace, no_progress
from .commit_pair import fetch_named_ref, has_commit
from .git import Git, GitError
from .mirror import fetch_commit, update_mirror

_COMMIT = LinearPattern(r"[0-9a-f]{7,40}")
_FIELDS = "%H%x00%P%x00%s%x00%an <%ae>"


def list_commits(job: CommitListJob, workspace: Workspace, progress: Progress = no_progress) -> CommitListResult:
    """Return the commits of `good..bad` along first parents, oldest first.

    Both have to be on a branch or tag of the tree's repository, under the same rule as the commits of a pair. Raises
    UserError if one of them is not there, if the good one is no ancestor of the bad one, or for too many commits;
    InfrastructureError for a failure of the lab.
    """
    mirror = update_mirror(job.tree, workspace, progress)
    git, tips = mirror.git, [mirror.head]
    for commit in job.seen:
        with suppress(UserError):  # some servers send only commits that a ref has
            fetch_commit(job.tree, commit, workspace, progress)
            tips.append(commit)
    ends = {job.good, job.bad}
    refs = {name: fetch_named_ref(name, job.tree, workspace, progress) for name in ends if not _COMMIT.fullmatch(name)}
    if job.ref:
        refs[job.ref] = fetch_named_ref(job.ref, job.tree, workspace, progress)
        if not refs[job.ref]:
            raise UserError(f"tree {job.tree.name} has no branch or tag {job.ref}")
    tips += [tip for tip in refs.values() if tip]
    good, bad = (_resolve(name, job, git, tips, refs) for name in (job.good, job.bad))
    base = _merge_base(git, good, bad)
    if not job.side_of_merge:
        _check_ancestor(git, job, good, bad, base)
    commits = _commits(git, good, bad)
    return CommitListResult(
        outcome=Outcome.PASSED,
        good=base if job.side_of_merge else good,
        bad=bad,
        ref=job.ref or (job.bad if job.bad in refs else job.tree.branch),
        commits=commits,
    )


def _resolve(name: str, job: CommitListJob, git: Git, tips: list[str], refs: dict[str, str]) -> str:
    """Return the commit of a branch, a tag or a commit id. `refs` are the branches and tags that were fetched."""
    if name in refs:
        if not refs[name]:
            raise _missing(job, f"tree {job.tree.name} has no branch or tag {name}")
        return refs[name]
    commit = git.commit(name)
    if commit is None:
        raise _missing(job, f"tree {job.tree.name} has no commit {name}")
    if not any(has_commit(git, tip, commit) for tip in tips):
        raise _missing(
            job, f"commit {name} is on none of these branches and tags: {', '.join([job.tree.branch, *refs])}"
        )
    return commit


def _missing(job: CommitListJob, summary: str) -> UserError:
    advice = f"A commit has to be on {job.tree.branch}, or on a branch or tag that --ref, --good or --bad names."
    return UserError(summary, advice=advice)


def _merge_base(git: Git, good: str, bad: str) -> str:
    try:
        return git.run("merge-base", good, bad).split()[0]
    except GitError:
        raise UserError(f"{good[:12]} and {bad[:12]} have no commit in common") from None


def _check_ancestor(git: Git, job: CommitListJob, good: str, bad: str, base: str) -> None:
    if good == bad:
        raise UserError(
            f"good and bad are the same commit, {good[:12]}", advice="Name a good commit before the bad one."
        )
    if base == good:
        return
    if base == bad:
        raise UserError(
            f"good {_named(job.good, good)} descends from bad {_named(job.bad, bad)}",
            advice="Exchange them: good is the older commit, also to find what made a metric better.",
        )
    raise UserError(
        f"good {_named(job.good, good)} is not an ancestor of bad {_named(job.bad, bad)}; their merge base is "
        f"{base[:12]} ({git.run('log', '-1', '--format=%s', base).strip()[:80]})",
        advice=f"Bisect from the merge base: --good {base[:12]}.",
    )


def _named(name: str, commit: str) -> str:
    return commit[:12] if commit.startswith(name) else f"{name} ({commit[:12]})"


def _commits(git: Git, good: str, bad: str) -> list[ListedCommit]:
    count = int(git.run("rev-list", "--count", "--first-parent", f"{good}..{bad}"))
    if count > COMMIT_LIMIT:
        raise UserError(
            f"there are {count} commits between {good[:12]} and {bad[:12]} along first parents; at most {COMMIT_LIMIT} "
            "can be bisected",
            advice="Name a good commit that is nearer to the bad one.",
        )
    text = git.run("log", "--first-parent", "--reverse", "-z", f"--format={_FIELDS}", f"{good}..{bad}")
    fields = text.split("\0")
    return [
        ListedCommit(commit=commit, parents=parents.split(), subject=_line(subject), author=_line(author))
        for commit, parents, subject, author in zip(*[iter(fields)] * 4, strict=False)
    ]


def _line(text: str) -> str:
    """Return a text without characters that would change what a terminal or a page shows."""
    return short("".join("\N{REPLACEMENT CHARACTER}" if control_character(each) else each for each in text))
