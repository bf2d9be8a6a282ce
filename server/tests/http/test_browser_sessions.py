"""Browser sessions: cookies and expiry."""

from __future__ import annotations

from datetime import timedelta

import httpx
import pytest
from sqlalchemy import func, select, update

from wqlab_contracts.api.accounts import SessionView
from wqlab_server.models import BrowserSession
from wqlab_server.storage.db import SessionFactory, transaction

from ..support.live_server import Live, expect

pytestmark = pytest.mark.integration
URL = "/api/v1/session"
SUBMISSIONS = "/api/v1/submissions"


def who(client: httpx.Client) -> SessionView:
    return SessionView.model_validate_json(expect(client.get(URL)).content)


@pytest.mark.parametrize(
    ("column", "age"),
    [("last_used_at", timedelta(days=7)), ("created_at", timedelta(days=30))],
)
def test_session_expires_by_idle_time_and_age(
    live: Live, sessions: SessionFactory, column: str, age: timedelta
) -> None:
    def set_age(old: timedelta) -> None:
        with transaction(sessions) as session:
            session.execute(update(BrowserSession).values({column: func.now() - old}))

    with live.browser("read") as client:
        before = who(client).expires_at
        set_age(age - timedelta(minutes=5))
        assert who(client).user is not None
        expires_at = who(client).expires_at
        assert before is not None
        assert expires_at is not None
        if column == "last_used_at":  # using the session extends it
            assert expires_at >= before
        else:
            assert expires_at < before - timedelta(days=6)
        set_age(age)
        assert who(client).user is None
        expect(client.get(SUBMISSIONS), 401)
    with live.browser("read"), transaction(sessions) as session:
        assert session.scalar(select(func.count(BrowserSession.id))) == 1, "expired sessions are deleted"
