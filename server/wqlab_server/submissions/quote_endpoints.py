"""What a submission would cost, and when it would be done."""

from __future__ import annotations

from fastapi import APIRouter

from wqlab_contracts.api.quotes import Quote
from wqlab_contracts.api.submissions import SubmissionRequest

from ..http.auth import Reader
from ..http.deps import AppSettings, Data, Db
from ..http.problems import documented
from .quoting import make

router = APIRouter(prefix="/quotes", tags=["submissions"], responses=documented(401, 403, 422, 429))


@router.post("", responses=documented(400, 413))
def create_quote(body: SubmissionRequest, session: Db, data: Data, settings: AppSettings, who: Reader) -> Quote:
    """What the same request to `create_submission` would cost and when it would be done, as the lab is now. Nothing is
    created or reserved. Its mistakes are listed in `errors`; only a body of another shape is refused."""
    return make(session, data.current(), settings, body, who.owner)
