"""Submit series to the apply job and check the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wqlab_contracts.enums import ErrorKind, Outcome
from wqlab_contracts.messages import ApplyJob, ApplyResult, GitSeries, MboxSeries, Series
from wqlab_contracts.specs import Tree
from wqlab_worker.apply.apply_series import apply
from wqlab_worker.workspace import Workspace

if TYPE_CHECKING:
    from conftest import Repository


def submit(tree: Tree, workspace: Workspace, series: Series | None) -> ApplyResult:
    return apply(ApplyJob(submission_id=1, tree=tree, series=series), workspace)


def mbox(text: str) -> Series:
    return Series(mbox=MboxSeries(text=text))


def branch(repository: Repository, ref: str, base: str | None = None, url: str | None = None) -> Series:
    return Series(git=GitSeries(url=url or str(repository.path), ref=ref, base=base))


def passed(result: ApplyResult) -> ApplyResult:
    assert result.outcome is Outcome.PASSED, result.failure
    return result


def refused(result: ApplyResult) -> str:
    assert result.failure and result.failure.kind is ErrorKind.USER, result
    assert result.candidate is None and result.baseline is None
    return result.failure.summary
