"""Endpoint that says which role may use which operation, as the operations themselves require it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import iter_route_contexts

from wqlab_contracts.api.accounts import OperationPermission, Permissions, RolePermissions
from wqlab_contracts.enums import Scope, UserRole

from ..http.auth import SCOPE_OF_ROLE, Needs, Principal, Reader, needs_of
from ..http.deps import AppSettings
from ..http.problems import documented

router = APIRouter(prefix="/permissions", tags=["users"], responses=documented(401, 403, 422, 429))


@router.get("")
def list_permissions(request: Request, settings: AppSettings, _: Reader) -> Permissions:
    """List the roles, and every operation with those that may use it. An operation can have further rules, which its
    description has: whose things it shows or changes."""
    return Permissions(
        roles=[RolePermissions(role=role, scopes=_principal(role).all_scopes()) for role in SCOPE_OF_ROLE],
        operations=operations(request.app.routes, request.app.openapi(), public_reading=settings.public_reading),
    )


def operations(routes: Any, document: dict[str, Any], *, public_reading: bool) -> list[OperationPermission]:
    """Return every operation of an OpenAPI document with the roles whose scopes its route requires."""
    found = []
    for route in iter_route_contexts(routes):
        methods: dict[str, Any] = document["paths"].get(route.path, {})
        for method in sorted(route.methods or ()):
            described = methods.get(method.lower())
            if described is None or route.endpoint is None:
                continue
            needs = _needs(route.dependant)
            found.append(
                OperationPermission(
                    operation=described["operationId"],
                    method=method,
                    path=str(route.path),
                    group=described["tags"][0],
                    description=described.get("description", ""),
                    scope=needs.scope if needs else None,
                    roles=[role for role in SCOPE_OF_ROLE if needs is None or _principal(role).may(needs.scope)],
                    visitors=needs is None or (needs.visitors and public_reading),
                )
            )
    order = [(path, method.upper()) for path, methods in document["paths"].items() for method in methods]
    return sorted(found, key=lambda each: order.index((each.path, each.method)))


def _needs(dependant: Dependant) -> Needs | None:
    """Return what a route, or a dependency of it, requires; the highest scope if there are several."""
    own = [needs_of(dependant.call), *(_needs(each) for each in dependant.dependencies)]
    known = [needs for needs in own if needs is not None]
    return max(known, key=lambda needs: list(Scope).index(needs.scope), default=None)


def _principal(role: UserRole) -> Principal:
    return Principal(owner="", scopes=frozenset({SCOPE_OF_ROLE[role]}))
