"""What a token with scope read may do."""

from __future__ import annotations

import pytest

from wqlab_contracts.enums import Scope, UserRole
from wqlab_server.http.auth import Principal, is_read_only


@pytest.mark.parametrize(
    ("scopes", "role", "csrf", "read_only"),
    [
        ({Scope.READ}, UserRole.ADMIN, None, True),
        ({Scope.READ}, UserRole.SUBMITTER, None, True),
        ({Scope.READ}, UserRole.VIEWER, None, False),
        ({Scope.READ}, UserRole.ADMIN, "a browser", False),
        ({Scope.SUBMIT}, UserRole.ADMIN, None, False),
        ({Scope.READ, Scope.MAINTAIN}, UserRole.MAINTAINER, None, False),
        ({Scope.WORKER}, None, None, False),
    ],
)
def test_a_token_with_less_than_its_account_only_reads(
    scopes: set[Scope], role: UserRole | None, csrf: str | None, read_only: bool
) -> None:
    assert is_read_only(Principal("ada", frozenset(scopes), role=role, csrf=csrf)) is read_only
