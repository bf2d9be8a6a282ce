"""Whether the process lives, whether it can work, and what a monitoring system draws. No token needed, no secrets."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory
from fastapi import APIRouter, Request, Response, status
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, Field
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from wqlab_contracts.loading import DataError

from ..storage import broker
from ..storage.artifacts import ArtifactStore, StoreUnavailable
from ..storage.db import SessionFactory
from .deps import AppSettings, Data, Store

router = APIRouter(tags=["health"])


class Health(BaseModel):
    status: str


class Check(BaseModel):
    ok: bool
    detail: str = ""
    """What is wrong and what to do; empty when nothing is."""
    problems: list[str] = Field(default_factory=list)
    """Mistakes in files that do not stop the lab: the last good content stays in use."""


class Readiness(BaseModel):
    ready: bool
    checks: dict[str, Check]


@router.get("/healthz")
async def healthz() -> Health:
    """The process answers."""
    return Health(status="ok")


@router.get("/readyz", response_model=Readiness, responses={503: {"model": Readiness, "description": "Not ready"}})
def readyz(request: Request, settings: AppSettings, data: Data, store: Store) -> Response:
    """The process can do its work: database reachable and migrated, broker and artifact store
    reachable, data folder loaded."""
    checks = {
        "database": _database(request.app.state.sessions),
        "migrations": _migrations(request.app.state.sessions),
        "broker": _broker(settings.broker_url),
        "data_folder": _data_folder(data),
        "artifacts": _artifacts(store),
    }
    ready = all(check.ok for check in checks.values())
    body = Readiness(ready=ready, checks=checks).model_dump()
    return JSONResponse(body, status.HTTP_200_OK if ready else status.HTTP_503_SERVICE_UNAVAILABLE)


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(request: Request) -> Response:
    """Prometheus exposition format."""
    return Response(request.app.state.metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _database(sessions: SessionFactory) -> Check:
    try:
        with sessions() as session:
            session.execute(text("select 1"))
    except SQLAlchemyError as error:
        return Check(ok=False, detail=f"not reachable: {_first_line(error)}")
    return Check(ok=True)


def _migrations(sessions: SessionFactory) -> Check:
    try:
        with sessions() as session:
            found = set(session.scalars(text("select version_num from alembic_version")))
    except SQLAlchemyError as error:
        return Check(ok=False, detail=f"no version table; run `wqlab-server migrate` ({_first_line(error)})")
    wanted = _heads()
    if found == wanted:
        return Check(ok=True)
    at, want = ", ".join(sorted(found)) or "nothing", ", ".join(sorted(wanted))
    return Check(ok=False, detail=f"the database is at {at}, this server needs {want}; run `wqlab-server migrate`")


@lru_cache(maxsize=1)
def _heads() -> frozenset[str]:
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
        detail = "it has mistakes and there is no earlier good content"
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
