"""Accounts that own submissions which the lab makes by itself."""

from __future__ import annotations

import pytest

from wqlab_contracts.enums import UserRole
from wqlab_server.storage.db import SessionFactory, clock, transaction
from wqlab_server.storage.owners import UnusableOwner, owner_of

from ..support.people import add_user

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("role", [UserRole.SUBMITTER, UserRole.MAINTAINER, UserRole.ADMIN])
def test_whoever_may_submit_may_own(sessions: SessionFactory, role: UserRole) -> None:
    with transaction(sessions) as session:
        add_user(session, "bot", role)
        assert owner_of(session, "bot").role is role


def test_others_are_refused_with_the_reason(sessions: SessionFactory) -> None:
    with transaction(sessions) as session:
        now = clock(session)
        add_user(session, "reader", UserRole.VIEWER)
        add_user(session, "gone", UserRole.SUBMITTER).disabled_at = now
        add_user(session, "left", UserRole.SUBMITTER).without_role_since = now
        session.flush()
        for name, reason in (
            ("nobody", "no account 'nobody'"),
            ("reader", "the account reader may not submit"),
            ("gone", "the account gone is disabled"),
            ("left", "the account left may not submit"),
        ):
            with pytest.raises(UnusableOwner, match=reason):
                owner_of(session, name)
