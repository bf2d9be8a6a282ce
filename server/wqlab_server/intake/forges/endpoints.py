"""Endpoint that forges post their events to."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from wqlab_contracts.api.forges import ForgeEventAnswer
from wqlab_contracts.enums import AuditAction
from wqlab_contracts.specs import Forge

from ...http.problems import ApiProblem, documented, not_found
from ...storage.audit import Actor, record
from ...storage.db import SessionFactory, transaction
from ...storage.live_data import LiveData
from . import events, payloads, verify

router = APIRouter(prefix="/forges", tags=["forges"])

_BODY = {
    "requestBody": {
        "description": "An event as the forge documents it",
        "required": True,
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}


@router.post(
    "/{name}/events",
    status_code=202,
    openapi_extra=_BODY,
    responses=documented(400, 401, 404, 413, 415, 429, 503, rules="the event is not one that the forge documents"),
)
async def receive_forge_event(name: str, request: Request) -> ForgeEventAnswer:
    """Take an event of the forge `name` of intake/forges.yaml. The signature of the body (GitHub, Gitea, Forgejo) or
    the secret token (GitLab) is checked first. A delivery that was received before, and an event that changes nothing
    for the lab, are accepted and ignored."""
    body = await request.body()
    headers = {key.lower(): value for key, value in request.headers.items()}
    address = request.client.host if request.client is not None else None
    return await run_in_threadpool(_receive, request, name, headers, body, address)


def _receive(
    request: Request, name: str, headers: dict[str, str], body: bytes, address: str | None
) -> ForgeEventAnswer:
    data: LiveData = request.app.state.data
    factory: SessionFactory = request.app.state.sessions
    forge = next((each for each in data.current().forges if each.name == name), None)
    if forge is None:
        raise not_found("forge", repr(name[:64]), "the operator lists forges in intake/forges.yaml")
    _check_signature(forge, headers, body)
    try:
        delivered = verify.describe(forge.kind, headers)
        hint = payloads.read(forge, delivered.event, _parse(headers, body))
    except verify.NoDelivery as error:
        raise ApiProblem(400, str(error)) from None
    except payloads.Unreadable as error:
        raise ApiProblem(422, str(error)) from None
    with transaction(factory) as session:
        answer, taken = events.receive(session, forge, delivered, hint)
        if taken and isinstance(hint, payloads.Hint):
            actor = Actor(name=f"{hint.sender}@{forge.name}"[:200], address=address)
            record(session, actor, AuditAction.RECEIVE_FORGE_EVENT, f"forge/{forge.name}", change=hint.key)
    return ForgeEventAnswer(result=answer)


def _check_signature(forge: Forge, headers: dict[str, str], body: bytes) -> None:
    try:
        secret = forge.read_secret()
    except ValueError as error:
        raise ApiProblem(503, f"the lab cannot check the event: {error}") from None
    try:
        verify.check(forge.kind, headers, body, secret)
    except verify.NotVerified as error:
        raise ApiProblem(401, str(error)) from None


def _parse(headers: dict[str, str], body: bytes) -> Any:
    if not headers.get("content-type", "").startswith("application/json"):
        raise ApiProblem(415, "set the webhook's content type to application/json")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise ApiProblem(400, "the body is not JSON") from None
