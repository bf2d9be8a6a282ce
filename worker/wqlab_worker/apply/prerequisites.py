"""Find the commit of a tree that has the prerequisite patches which a mailed series names."""

from __future__ import annotations

from collections.abc import Sequence

from wqlab_contracts.linear_patterns import LinearPattern

from ..failures import UserError
from ..workspace import Progress
from .confined_git import ConfinedGit

COMMIT_LIMIT = 5_000
"""Commits in which prerequisites are looked for."""
_PATCH_ID = LinearPattern(r"(?m)^([0-9a-f]{40}) ([0-9a-f]{40})$")


def commit_with_prerequisites(
    git: ConfinedGit, needed: Sequence[str], *, tree: str, named: str | None, head: str, progress: Progress
) -> str:
    """Return the first commit of the tree that has all patches whose stable patch-ids are in `needed`.

    If they came by different branches, this is `head`. They are looked for in the commits after the base-commit
    `named`, if the tree has it, else in the last ones before `head`. Raises UserError, naming each that is missing.
    """
    start = [] if named is None else [f"^{named}"]
    # A commit without parents adds the whole tree, and is nobody's patch.
    chosen = ("--no-merges", "--min-parents=1", f"--max-count={COMMIT_LIMIT}", head, *start)
    output = git.pipeline(
        ["git", "log", "-p", *chosen],
        ["git", "patch-id", "--stable"],
        on_tick=lambda: progress("looking for prerequisite patches", 0, 0),
    )
    commits = {match[1]: match[2] for match in reversed(list(_PATCH_ID.finditer(output)))}
    missing = [patch_id for patch_id in needed if patch_id not in commits]
    if missing:
        where = f"the commits of {tree} after {named[:12]}" if named else f"the last {COMMIT_LIMIT} commits of {tree}"
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise UserError(
            f"the series needs patches that are not in {where}: prerequisite-patch-id {', '.join(missing[:3])}{more}",
            advice="Choose a tree that has them; or submit a branch that has them below the series: they are then"
            " measured with it, or each by itself with --walk.",
        )
    found = sorted({commits[patch_id] for patch_id in needed})
    last = git.run("merge-base", "--independent", *found).split()  # those from which no other is reachable
    return last[0] if len(last) == 1 else head
