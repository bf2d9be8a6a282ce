"""List what the commits of a branch change.

git writes their patches, and the parser of mailed series reads the patches. Both programs run in the sandbox.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from wqlab_contracts.api.series import SeriesDefect, SeriesInspection
from wqlab_contracts.messages.submission import TEXT_LIMIT

from ..failures import InfrastructureError
from ..intake.mail_parser import SERIES_MBOX, MailParser
from ..workspace import Progress
from .confined_git import ConfinedGit

INSPECTED_BYTES = TEXT_LIMIT
"""Maximum size of the patches together, as of an mbox."""
_NOT_OF_A_BRANCH = frozenset({SeriesDefect.NO_BASE_COMMIT, SeriesDefect.MISSING_PATCH})
"""Defects that do not apply to a branch: its base is known, and `git format-patch` numbers an empty commit but writes
no mail for it."""


def inspect_commits(git: ConfinedGit, base: str, commit: str, folder: Path, progress: Progress) -> SeriesInspection:
    """Return what the commits `base..commit` change, without merges, as an inspection of their patches.

    `folder` is that of the job. Raises UserError, which names the limit, if the patches exceed one.
    """
    for name in ("in", "out"):
        (folder / name).mkdir()
    text = git.pipeline(
        [
            *("git", "format-patch", "--stdout", "--quiet", "--no-signature", "--no-stat", "--no-binary"),
            # Numbers and a version for each patch, whatever its subject begins with. Lines of a message that begin with
            # `From ` are escaped.
            *("--numbered", "--reroll-count=1", "--pretty=mboxrd", f"{base}..{commit}"),
        ],
        output_bytes=INSPECTED_BYTES,
        on_tick=lambda: progress("writing the patches", 0, 0),
    )
    # PostgreSQL cannot store NUL characters in text.
    (folder / "out" / SERIES_MBOX).write_text(text.replace("\0", "\N{REPLACEMENT CHARACTER}"), encoding="utf-8")
    try:
        found = MailParser(folder, "the branch", progress).inspect()
    except ValidationError as error:
        raise InfrastructureError("the branch cannot be read", excerpt=str(error)) from error
    problems = [each for each in found.problems if each.defect not in _NOT_OF_A_BRANCH]
    usable = not any(each.severity == "error" for each in problems)
    return found.model_copy(update={"problems": problems, "usable": usable, "base_commit": base})
