"""Read the patches of a git branch before it is submitted, as a submission would find them.

The branch is fetched under the same rules as a submitted one. Its patches are written by git in the sandbox, and read
by the program that reads mails, in the sandbox too.
"""

from __future__ import annotations

from wqlab_contracts.enums import Outcome
from wqlab_contracts.messages.branch_readings import BranchReadingJob, BranchReadingResult

from ..failures import UserError
from ..workspace import Progress, Workspace, no_progress
from .branch import FETCHED, fetch_branch
from .confined_git import ConfinedGitError, limits_text
from .inspect_commits import inspect_commits
from .mirror import update_mirror
from .series_size import check_changes, check_size


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
            inspection = inspect_commits(branch.git, branch.base, branch.commit, folder, progress)
            # The id of the branch's own last commit: that of `branch` is another if the commits were moved.
            commit = branch.git.commit(FETCHED) or branch.commit
    except ConfinedGitError as error:
        raise UserError("git cannot process the series", excerpt=str(error), advice=limits_text()) from error
    return BranchReadingResult(outcome=Outcome.PASSED, base=branch.base, commit=commit, inspection=inspection)
