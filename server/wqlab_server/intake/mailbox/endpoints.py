"""Endpoint of the commands that came by mail."""

from __future__ import annotations

from fastapi import APIRouter
from sqlalchemy import func, select

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.deliveries import ReceivedCommandView

from ...http.auth import Maintainer
from ...http.deps import Db
from ...http.paging import PAGE_DEFAULT, Before, Limit, encode_cursor
from ...http.problems import documented
from ...models import ReceivedCommand

router = APIRouter(prefix="/mail-commands", tags=["deliveries"], responses=documented(401, 403, 422, 429))


@router.get("")
def list_mail_commands(
    session: Db, _: Maintainer, before: Before, limit: Limit = PAGE_DEFAULT
) -> Page[ReceivedCommandView]:
    """List the commands in replies to the lab's mails, newest first, with what was done or why nothing was."""
    total = session.scalar(select(func.count(ReceivedCommand.id))) or 0
    query = select(ReceivedCommand).order_by(ReceivedCommand.id.desc()).limit(limit + 1)
    rows = session.scalars(query if before is None else query.where(ReceivedCommand.id < before)).all()
    return Page[ReceivedCommandView](
        items=[_view(row) for row in rows[:limit]],
        total=total,
        next=encode_cursor(rows[limit - 1].id) if len(rows) > limit else None,
    )


def _view(row: ReceivedCommand) -> ReceivedCommandView:
    return ReceivedCommandView(**{name: getattr(row, name) for name in ReceivedCommandView.model_fields})
