"""The public API under /api/v1: its endpoints, middleware and OpenAPI document. `app.create_app` installs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import iter_route_contexts
from sqlalchemy import make_url
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware

from wqlab_contracts.api.base import Problem
from wqlab_contracts.api.webhooks import CulpritNotice, DeviceNotice, LabNotice, SubmissionNotice, WebhookTestNotice
from wqlab_contracts.messages import Event

from .accounts import audit_endpoints, session_endpoints, token_endpoints, user_endpoints
from .accounts.oidc import endpoints as oidc_endpoints
from .accounts.oidc.provider import Provider
from .any_comparison import endpoints as any_comparison_endpoints
from .bisections import endpoints as bisection_endpoints
from .builds import endpoints as build_endpoints
from .history import endpoints as history_endpoints
from .http import health_endpoints
from .http.auth import require_reader
from .http.headers import SecurityHeaders
from .http.limits import BodyLimit, RateLimit, SlowResponses
from .http.metrics import LabCollector, Metrics, RequestLatency
from .http.paging import reject_duplicate_params
from .http.sse import Notifications
from .intake import endpoints as intake_endpoints
from .intake import watch_endpoints
from .intake.forges import endpoints as forge_endpoints
from .intake.mailbox import endpoints as command_endpoints
from .lab import endpoints as device_endpoints
from .lab import host_endpoints
from .lab import page_endpoints as lab_page_endpoints
from .outbox import delivery_endpoints, mail_address_endpoints, mail_endpoints, webhook_endpoints
from .outbox import link_endpoints as mail_link_endpoints
from .plans import endpoints as plan_endpoints
from .reports import bundle_endpoints, link_endpoints
from .reports import endpoints as report_endpoints
from .retention import endpoints as storage_endpoints
from .runs import endpoints as run_endpoints
from .series import endpoints as series_endpoints
from .storage.events import (
    CHECK_CHANNEL,
    JOB_CHANNEL,
    RUN_CHANNEL,
    SUBMISSION_CHANNEL,
)
from .submissions import endpoints as submission_endpoints
from .submissions import page_endpoints as submission_page_endpoints
from .submissions import quote_endpoints, touches_endpoints

PREFIX = "/api/v1"
PUBLIC_READING = "x-public-reading"
"""Key of an operation that visitors may use where the lab allows public reading (`Settings.public_reading`)."""
_DESCRIPTION = f"""\
An operation with `{PUBLIC_READING}: true` needs no credentials where the lab allows public reading; in such a lab's own
document, `/openapi.json`, its `security` contains `{{}}`. A 422 lists the mistakes of a request. Most of them are
violations of the schemas here; where an operation has rules that a schema cannot state, its 422 names them.
"""
_REFERENCED_MODELS = (Problem, Event, SubmissionNotice, CulpritNotice, DeviceNotice, LabNotice, WebhookTestNotice)
"""Models that the OpenAPI document has although no endpoint returns them as JSON: it refers to them, or they are the
bodies of webhooks."""


def include_in(router: APIRouter) -> None:
    """Add the endpoints of /api/v1, /r, /healthz, /readyz and /metrics."""
    api = APIRouter(prefix=PREFIX, dependencies=[Depends(reject_duplicate_params)])
    for endpoints in (
        submission_endpoints,
        submission_page_endpoints,
        quote_endpoints,
        touches_endpoints,
        series_endpoints,
        intake_endpoints,
        forge_endpoints,
        watch_endpoints,
        history_endpoints,
        bisection_endpoints,
        any_comparison_endpoints,
        report_endpoints,
        bundle_endpoints,
        build_endpoints,
        run_endpoints,
        device_endpoints,
        lab_page_endpoints,
        host_endpoints,
        storage_endpoints,
        plan_endpoints,
        webhook_endpoints,
        delivery_endpoints,
        mail_endpoints,
        mail_address_endpoints,
        mail_link_endpoints,
        command_endpoints,
        session_endpoints,
        oidc_endpoints,
        token_endpoints,
        user_endpoints,
        audit_endpoints,
    ):
        api.include_router(endpoints.router)
    for included in (api, link_endpoints.router, health_endpoints.router):
        router.include_router(included)


def install(app: FastAPI) -> None:
    """Set the application state that the endpoints use, and add the middleware."""
    app.state.metrics = Metrics()
    app.state.metrics.registry.register(LabCollector(app.state.sessions, app.state.store))
    channels = [
        *(SUBMISSION_CHANNEL, RUN_CHANNEL, CHECK_CHANNEL, JOB_CHANNEL),
    ]
    app.state.notifications = Notifications(_libpq(app.state.settings.database_url), channels)
    app.state.slow_responses = SlowResponses()
    app.state.oidc = Provider.of(app.state.settings)
    app.add_middleware(
        GZipMiddleware,
        minimum_size=1000,
        compresslevel=5,
        exclude_content_types=(*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/octet-stream"),
    )
    app.add_middleware(BodyLimit, artifact_limit=app.state.settings.artifact_limit)
    app.add_middleware(RateLimit)
    app.add_middleware(SecurityHeaders, https=app.state.settings.https)
    app.add_middleware(RequestLatency, metrics=app.state.metrics)
    app.openapi = lambda: openapi(app)  # type: ignore[method-assign]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Keep the process's LISTEN connection open while the application runs."""
    notifications: Notifications = app.state.notifications
    await notifications.start()
    try:
        yield
    finally:
        await notifications.stop()


def openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document of the public API; the worker API is not part of it."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            description=_DESCRIPTION,
            routes=app.routes,
            openapi_version="3.1.0",
        )
        known = schema["components"]["schemas"]
        for model in _REFERENCED_MODELS:
            own = model.model_json_schema(ref_template="#/components/schemas/{model}")
            known |= own.pop("$defs", {}) | {model.__name__: own}
        schema["components"]["schemas"] = dict(sorted(known.items()))
        _mark_public_operations(app, schema)
        app.openapi_schema = schema
    return app.openapi_schema


def _mark_public_operations(app: FastAPI, schema: dict[str, Any]) -> None:
    """Mark the operations that visitors may use where the lab allows public reading, and allow it if this lab does."""
    public_reading: bool = app.state.settings.public_reading
    for route in iter_route_contexts(app.routes):
        method = ",".join(route.methods or ()).lower()
        operation = schema["paths"].get(route.path, {}).get(method)
        if operation is None:
            continue
        if any(dependency.call is require_reader for dependency in route.dependant.dependencies):
            operation[PUBLIC_READING] = True
            if public_reading:
                operation["security"].append({})


def _libpq(url: str) -> str:
    """Convert an SQLAlchemy URL to a libpq connection URI."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
