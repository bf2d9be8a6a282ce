"""Everything a user reads: installed on the app by `app.create_app`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.openapi.utils import get_openapi
from sqlalchemy import make_url

from wqlab_contracts.api.submissions import Problem
from wqlab_contracts.messages import Event

from .accounts import session_endpoints, token_endpoints, user_endpoints
from .builds import endpoints as builds
from .http import health_endpoints
from .http.headers import SafeAnswers
from .http.limits import BodyLimit, RateLimit
from .http.metrics import LabCollector, Metrics, RequestLatency
from .http.paging import each_once
from .http.sse import Notifications
from .lab import endpoints as lab
from .lab import host_endpoints as lab_hosts
from .lab import page_endpoints as lab_pages
from .plans import endpoints as plans
from .reports import endpoints as reports
from .reports import links
from .runs import endpoints as runs
from .series import endpoints as series
from .storage.events import CHECK_CHANNEL, LOOKUP_CHANNEL, RUN_CHANNEL, SUBMISSION_CHANNEL
from .submissions import endpoints as submissions
from .submissions import page_endpoints as submission_pages
from .submissions import quote_endpoints as quotes

PREFIX = "/api/v1"
_REFERENCED = (Problem, Event)
"""Models that the schema names without an endpoint returning them as JSON."""


def include_in(router: APIRouter) -> None:
    """Adds the endpoints of /api/v1, /r, /healthz, /readyz and /metrics."""
    api = APIRouter(prefix=PREFIX, dependencies=[Depends(each_once)])
    for room in (
        submissions,
        submission_pages,
        quotes,
        series,
        reports,
        builds,
        runs,
        lab,
        lab_pages,
        lab_hosts,
        plans,
        session_endpoints,
        token_endpoints,
        user_endpoints,
    ):
        api.include_router(room.router)
    for included in (api, links.router, health_endpoints.router):
        router.include_router(included)


def install(app: FastAPI) -> None:
    """Adds what the endpoints find in the application's state, and the middleware."""
    app.state.metrics = Metrics()
    app.state.metrics.registry.register(LabCollector(app.state.sessions))
    channels = [SUBMISSION_CHANNEL, RUN_CHANNEL, LOOKUP_CHANNEL, CHECK_CHANNEL]
    app.state.notifications = Notifications(_libpq(app.state.settings.database_url), channels)
    app.add_middleware(BodyLimit)
    app.add_middleware(RateLimit)
    app.add_middleware(SafeAnswers)
    app.add_middleware(RequestLatency, metrics=app.state.metrics)
    app.openapi = lambda: openapi(app)  # type: ignore[method-assign]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Keeps the process's LISTEN connection while the app runs."""
    notifications: Notifications = app.state.notifications
    await notifications.start()
    try:
        yield
    finally:
        await notifications.stop()


def openapi(app: FastAPI) -> dict[str, Any]:
    """The public schema; what workers speak is not in it."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes, openapi_version="3.1.0"
        )
        known = schema["components"]["schemas"]
        for model in _REFERENCED:
            own = model.model_json_schema(ref_template="#/components/schemas/{model}")
            known |= own.pop("$defs", {}) | {model.__name__: own}
        schema["components"]["schemas"] = dict(sorted(known.items()))
        app.openapi_schema = schema
    return app.openapi_schema


def _libpq(url: str) -> str:
    """An SQLAlchemy URL as libpq reads it."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
