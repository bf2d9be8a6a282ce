"""Endpoints for quotes: what a submission would cost, when it would be finished, and what is left of one's quotas."""

from __future__ import annotations

from fastapi import APIRouter

from wqlab_contracts.api.quotes import Quota, Quote
from wqlab_contracts.api.submissions import SubmissionRequest

from ..http.auth import VISITOR, Principal, Reader, Submitter
from ..http.deps import AppSettings, Data, Db
from ..http.inspection_process import BoundedInspect
from ..http.problems import documented
from ..settings import Settings
from . import quotas
from .quote_service import make_quote

router = APIRouter(tags=["submissions"], responses=documented(401, 403, 422, 429))


@router.post("/quotes", responses=documented(400, 413, 503))
def create_quote(
    *,
    body: SubmissionRequest,
    session: Db,
    data: Data,
    settings: AppSettings,
    principal: Reader,
    inspect: BoundedInspect,
) -> Quote:
    """Estimate what the same request to `create_submission` would cost and when it would be finished, in the lab's
    current state. Nothing is created or reserved. Mistakes of the request are listed in `errors`; only a body that does
    not fit the schema is refused, and an mbox that takes too long or too much memory to inspect. `quotas` says what is
    left before this submission."""
    quote = make_quote(session, data.current(), settings, body, principal.owner, inspect=inspect)
    return quote.model_copy(update={"quotas": _quotas(session, settings, principal)})


@router.get("/quota")
def list_quotas(session: Db, settings: AppSettings, principal: Submitter) -> list[Quota]:
    """The caller's quotas: limit, use, and what is left. Empty for maintainers and administrators, who have none."""
    return _quotas(session, settings, principal)


def _quotas(session: Db, settings: Settings, principal: Principal) -> list[Quota]:
    limited = principal != VISITOR and quotas.is_limited(principal)
    return quotas.quotas(session, settings, principal.owner) if limited else []
