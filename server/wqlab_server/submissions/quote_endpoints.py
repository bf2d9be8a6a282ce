"""Endpoint for quotes: what a submission would cost and when it would be finished."""

from __future__ import annotations

from fastapi import APIRouter

from wqlab_contracts.api.quotes import Quote
from wqlab_contracts.api.submissions import SubmissionRequest

from ..http.auth import Reader
from ..http.deps import AppSettings, Data, Db
from ..http.problems import documented
from .quote_service import make_quote

router = APIRouter(prefix="/quotes", tags=["submissions"], responses=documented(401, 403, 422, 429))


@router.post("", responses=documented(400, 413))
def create_quote(body: SubmissionRequest, session: Db, data: Data, settings: AppSettings, principal: Reader) -> Quote:
    """Estimate what the same request to `create_submission` would cost and when it would be finished, in the lab's
    current state. Nothing is created or reserved. Mistakes of the request are listed in `errors`; only a body that
    does not fit the schema is refused."""
    return make_quote(session, data.current(), settings, body, principal.owner)
