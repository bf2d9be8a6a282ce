"""Read the patches of a git branch before it is submitted, as a submission would find them.

The branch is fetched under the same rules as a submitted one. Its patches are written by git in the sandbox, and read
by the program that reads mails, in the sandbox too.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from wqlab_contracts.api.series import SeriesDefect, SeriesInspection
from wqlab_contracts.enums import Outcome
from wqlab_contracts.messages.branch_readings import BranchReadingJob, BranchReadingResult
from wqlab_contracts.messages.submission import TEXT_LIMIT

from ..failures import InfrastructureError, UserError
from ..intake.mail_parser import SERIES_MBOX, MailParser
from ..workspace import Progress, Workspace, no_progress
from .branch import FETCHED, Branch, fetch_branch
from .confined_git import ConfinedGitError, limits_text
from .mirror import update_mirror
from .series_size import check_changes, check_size

PATCH_BYTES = TEXT_LIMIT
"""Total size of the patches; an mbox may have as many characters."""
_NOT_OF_A_BRANCH = frozenset({SeriesDefect.NO_BASE_COMMIT, SeriesDefect.MISSING_PATCH})
"""The base of a branch is known, and git writes no mail for an empty commit, which has a number all the same."""


def read_branch(job: BranchReadingJob, workspace: Workspace, progress: Progress = no_progress) -> BranchReadingResult:
    """Fetch the branch and inspect its patches.

    Raises UserError if it cannot be fetched, compared with the tree or read, or exceeds a limit, which is named;
    InfrastructureError for a failure of the lab.
    """
    mirror = update_mirror(job.tree, workspace, progress)
    try:
        with workspace.temporary("branch") as folder:
            branch = fetch_branch(job.series, job.tree, mirror, folder, progress)
            check_changes(branch.git, branch.base, branch.commit)
            check_size(branch.git, branch.base, branch.commit, lambda: progress("measuring the series", 0, 0))
            inspection = _inspect(branch, folder, progress)
            # The id of the branch's own last commit: that of `branch` is another if the commits were moved.
            commit = branch.git.commit(FETCHED) or branch.commit
    except ConfinedGitError as error:
        raise UserError("git cannot process the series", excerpt=str(error), advice=limits_text()) from error
    return BranchReadingResult(outcome=Outcome.PASSED, base=branch.base, commit=commit, inspection=inspection)


def _inspect(branch: Branch, folder: Path, progress: Progress) -> SeriesInspection:
    """Inspect the commits of the branch without merges, the patches of a submission."""
    for name in ("in", "out"):
        (folder / name).mkdir()
    text = branch.git.pipeline(
        [
            *("git", "format-patch", "--stdout", "--quiet", "--no-signature", "--no-stat", "--no-binary"),
            # Numbers and a version for each patch, whatever its subject begins with. Lines of a message that begin with
            # `From ` are escaped.
            *("--numbered", "--reroll-count=1", "--pretty=mboxrd", f"{branch.base}..{branch.commit}"),
        ],
        output_bytes=PATCH_BYTES,
        on_tick=lambda: progress("writing the patches", 0, 0),
    )
    # The database stores no NUL, and texts are stored.
    (folder / "out" / SERIES_MBOX).write_text(text.replace("\0", "\N{REPLACEMENT CHARACTER}"), encoding="utf-8")
    try:
        found = MailParser(folder, "the branch", progress).inspect()
    except ValidationError as error:
        raise InfrastructureError("the branch cannot be read", excerpt=str(error)) from error
    problems = [each for each in found.problems if each.defect not in _NOT_OF_A_BRANCH]
    usable = not any(each.severity == "error" for each in problems)
    return found.model_copy(update={"problems": problems, "usable": usable, "base_commit": branch.base})
