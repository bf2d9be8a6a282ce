"""Endpoints of forges: one that they post their events to, and those that show the state of each."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from wqlab_contracts.api.forges import ForgeDetail, ForgeEventAnswer, ForgeView
from wqlab_contracts.enums import AuditAction
from wqlab_contracts.specs import Forge

from ...http.audit import Audit
from ...http.auth import Maintainer
from ...http.deps import AppSettings, Data, Db
from ...http.paging import plain_text
from ...http.problems import ApiProblem, documented, not_found
from ...storage.audit import Actor, record
from ...storage.db import SessionFactory, transaction
from ...storage.live_data import LiveData
from . import events, payloads, poll, state, verify

router = APIRouter(prefix="/forges", tags=["forges"])

_BODY = {
    "requestBody": {
        "description": "An event as the forge documents it",
        "required": True,
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}


@router.get("", responses=documented(401, 403, 429))
def list_forges(session: Db, data: Data, settings: AppSettings, _: Maintainer) -> list[ForgeView]:
    """List the forges of intake/forges.yaml, in its order: last event, last poll, last status, last error, and how many
    heads are in which state."""
    return [state.view(session, settings, forge) for forge in data.current().forges]


@router.get("/{name}", responses=documented(401, 403, 404, 422, 429))
def get_forge(*, name: str, session: Db, data: Data, settings: AppSettings, _: Maintainer) -> ForgeDetail:
    """One forge, with the heads that are still to be measured, and those that were not, with reasons."""
    return state.detail(session, settings, _find(data, plain_text("name", name)))


@router.post("/{name}/poll", responses=documented(401, 403, 404, 422, 429))
def poll_forge(
    *, name: str, session: Db, data: Data, settings: AppSettings, _: Maintainer, audit: Audit
) -> ForgeDetail:
    """Ask the forge now for heads of which no event has told, for example after the lab was away. What is found is
    there some seconds later."""
    forge = _find(data, plain_text("name", name))
    poll.order(session, forge)
    audit.record(session, AuditAction.POLL_FORGE, f"forge/{forge.name}")
    return state.detail(session, settings, forge)


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
    forge = _find(data, name)
    try:
        delivered, hint = _read(forge, headers, body)
    except ApiProblem as problem:
        with transaction(factory) as session:
            events.remember_refusal(session, forge, f"{problem.status}: {problem.detail}")
        raise
    with transaction(factory) as session:
        answer, taken = events.receive(session, forge, delivered, hint)
        if taken and isinstance(hint, payloads.Hint):
            actor = Actor(name=f"{hint.sender}@{forge.name}"[:200], address=address)
            record(session, actor, AuditAction.RECEIVE_FORGE_EVENT, f"forge/{forge.name}", change=hint.key)
    return ForgeEventAnswer(result=answer)


def _find(data: LiveData, name: str) -> Forge:
    forge = next((each for each in data.current().forges if each.name == name), None)
    if forge is None:
        raise not_found("forge", repr(name[:64]), "the operator lists forges in intake/forges.yaml")
    return forge


def _read(
    forge: Forge, headers: dict[str, str], body: bytes
) -> tuple[verify.Delivered, payloads.Hint | payloads.Ignored]:
    """Check the signature of an event and return what it says. Raises ApiProblem."""
    _check_signature(forge, headers, body)
    try:
        delivered = verify.describe(forge.kind, headers)
        return delivered, payloads.read(forge, delivered.event, _parse(headers, body))
    except verify.NoDelivery as error:
        raise ApiProblem(400, str(error)) from None
    except payloads.Unreadable as error:
        raise ApiProblem(422, str(error)) from None


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
