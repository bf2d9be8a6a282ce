"""Create the HTTP application. `app.state` holds settings, sessions, data (live data folder), store, kinds of jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from . import public_api, worker_api
from .http import problems, static_pages
from .pipeline.job_kinds import KINDS
from .settings import Settings
from .settings import settings as process_settings
from .storage.artifacts import ArtifactStore
from .storage.celery_client import Sender, celery_app
from .storage.db import SessionFactory, make_engine, make_factory
from .storage.live_data import LiveData


def create_app(settings: Settings | None = None, sessions: SessionFactory | None = None) -> FastAPI:
    """Create the application. `settings` default to the process's own. Importing this module opens no connection."""
    settings = settings or process_settings()
    app = FastAPI(
        title="wqlab",
        version="1",
        summary="A test lab for Linux workqueue and scheduler patches",
        docs_url=None,  # the API reference is a page of the documentation: http/static_pages.py
        redoc_url=None,
        lifespan=_lifespan,
        routes=_routes(),
    )
    app.state.settings = settings
    app.state.sessions = sessions or make_factory(
        make_engine(settings.database_url), Sender(celery_app(settings.broker_url))
    )
    app.state.data = LiveData(settings.data_dir)
    app.state.store = ArtifactStore.of(settings)
    app.state.kinds = KINDS
    problems.install(app)
    public_api.install(app)
    static_pages.install(app)
    return app


@cache
def _routes() -> list[BaseRoute]:
    """Return the routes, shared by every application: FastAPI needs a quarter of a second to analyse the endpoints."""
    router = APIRouter(generate_unique_id_function=_operation_id)
    public_api.include_in(router)
    router.include_router(worker_api.router)
    return router.routes


def _operation_id(route: APIRoute) -> str:
    """Return the endpoint function's name as operation id: it is stable and names the methods of generated clients."""
    return route.name


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with public_api.lifespan(app):
        yield
