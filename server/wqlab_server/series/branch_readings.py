"""Readings of branches: a worker fetches a branch and shows what its patches change, before it is submitted."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy.orm import Session

from wqlab_contracts.api.series import BranchInspection
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.messages import GitSeries
from wqlab_contracts.messages.branch_readings import BranchReadingJob
from wqlab_contracts.yamlfile import suggest_name

from ..http.git_urls import series_problems
from ..http.problems import ApiProblem, not_found
from ..jobs import lookups
from ..models import BranchReading
from ..settings import Settings


class BranchReadingKind(lookups.LookupKind[BranchReading]):
    """Readings of branches. A worker may fetch another branch before."""

    model = BranchReading
    worker_timeout = timedelta(minutes=10)
    name = "the reading of a branch"
    plural = "readings of branches"
    alternative = "the branch can be submitted without its proposals"


def request(
    session: Session, git: GitSeries, tree: str | None, *, data: DataFolder, owner: str, settings: Settings
) -> int:
    """Return the id of a reading of the branch: an unfinished or recent one, else a new one.

    Raises ApiProblem 422 if the branch is refused or the lab does not have the tree, and Wait if the owner has too many
    unfinished readings.
    """
    problems = series_problems(git, settings.local_git_path_list)
    named = tree or data.default_tree
    if named not in data.trees:
        problems["tree"] = f"no tree {named!r}; {suggest_name(named, set(data.trees))}"
    if problems:
        errors = [{"parameter": name, "in": "query", "detail": problem} for name, problem in problems.items()]
        raise ApiProblem(422, next(iter(problems.values())), errors=errors)
    job = BranchReadingJob(series=git, tree=data.trees[named])
    return lookups.request(
        session, BranchReadingKind, BranchReading(payload=job, key=job.model_dump_json(), owner=owner)
    )


def read(session: Session, reading_id: int) -> BranchInspection:
    """Return the state of a reading and, once it is finished, what it found. Raises ApiProblem 404 if it is unknown."""
    reading = session.get(BranchReading, reading_id, populate_existing=True)
    if reading is None:
        raise not_found("reading of a branch", reading_id)
    series, result = reading.payload.series, reading.result
    return BranchInspection(
        url=series.url,
        ref=series.ref,
        base=series.base,
        tree=reading.payload.tree.name,
        state=reading.state,
        progress=reading.progress,
        outcome=reading.outcome,
        failure=reading.failure,
        base_commit=result.base if result else None,
        commit=result.commit if result else None,
        inspection=result.inspection if result else None,
        looked_at=reading.finished_at,
    )
