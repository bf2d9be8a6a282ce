"""Errors of the HTTP API as RFC 9457 problem details.

Code below the endpoints raises `ApiProblem` (or FastAPI's own exceptions); the handlers that `install` registers turn
all of them, validation errors and unhandled exceptions included, into `application/problem+json`. A validation problem
lists every mistake of a request at once, each with a JSON pointer into the body or the name of the parameter.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import iter_route_contexts
from sqlalchemy.exc import DataError, OperationalError
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from wqlab_contracts.api.base import Problem

from ..storage.artifacts import StoreFull, StoreUnavailable
from ..wait import QuotaUsedUp, Wait
from .audit import record_noted_refusal

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:wqlab:problem:"
SCHEMA_REF = {"$ref": "#/components/schemas/Problem"}

log = structlog.get_logger(__name__)

_DISK_FULL = "53100"
"""SQLSTATE of PostgreSQL without disk space."""

_SLUGS = {
    400: "bad-request",
    401: "unauthenticated",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    406: "not-acceptable",
    409: "conflict",
    410: "deleted",
    411: "length-required",
    413: "too-large",
    415: "unsupported-media-type",
    416: "range-not-satisfiable",
    422: "invalid-request",
    429: "too-many-requests",
    500: "internal",
    502: "bad-gateway",
    503: "unavailable",
    507: "insufficient-storage",
}


class ApiProblem(Exception):
    """Exception that ends a request with the HTTP status `status`.

    Each item of `errors` has `pointer` (JSON pointer into the body) or `parameter`, and `detail`: the mistake and how
    to fix it.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        slug: str | None = None,
        errors: Sequence[Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.slug = slug or _SLUGS.get(status, "error")
        self.errors = [dict(error) for error in errors]
        self.headers = dict(headers or {})

    @property
    def text(self) -> str:
        """The mistakes that the problem lists, each with its place, or its detail."""
        mistakes = [f"{error.get('pointer', '')}: {error['detail']}" for error in self.errors if "detail" in error]
        return "; ".join(mistakes) or self.detail


def not_found(kind: str, name: object, hint: str = "") -> ApiProblem:
    """Return a 404 problem for a missing `kind` of resource named `name`, with an optional hint."""
    return ApiProblem(404, f"no {kind} {name}{f'; {hint}' if hint else ''}")


def invalid(errors: Sequence[Mapping[str, str]]) -> ApiProblem:
    """Return a 422 problem that lists every mistake of a well-formed but invalid request."""
    return ApiProblem(422, _summary([error["detail"] for error in errors]), errors=errors)


def response(problem: ApiProblem) -> Response:
    """Return the response of a problem, as application/problem+json."""
    body = Problem(
        type=TYPE_PREFIX + problem.slug,
        title=HTTPStatus(problem.status).phrase,
        status=problem.status,
        detail=problem.detail,
        errors=problem.errors,
    )
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **problem.headers}
    if problem.status == 401:
        headers.setdefault("WWW-Authenticate", "Bearer")
    return JSONResponse(body.model_dump(), problem.status, headers, media_type=MEDIA_TYPE)


def documented(*statuses: int, rules: str = "") -> dict[int | str, dict[str, Any]]:
    """Return the `responses=` argument of a route that may answer with these statuses, each a problem document.

    `rules` are conditions of a valid request that its schema cannot state; they become the description of 422.
    """
    if rules:
        return documented(*statuses) | {
            422: {"description": f"Violates the schema, or: {rules}", "content": {MEDIA_TYPE: {"schema": SCHEMA_REF}}}
        }
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": SCHEMA_REF}}}
        for status in statuses
    }


def install(app: FastAPI) -> None:
    """Register handlers on `app`, so that every error response is a problem document."""
    app.add_exception_handler(ApiProblem, _on_problem)
    app.add_exception_handler(Wait, _on_wait)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(DataError, _on_unstorable)
    app.add_exception_handler(StoreFull, _on_full)
    app.add_exception_handler(StoreUnavailable, _on_unavailable)
    app.add_exception_handler(OperationalError, _on_database_error)
    app.add_exception_handler(Exception, _on_crash)


async def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiProblem)  # noqa: S101 - registered for this class only
    await record_noted_refusal(request)
    return response(error)


async def _on_wait(request: Request, error: Exception) -> Response:
    assert isinstance(error, Wait)  # noqa: S101
    await record_noted_refusal(request)
    pause_s = 60.0 if error.pause is None else error.pause.total_seconds()
    problem = ApiProblem(429, str(error), headers={"Retry-After": str(max(1, round(pause_s)))})
    if isinstance(error, QuotaUsedUp):
        problem.slug, problem.errors = "quota", [dict(each) for each in error.errors]
    return response(problem)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    detail = error.detail
    if error.status_code == 404 and detail == "Not Found":
        detail = f"no resource {request.url.path}"
    if error.status_code < 400:
        return Response(status_code=error.status_code, headers=error.headers)
    if error.status_code == 405:
        allowed = ", ".join(_allowed_methods(request))
        detail = f"{request.url.path} has no method {request.method[:20]}; it has {allowed}"
        return response(ApiProblem(405, detail, headers={"Allow": allowed}))
    return response(ApiProblem(error.status_code, str(detail), headers=error.headers))


def _allowed_methods(request: Request) -> list[str]:
    """Return the methods of the request's path, of all its routes; Starlette's own `Allow` has those of the first.

    As in OpenAPI, a fixed path such as /labs/ca takes precedence over a template such as /labs/{lab}.
    """
    methods: dict[str, set[str]] = {}
    for route in iter_route_contexts(request.app.routes):
        if route.path is not None and _pattern(route.path).match(request.url.path):
            methods.setdefault(route.path, set()).update(route.methods or ())
    return sorted(next(iter(methods.values()), set()))


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return compile_path(path)[0]


async def _on_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    field = getattr(request.scope.get("route"), "body_field", None)
    tagged = getattr(getattr(field, "field_info", None), "discriminator", None)
    errors = [_field_error(each, tagged) for each in error.errors()]
    if any(each["type"] == "json_invalid" for each in error.errors()):
        return response(ApiProblem(400, f"the body is not JSON: {errors[0]['detail']}", errors=errors))
    return response(invalid(errors))


async def _on_unstorable(request: Request, error: Exception) -> Response:
    """Answer 422 for a value that no column can hold (a NUL byte, a number out of range).

    The request is wrong and repeating it would not help, so the answer must not be a 5xx.
    """
    assert isinstance(error, DataError)  # noqa: S101
    reason = str(error.orig).splitlines()[0] if str(error.orig) else type(error.orig).__name__
    log.warning("request_unstorable", path=request.url.path, method=request.method, error=reason)
    return response(ApiProblem(422, f"the request contains a value that cannot be stored: {reason}"))


async def _on_unavailable(request: Request, error: Exception) -> Response:
    log.error("store_unavailable", path=request.url.path, method=request.method, error=str(error))
    return response(ApiProblem(503, f"{error}; try again later", headers={"Retry-After": "5"}))


async def _on_full(request: Request, error: Exception) -> Response:
    """Answer 507: the request is right, and can be repeated once retention or an operator has made space."""
    log.error("store_full", path=request.url.path, method=request.method, error=str(error))
    detail = f"{error}; try again once there is space (`wqlab-lab storage` lists what uses it)"
    return response(ApiProblem(507, detail, headers={"Retry-After": "30"}))


async def _on_database_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, OperationalError)  # noqa: S101
    if getattr(error.orig, "sqlstate", None) == _DISK_FULL:
        return await _on_full(request, StoreFull("the volume of the database is full"))
    raise error


async def _on_crash(request: Request, error: Exception) -> Response:
    # Plain text: a formatter that shows local variables would take seconds and write tokens into the log.
    text = "".join(traceback.format_exception(error))
    log.error("request_crashed", path=request.url.path, method=request.method, traceback=text)
    return response(ApiProblem(500, "internal server error; the server's log has the details"))


def _field_error(error: Mapping[str, Any], tag: str | None) -> dict[str, str]:
    """Return what an error says of a field. `tag`: the field by which a union of bodies is told apart, or None."""
    location, *path = error["loc"] or ("body",)
    detail = _field_message(error)
    if location == "body" and tag is not None:
        # Pydantic puts the tag of the chosen model before the path in it.
        path = path[1:] or ([tag] if error["type"].startswith("union_tag") else [])
    if location == "body":
        return {"pointer": json_pointer(path), "detail": detail}
    return {"parameter": str(path[0]) if path else str(location), "in": str(location), "detail": detail}


def _field_message(error: Mapping[str, Any]) -> str:
    """Return the text of one of Pydantic's validation errors."""
    if error["type"] == "extra_forbidden":
        return f"unknown field {error['loc'][-1]!r}; remove it"
    if error["type"] == "missing":
        return f"{error['loc'][-1]!r} is required"
    if error["type"] == "union_tag_not_found":
        return f"{error['ctx']['discriminator']} is required"
    message = str(error["msg"]).removeprefix("Value error, ")
    shown = repr(error.get("input"))
    return f"{message} (got {shown})" if len(shown) <= 80 else message


def json_pointer(path: Iterable[object]) -> str:
    """Return the JSON pointer (RFC 6901) of `path`, such as `/targets/0/plan`; the empty string is the whole body."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _summary(details: Sequence[str]) -> str:
    if len(details) == 1:
        return details[0]
    return f"{len(details)} mistakes: " + "; ".join(details[:3]) + ("; ..." if len(details) > 3 else "")
