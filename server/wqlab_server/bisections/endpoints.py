"""Endpoints of bisections: begin one, list them, read one with its commits, and cancel one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response, status
from sqlalchemy import func, select

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.bisections import OPEN_STATES, Bisection, BisectionData, BisectionRequest
from wqlab_contracts.enums import AuditAction, BisectionState, Scope

from ..http.audit import Audit
from ..http.auth import Reader, Submitter
from ..http.deps import Data, Db
from ..http.paging import MAX_ID, PAGE_DEFAULT, Before, Id, Limit, encode_cursor, plain_text
from ..http.problems import ApiProblem, documented
from ..models import Bisection as Row
from . import service
from .of_submission import about_submission
from .views import bisection_data, bisections_of

router = APIRouter(prefix="/bisections", tags=["bisections"], responses=documented(401, 403, 422, 429))

_RULES = (
    "the lab has no such tree, plan, device type, scenario, setting, metric or recipe; the metric is no evidence on "
    "the device type; neither or both of `metric` and `failure` are given; good and bad are the same; there is no such "
    "submission"
)


@router.post("", status_code=status.HTTP_201_CREATED, responses=documented(400, 413, rules=_RULES))
def create_bisection(
    *, body: BisectionRequest, session: Db, data: Data, principal: Submitter, audit: Audit, response: Response
) -> Bisection:
    """Search for the commit that changed a metric or made the kernel fail. Its submissions are the caller's,
    and count against the caller's quotas."""
    row = service.create(session, data.current(), body, principal.owner, limited=not principal.may(Scope.MAINTAIN))
    audit.record(session, AuditAction.CREATE_BISECTION, f"bisection/{row.id}", good=body.good, bad=body.bad)
    response.headers["Location"] = f"/api/v1/bisections/{row.id}"
    return bisections_of(session, [row])[0]


@router.get("")
def list_bisections(
    *,
    session: Db,
    _: Reader,
    before: Before,
    limit: Limit = PAGE_DEFAULT,
    state: BisectionState | None = None,
    active: Annotated[bool | None, Query(description="true: still going on; false: ended")] = None,
    owner: Annotated[str | None, Query(max_length=100)] = None,
    watch: Annotated[str | None, Query(max_length=100)] = None,
    submission: Annotated[
        int | None, Query(ge=1, le=MAX_ID, description="made by the bisection, or the one that it began with")
    ] = None,
) -> Page[Bisection]:
    """List bisections, newest first."""
    conditions = []
    for column, value in ((Row.owner, owner), (Row.watch, watch)):
        if value is not None:
            plain_text(column.key, value)
            conditions.append(column == value)
    if state is not None:
        conditions.append(Row.state == state)
    if submission is not None:
        conditions.append(about_submission(submission))
    if active is not None:
        conditions.append(Row.state.in_(OPEN_STATES) if active else Row.state.not_in(OPEN_STATES))
    total = session.scalar(select(func.count(Row.id)).where(*conditions)) or 0
    query = select(Row).where(*conditions).order_by(Row.id.desc()).limit(limit + 1)
    rows = session.scalars(query if before is None else query.where(Row.id < before)).all()
    return Page[Bisection](
        items=bisections_of(session, rows[:limit]),
        total=total,
        next=encode_cursor(rows[limit - 1].id) if len(rows) > limit else None,
    )


@router.get("/{bisection_id}", responses=documented(404))
def get_bisection(bisection_id: Id, session: Db, _: Reader) -> BisectionData:
    """One bisection with its commits, their probabilities, and every submission that it has made."""
    return bisection_data(session, service.get(session, bisection_id))


@router.post("/{bisection_id}/cancel", responses=documented(404))
def cancel_bisection(bisection_id: Id, session: Db, principal: Submitter, audit: Audit) -> Bisection:
    """Cancel a bisection, and the submission that it waits for. Canceling it again changes nothing."""
    row = service.get(session, bisection_id)
    if row.owner != principal.owner and not principal.may(Scope.MAINTAIN):
        audit.refuse(AuditAction.CANCEL_BISECTION, f"bisection/{row.id}")
        raise ApiProblem(
            403, f"bisection {row.id} belongs to {row.owner}; only its owner or a maintainer may cancel it"
        )
    audit.record(session, AuditAction.CANCEL_BISECTION, f"bisection/{row.id}")
    return bisections_of(session, [service.cancel(session, bisection_id)])[0]
