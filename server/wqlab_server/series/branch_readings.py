"""Readings of branches: a worker fetches a branch and shows what its patches change, before it is submitted."""

from __future__ import annotations

from sqlalchemy.orm import Session

from wqlab_contracts.api.series import BranchInspection
from wqlab_contracts.celery_names import BRANCH_READING
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.enums import JobState
from wqlab_contracts.messages import GitSeries, Progress
from wqlab_contracts.messages.branch_readings import BranchReadingJob, BranchReadingResult
from wqlab_contracts.yamlfile import suggest_name

from ..http.git_urls import series_problems
from ..http.problems import ApiProblem
from ..jobs import claims, lookups
from ..jobs.inspected_branches import same_branch
from ..models import BranchReading
from ..settings import Settings
from ..storage.db import clock
from ..storage.events import BRANCH_READING_CHANNEL


def request(
    session: Session, git: GitSeries, tree: str | None, *, data: DataFolder, owner: str, settings: Settings
) -> int:
    """Return the id of a reading of the branch: an unfinished or recent one, else a new one.

    Raises ApiProblem 422 if the branch is refused or the lab does not have the tree, and 429 if the owner has too many
    unfinished readings.
    """
    problems = series_problems(git, settings.local_git_path_list)
    named = tree or data.default_tree
    if named not in data.trees:
        problems["tree"] = f"no tree {named!r}; {suggest_name(named, set(data.trees))}"
    if problems:
        errors = [{"parameter": name, "in": "query", "detail": problem} for name, problem in problems.items()]
        raise ApiProblem(422, next(iter(problems.values())), errors=errors)
    new = BranchReading(
        url=git.url, ref=git.ref, base=git.base, tree=data.trees[named], owner=owner, state=JobState.WAITING
    )
    return lookups.request(session, new, same_branch(git, data.trees[named]), BRANCH_READING, settings)


def read(session: Session, reading_id: int) -> BranchInspection:
    """Return the state of a reading and, once it is finished, what it found. Raises ApiProblem 404 if it is unknown."""
    reading = lookups.lock(session, BranchReading, reading_id)
    lookups.finish_if_expired(session, reading, clock(session))
    result = reading.result
    return BranchInspection(
        url=reading.url,
        ref=reading.ref,
        base=reading.base,
        tree=reading.tree.name,
        state=reading.state,
        progress=reading.progress,
        outcome=reading.outcome,
        failure=reading.failure,
        base_commit=result.base if result else None,
        commit=result.commit if result else None,
        inspection=result.inspection if result else None,
        looked_at=reading.finished_at,
    )


# --- worker requests --------------------------------------------------------------------------------------------


def claim(
    session: Session, reading_id: int, holder: str, settings: Settings, nonce: str | None
) -> tuple[BranchReadingJob, int]:
    """Claim a reading and return the job and its fence.

    Raises NotClaimable if it is not queued, and ApiProblem 404 if it is unknown.
    """
    reading = lookups.lock(session, BranchReading, reading_id)
    fence = lookups.claim(session, reading, holder, settings, nonce)
    series = GitSeries(url=reading.url, ref=reading.ref, base=reading.base)
    return BranchReadingJob(series=series, tree=reading.tree), fence


def extend(session: Session, reading_id: int, fence: int, settings: Settings) -> None:
    """Extend the claim of a reading. Raises StaleFence, and ApiProblem 404 if it is unknown."""
    reading = lookups.lock(session, BranchReading, reading_id)
    claims.extend(reading, claims.check_fence(session, reading, fence), settings.claim_s)


def progress(session: Session, reading_id: int, fence: int, events: list[Progress]) -> None:
    """Store what the worker does. Raises StaleFence, and ApiProblem 404 if the reading is unknown."""
    reading = lookups.lock(session, BranchReading, reading_id)
    claims.check_fence(session, reading, fence)
    for event in events:
        reading.progress, reading.progress_done, reading.progress_total = event.text, event.done, event.total


def finish(session: Session, reading_id: int, fence: int, result: BranchReadingResult) -> None:
    """Store the result of a reading and finish it. Repeating the same request changes nothing.

    Raises StaleFence if `fence` is no longer that of the reading or the reading was finished with another result, and
    ApiProblem 404 if there is no such reading.
    """
    reading = lookups.lock(session, BranchReading, reading_id)
    if lookups.finish(session, reading, fence, result, BRANCH_READING_CHANNEL):
        reading.result = result
