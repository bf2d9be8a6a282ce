"""Read subject, author and changed files of each commit of a series."""

from __future__ import annotations

from wqlab_contracts.messages import PatchSummary
from wqlab_contracts.text import control_character

from ..failures import UserError
from .branch import check_count
from .git import Git

SUBJECT_LIMIT = 2000
"""Longest subject or author, in characters."""
_FIELDS = "%H%x00%s%x00%an <%ae>"


def patch_summaries(git: Git, base: str, commit: str) -> list[PatchSummary]:
    """Return one summary per commit of `base..commit`, oldest first.

    Raises UserError if there are too many commits, or a subject or author holds a control character, which could
    change what a terminal shows.
    """
    check_count(git, base, commit)
    chosen = ("--reverse", "--no-merges", "-z", f"{base}..{commit}")
    # NUL ends each field: git cuts commit messages and file names there, so that no field can contain it.
    fields = git.run("log", f"--format={_FIELDS}", *chosen).split("\0")
    changes = _changes(git.run("log", "--format=%H", "--numstat", *chosen))
    summaries = []
    for number, (commit_id, subject, author) in enumerate(zip(*[iter(fields)] * 3, strict=False), start=1):
        for name, text in (("subject", subject), ("author", author)):
            if (character := control_character(text)) is not None:
                raise UserError(
                    f"the {name} of patch {number} ({commit_id[:12]}) has the control character {character}",
                    advice="Remove it with: git rebase -i, or git commit --amend.",
                )
        insertions, deletions, files = changes.get(commit_id, (0, 0, []))
        summaries.append(
            PatchSummary(
                subject=subject[:SUBJECT_LIMIT],
                author=author[:SUBJECT_LIMIT],
                insertions=insertions,
                deletions=deletions,
                files=files,
            )
        )
    return summaries


def _changes(output: str) -> dict[str, tuple[int, int, list[str]]]:
    """Return insertions, deletions and files by commit, from the output of `git log -z --format=%H --numstat`.

    A row of --numstat has two tabs before the path; a commit id has none.
    """
    found: dict[str, tuple[int, int, list[str]]] = {}
    commit_id = ""
    for field in output.split("\0"):
        row = field.lstrip("\n").split("\t", 2)
        if len(row) == 3:
            insertions, deletions, files = found[commit_id]
            added, removed = (int(number) if number.isdigit() else 0 for number in row[:2])  # `-` for a binary file
            files.append(row[2])
            found[commit_id] = (insertions + added, deletions + removed, files)
        elif row[0]:
            commit_id = row[0]
            found[commit_id] = (0, 0, [])
    return found
