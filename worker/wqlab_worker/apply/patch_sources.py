"""Return the source after each patch of a series, for a walk."""

from __future__ import annotations

from collections.abc import Callable

from wqlab_contracts.messages import Source
from wqlab_contracts.messages.apply import WALK_LIMIT

from ..failures import UserError
from .confined_git import ConfinedGit
from .mirror import release_of
from .series_size import check_size


def check_walkable(git: ConfinedGit, base: str, commit: str) -> list[str]:
    """Return the commits of `base..commit`, oldest first.

    Raises UserError if they are no line of 2 to WALK_LIMIT commits.
    """
    merges = git.run("rev-list", "--merges", f"{base}..{commit}").split()
    if merges:
        raise UserError(
            f"a walk measures commits in their order, but the branch has the merge {merges[0][:12]}",
            advice="Rebase the branch (git rebase), or submit it without --walk.",
        )
    commits = git.run("rev-list", "--reverse", "--topo-order", f"{base}..{commit}").split()
    if len(commits) < 2:
        raise UserError(
            "the series has one patch, so a walk shows no more than an ordinary run",
            advice="Submit it without --walk.",
        )
    if len(commits) > WALK_LIMIT:
        raise UserError(
            f"the series has {len(commits)} patches; a walk has at most {WALK_LIMIT}",
            advice="Submit it in parts, each a branch whose base is the last commit before, or without --walk.",
        )
    return commits


def patch_sources(
    git: ConfinedGit, base: str, commits: list[str], last: Source, on_tick: Callable[[], None]
) -> list[Source]:
    """Return the source after each of `commits`, which `base` precedes; the last one is `last`.

    All share the bundle of `last`, which has every commit. Raises UserError if a source is larger than the limits of
    `series_size`: a later patch may remove what an earlier one adds.
    """
    sources = []
    for commit in commits[:-1]:
        check_size(git, base, commit, on_tick)
        found = {"commit": commit, "tree_oid": git.tree(commit), "release": release_of(git, commit)}
        sources.append(last.model_copy(update=found))
    return [*sources, last]
