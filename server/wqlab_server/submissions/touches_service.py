"""Targets that the lab proposes for a series, with their cost. Reads the database and writes nothing."""

from __future__ import annotations

from sqlalchemy import select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session

from wqlab_contracts.api.series import SeriesInspection
from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.api.touches import LeftOutPlan, TargetProposal, Touches
from wqlab_contracts.data_folder import DataFolder
from wqlab_contracts.enums import Outcome
from wqlab_contracts.messages import GitSeries, Series, ThreadSeries
from wqlab_contracts.touches import propose, touched_files
from wqlab_contracts.yamlfile import suggest_name

from ..estimates import lab_snapshot
from ..http.problems import ApiProblem, invalid
from ..jobs import inspected_branches
from ..models import ThreadLookup
from ..settings import Settings
from .quote_service import make_quote
from .validate_sweep import MAX_TARGETS


def inspected_before(session: Session, series: Series, tree: str | None, data: DataFolder) -> SeriesInspection:
    """Return what a worker found of a thread or branch. Raises ApiProblem 422 if it found none."""
    if series.git is not None:
        return inspected_branch(session, series.git, tree, data)
    if series.thread is not None:
        return inspected_thread(session, series.thread)
    raise refuse_series()


def inspected_thread(session: Session, thread: ThreadSeries) -> SeriesInspection:
    """Return what a worker found of a thread in the last day. Raises ApiProblem 422 if it found none."""
    found = session.scalar(
        select(ThreadLookup)
        .where(
            type_coerce(ThreadLookup.payload, JSONB).contains({"series": thread.model_dump(mode="json")}),
            ThreadLookup.outcome == Outcome.PASSED,
        )
        .order_by(ThreadLookup.id.desc())
        .limit(1)
    )
    inspection = found.result.inspection if found is not None and found.result is not None else None
    if inspection is None:
        detail = (
            f"the lab has not looked for {thread.message_id!r} yet; request GET /api/v1/archives/thread with this "
            "message_id and revision first, until its state is finished"
        )
        raise invalid([{"pointer": "/series/thread", "detail": detail}])
    return inspection


def inspected_branch(session: Session, git: GitSeries, tree: str | None, data: DataFolder) -> SeriesInspection:
    """Return what a worker found of a branch in the last minutes. Raises ApiProblem 422 if it found nothing, or the lab
    does not have the tree."""
    named = tree or data.default_tree
    if named not in data.trees:
        raise invalid([{"pointer": "/tree", "detail": f"no tree {named!r}; {suggest_name(named, set(data.trees))}"}])
    inspection = inspected_branches.last_inspection(session, git, data.trees[named])
    if inspection is None:
        minutes = int(inspected_branches.PROPOSAL_TIME.total_seconds() / 60)
        detail = (
            f"the lab has not read {git.ref!r} of {git.url!r} in the last {minutes} minutes; request GET "
            "/api/v1/git/branches/inspection with this url, ref, base and tree first, until its state is finished"
        )
        raise invalid([{"pointer": "/series/git", "detail": detail}])
    return inspection


def check_usable(inspection: SeriesInspection, pointer: str) -> None:
    """Raise ApiProblem 422 with the series' defects if a submission of it would be refused."""
    if not inspection.usable:
        errors = [problem.detail for problem in inspection.problems if problem.severity == "error"]
        raise invalid([{"pointer": pointer, "detail": detail} for detail in errors])


def propose_with_cost(
    session: Session,
    data: DataFolder,
    settings: Settings,
    inspection: SeriesInspection,
    *,
    series: Series,
    tree: str | None,
    owner: str,
) -> Touches:
    """Return the targets that are proposed for an inspected series, with costs for one submission of all of them.

    Raises ApiProblem 422 if the lab does not have the tree.
    """
    touches = propose(touched_files(inspection), data, lab_snapshot.load(session, settings).usable_types)
    if not touches.proposals:
        return touches
    proposals = touches.proposals[:MAX_TARGETS]
    request = SubmissionRequest(
        series=series, tree=tree or data.default_tree, targets=[each.target for each in proposals]
    )
    quote = make_quote(session, data, settings, request, owner, inspect=lambda _: inspection)
    of_tree = [error for error in quote.errors if error.pointer == "/tree"]
    if of_tree:
        raise invalid([error.model_dump() for error in of_tree])
    costs = {target.index: target for target in quote.targets}
    refused = {error.pointer.split("/")[2]: error.detail for error in quote.errors if _is_of_target(error.pointer)}
    left_out = [_left_out(each, refused[str(index)]) for index, each in enumerate(proposals) if str(index) in refused]
    return touches.model_copy(
        update={
            "proposals": [
                each.model_copy(update={"quote": costs.get(index)})
                for index, each in enumerate(proposals)
                if str(index) not in refused
            ],
            "left_out": [*touches.left_out, *left_out],
            "device_s": quote.device_s,
            "build_s": quote.build_s,
        }
    )


def _is_of_target(pointer: str) -> bool:
    return pointer.startswith("/targets/")


def _left_out(proposal: TargetProposal, why: str) -> LeftOutPlan:
    return LeftOutPlan(plan=proposal.target.plan, devices=proposal.devices, why=why, because=proposal.because)


def refuse_series() -> ApiProblem:
    """Return the refusal of a series that the lab has no diff of, or of several."""
    detail = (
        "give exactly one series: an mbox (git format-patch --stdout BASE..), a Message-ID, or a branch; the lab has "
        "no diff of a pair of commits"
    )
    return invalid([{"pointer": "/series", "detail": detail}])
