"""Who may do what, as the endpoint lists it, against what the API answers."""

from __future__ import annotations

import re

import pytest

from wqlab_contracts.api.accounts import OperationPermission, Permissions
from wqlab_contracts.enums import Scope, UserRole
from wqlab_server.http.auth import SCOPE_OF_ROLE

from ..support.live_server import Live, expect

pytestmark = pytest.mark.integration
PATH = "/api/v1/permissions"
STREAMS = {"stream_submission_events", "stream_console"}
"""Operations whose answers do not end."""

CALCULATIONS = {"create_quote", "propose_targets", "inspect_series"}
"""Operations other than GET that store nothing and start nothing, which tokens with scope read may use."""


def listed(live: Live) -> Permissions:
    with live.client(Scope.READ) as client:
        return Permissions.model_validate_json(expect(client.get(PATH)).content)


def by_name(permissions: Permissions) -> dict[str, OperationPermission]:
    return {each.operation: each for each in permissions.operations}


def test_every_operation_of_the_document_is_listed_once(live: Live) -> None:
    document = live.app.openapi()
    expected = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert [each.operation for each in listed(live).operations] == expected


def test_roles_include_those_below_them(live: Live) -> None:
    assert [(each.role, each.scopes[-1]) for each in listed(live).roles] == list(SCOPE_OF_ROLE.items())
    assert [len(each.scopes) for each in listed(live).roles] == [1, 2, 3, 4]


def test_roles_of_known_operations(live: Live) -> None:
    found = by_name(listed(live))
    every = list(UserRole)
    assert found["list_plans"].roles == every
    assert found["create_webhook"].roles == every[1:]
    assert found["approve_mail"].roles == every[2:]
    assert found["invite_lab"].roles == [UserRole.ADMIN]
    assert (found["join_lab"].scope, found["join_lab"].visitors) == (None, True)


@pytest.mark.parametrize("scope", [None, Scope.READ, Scope.SUBMIT, Scope.MAINTAIN])
def test_the_api_refuses_whom_the_list_leaves_out_and_no_others(live: Live, scope: Scope | None) -> None:
    """Without a body and with ids that do not exist, so that nothing is changed."""
    role = next((role for role, own in SCOPE_OF_ROLE.items() if own is scope), None)
    with live.client(scope) as client:
        for each in listed(live).operations:
            if each.operation in STREAMS or (each.scope is None and each.operation != "list_plans"):
                continue
            path = re.sub(r"\{(\w+)\}", lambda name: "9" if "id" in name[1] else "none", each.path)
            status = client.request(each.method, path).status_code
            allowed = each.visitors if role is None else role in each.roles
            if scope is Scope.READ and each.method.upper() != "GET" and each.operation not in CALCULATIONS:
                allowed = False  # a viewer may do this in a browser only
            assert (status not in {401, 403}) is allowed, (each.operation, status)


def test_visitors_may_read_where_the_lab_allows_it(live: Live) -> None:
    assert not by_name(listed(live))["list_plans"].visitors
    live.allow_public_reading()
    found = by_name(listed(live))
    assert found["list_plans"].visitors
    assert not found["list_users"].visitors
    with live.client(None) as visitor:
        expect(visitor.get(PATH))
