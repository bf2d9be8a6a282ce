"""Liveness, readiness and Prometheus metrics.

Readiness and metrics read the database and the stores at each request, and count what the lab does. They are for this
machine and for tokens.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from alembic.config import Config
from alembic.script import ScriptDirectory
from fastapi import APIRouter, Depends, Request, Response, status
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from wqlab_contracts.loading import DataError
from wqlab_contracts.messages.protocol import release

from ..storage import broker
from ..storage.artifacts import ArtifactStore, StoreUnavailable
from ..storage.db import SessionFactory
from .auth import identify
from .deps import AppSettings, Data, Store
from .limits import slow_responses
from .problems import ApiProblem, documented

router = APIRouter(tags=["health"])


def _check_local_or_known(request: Request) -> None:
    """Raise ApiProblem 401 unless the request comes from this machine or has a valid token or session."""
    if identify(request) is None and not _is_loopback(request):
        raise ApiProblem(401, "from another machine this needs a token of any scope: Authorization: Bearer <token>")


def _is_loopback(request: Request) -> bool:
    """Return True for a program on this machine, and not for whom a proxy on it speaks, declared or not."""
    if any(name in request.headers for name in ("x-forwarded-for", "forwarded")):
        return False
    try:
        return request.client is not None and ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False


LocalOrKnown = Annotated[None, Depends(_check_local_or_known)]


class Health(BaseModel):
    status: str


class Check(BaseModel):
    ok: bool
    detail: str = ""
    """The fault and how to fix it; empty if there is none."""
    problems: list[str] = Field(default_factory=list)
    """Mistakes in data files that do not stop the lab: the last valid content stays in use."""


class Readiness(BaseModel):
    ready: bool
    release: str
    """Installed release of the server, such as `0.2.0`."""
    checks: dict[str, Check]


@router.get("/healthz")
async def healthz() -> Health:
    """Report that the process is alive."""
    return Health(status="ok")


@router.get(
    "/readyz",
    response_model=Readiness,
    responses={503: {"model": Readiness, "description": "Not ready"}, **documented(401, 429)},
)
def readyz(request: Request, settings: AppSettings, data: Data, store: Store, _: LocalOrKnown) -> Response:
    """Report whether the process can serve requests: database reachable and migrated, broker and artifact store
    reachable, data folder loaded. From another machine it needs a token."""
    with slow_responses(request).scrapes.use(request):
        checks = {
            "database": _database(request.app.state.sessions),
            "migrations": _migrations(request.app.state.sessions),
            "broker": _broker(settings.broker_url),
            "data_folder": _data_folder(data),
            "artifacts": _artifacts(store),
        }
    ready = all(check.ok for check in checks.values())
    body = Readiness(ready=ready, release=release(), checks=checks).model_dump()
    return JSONResponse(body, status.HTTP_200_OK if ready else status.HTTP_503_SERVICE_UNAVAILABLE)


@router.get("/metrics", response_class=PlainTextResponse, responses=documented(401, 429, 503))
def metrics(request: Request, _: LocalOrKnown) -> Response:
    """Metrics in the Prometheus exposition format. From another machine it needs a token."""
    with slow_responses(request).scrapes.use(request):
        return Response(request.app.state.metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _database(sessions: SessionFactory) -> Check:
    try:
        with sessions() as session:
            session.execute(text("select 1"))
    except SQLAlchemyError as error:
        return Check(ok=False, detail=f"the database is not reachable: {_first_line(error)}")
    return Check(ok=True)


def _migrations(sessions: SessionFactory) -> Check:
    try:
        with sessions() as session:
            found = set(session.scalars(text("select version_num from alembic_version")))
    except SQLAlchemyError as error:
        return Check(
            ok=False,
            detail=f"the database has no version table; run `wqlab-server migrate` ({_first_line(error)})",
        )
    required = _newest_revisions()
    if found == required:
        return Check(ok=True)
    current, needed = ", ".join(sorted(found)) or "none", ", ".join(sorted(required))
    return Check(
        ok=False,
        detail=f"the database schema is at revision {current}, this server needs {needed}; run `wqlab-server migrate`",
    )


@lru_cache(maxsize=1)
def _newest_revisions() -> frozenset[str]:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parents[1] / "migrations"))
    return frozenset(ScriptDirectory.from_config(config).get_heads())


def _broker(url: str) -> Check:
    try:
        broker.ping(url)
    except broker.BrokerUnavailable as error:
        return Check(ok=False, detail=str(error))
    return Check(ok=True)


def _data_folder(data: Data) -> Check:
    try:
        data.current()
    except DataError as error:
        detail = "the data folder has mistakes and no valid content was loaded before"
        return Check(ok=False, detail=detail, problems=[str(problem) for problem in error.problems])
    return Check(ok=True, problems=data.problems())


def _artifacts(store: ArtifactStore) -> Check:
    try:
        store.check()
    except StoreUnavailable as error:
        return Check(ok=False, detail=str(error))
    return Check(ok=True)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
