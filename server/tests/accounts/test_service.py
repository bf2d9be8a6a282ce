"""User management and sign-in below the endpoints."""

from __future__ import annotations

import pytest

from wqlab_contracts.enums import UserRole
from wqlab_server.accounts import service
from wqlab_server.http.problems import ApiProblem
from wqlab_server.settings import Settings
from wqlab_server.storage.db import SessionFactory, transaction

pytestmark = pytest.mark.integration


def test_created_user_can_sign_in(sessions: SessionFactory, settings: Settings) -> None:
    with transaction(sessions) as session:
        assert not service.user_exists(session, "ada")
        _, password = service.create_user(session, "ada", UserRole.ADMIN)
        assert service.user_exists(session, "ada")
        with pytest.raises(ApiProblem, match="user ada already exists"):
            service.create_user(session, "ada", UserRole.VIEWER)
    assert service.sign_in(sessions, settings, "ada", password, "192.0.2.1")
    with pytest.raises(ApiProblem) as caught:
        service.sign_in(sessions, settings, "ada", "wrong", "192.0.2.1")
    assert caught.value.status == 401


def test_only_administrator_cannot_be_demoted(sessions: SessionFactory) -> None:
    with transaction(sessions) as session:
        service.create_user(session, "ada", UserRole.ADMIN)
        with pytest.raises(ApiProblem, match="only administrator"):
            service.change_user(session, "ada", role=UserRole.VIEWER, disabled=None)
        service.create_user(session, "bo", UserRole.ADMIN)
        assert service.change_user(session, "ada", role=UserRole.VIEWER, disabled=None).role is UserRole.VIEWER


def test_disabled_user_can_be_enabled_again(sessions: SessionFactory) -> None:
    with transaction(sessions) as session:
        service.create_user(session, "ada", UserRole.VIEWER)
        assert service.change_user(session, "ada", role=None, disabled=True).disabled_at is not None
        assert service.change_user(session, "ada", role=None, disabled=False).disabled_at is None
        with pytest.raises(ApiProblem, match="no user bo"):
            service.get_user(session, "bo")
