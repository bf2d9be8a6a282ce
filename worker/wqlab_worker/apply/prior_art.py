"""Find commits of the tree that may be the same change as a patch of the series, in its base or after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wqlab_contracts.messages import PatchSummary, normalised_subject
from wqlab_contracts.messages.apply import EARLIER_LIMIT, EarlierCommit, PriorArt
from wqlab_contracts.specs import Tree

from ..failures import JobError
from .confined_git import ConfinedGit, ConfinedGitError

COMMITS = 2000
"""Most commits, of those that change the files of the series, whose subjects are compared; the newest."""
DIFFS = 500
"""Most commits after the base whose changes are compared."""
SEARCH_S = 120.0
"""Limit of one search in seconds: git reads the whole history of a file that seldom changes."""
NO_HISTORY = "the tree has no history: it is imported from a Debian package"


def prior_art(
    git: ConfinedGit,
    tree: Tree,
    patches: Sequence[PatchSummary],
    *,
    head: str,
    base: str,
    commit: str,
    on_tick: Callable[[], None],
) -> PriorArt:
    """Return the commits with the subject of a patch of `base..commit`, or after the base with its patch-id.

    `head` is the tip of the tree's branch. A search that fails or takes too long is no failure of the series: the
    result says why nothing was searched.
    """
    if tree.url is None:
        return PriorArt(skipped=NO_HISTORY)
    files = sorted({file for patch in patches for file in patch.files})
    if not files:
        return PriorArt(skipped="the series changes no file")
    try:
        found = [
            *_same_changes(git, files, head=head, base=base, commit=commit, on_tick=on_tick),
            *_same_subjects(git, head, base, patches, files),
        ]
        # Of two matches of a patch and a commit, keep the one by patch-id.
        known = {(each.patch, each.commit): each for each in reversed(found)}
        ordered = sorted(known.values(), key=lambda each: (each.patch, each.date))[:EARLIER_LIMIT]
        return PriorArt(found=[each.model_copy(update={"in_base": _is_in(git, each.commit, base)}) for each in ordered])
    except (ConfinedGitError, JobError) as error:
        return PriorArt(skipped=f"the history could not be searched: {str(error)[:200]}")


def _same_subjects(
    git: ConfinedGit, head: str, base: str, patches: Sequence[PatchSummary], files: Sequence[str]
) -> list[EarlierCommit]:
    numbers = {normalised_subject(patch.subject): number for number, patch in enumerate(patches, 1)}
    chosen = ("--no-merges", f"--max-count={COMMITS}", head, base, "--", *files)
    fields = git.run("log", "-z", "--format=%H%x00%cs%x00%s", *chosen, timeout_s=SEARCH_S).split("\0")
    return [
        EarlierCommit(patch=number, commit=commit, date=date, subject=subject[:500], same="subject")
        for commit, date, subject in zip(*[iter(fields)] * 3, strict=False)
        if (number := numbers.get(normalised_subject(subject))) is not None
    ]


def _same_changes(
    git: ConfinedGit, files: Sequence[str], *, head: str, base: str, commit: str, on_tick: Callable[[], None]
) -> list[EarlierCommit]:
    """Return the commits of the tree's branch after the base that make the same change as a patch, by its patch-id."""
    commits = git.run("rev-list", "--reverse", "--no-merges", f"{base}..{commit}").split()
    order = {each: number for number, each in enumerate(commits, 1)}
    own = {identity: order[each] for identity, each in _patch_ids(git, [f"{base}..{commit}"], on_tick) if each in order}
    limited = ["--full-diff", f"--max-count={DIFFS}", f"{base}..{head}", "--", *files]
    same: Mapping[str, int] = {
        each: own[identity] for identity, each in _patch_ids(git, limited, on_tick) if identity in own
    }
    return [
        EarlierCommit(patch=number, commit=each, date=date, subject=subject[:500], same="patch-id")
        for each, number in same.items()
        for date, subject in [git.run("log", "-1", "--format=%cs%x00%s", each).rstrip("\n").split("\0", 1)]
    ]


def _patch_ids(git: ConfinedGit, chosen: Sequence[str], on_tick: Callable[[], None]) -> list[tuple[str, str]]:
    """Return pairs of patch-id and commit."""
    log = ["git", "log", "-p", "--no-merges", "--no-textconv", "--no-ext-diff", *chosen]
    printed = git.pipeline(log, ["git", "patch-id", "--stable"], on_tick=on_tick, timeout_s=SEARCH_S)
    return [(identity, commit) for identity, commit in (line.split() for line in printed.splitlines())]


def _is_in(git: ConfinedGit, commit: str, base: str) -> bool:
    """Return True if `base` has the commit."""
    return git.run("rev-list", "--max-count=1", commit, f"^{base}").strip() == ""
