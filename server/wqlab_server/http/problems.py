"""Every error of the HTTP API as RFC 9457 problem details.

Code below the endpoints raises `ApiProblem` (or FastAPI's own exceptions); `install` turns all of them, validation
errors and crashes included, into `application/problem+json`. A validation problem lists every mistake of a request at
once, each with a JSON pointer into the body or the name of the parameter.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from sqlalchemy.exc import DataError
from starlette.exceptions import HTTPException

from wqlab_contracts.api.submissions import Problem

from ..storage.artifacts import StoreUnavailable

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:wqlab:problem:"
SCHEMA_REF = {"$ref": "#/components/schemas/Problem"}

log = structlog.get_logger(__name__)

_SLUGS = {
    400: "bad-request",
    401: "unauthenticated",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    406: "not-acceptable",
    409: "conflict",
    411: "length-required",
    413: "too-large",
    415: "unsupported-media-type",
    416: "range-not-satisfiable",
    422: "invalid-request",
    429: "too-many-requests",
    500: "internal",
    503: "unavailable",
}


class ApiProblem(Exception):
    """Ends a request with `status`. `errors` items carry `pointer` (JSON pointer into the body) or `parameter`, and
    `detail`, which says what is wrong and how to fix it."""

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


def not_found(what: str, name: object, hint: str = "") -> ApiProblem:
    return ApiProblem(404, f"no {what} {name}{f'; {hint}' if hint else ''}")


def invalid(errors: Sequence[Mapping[str, str]]) -> ApiProblem:
    """A request that is well-formed JSON but asks for something that cannot be: 422 with every mistake."""
    return ApiProblem(422, _summary([error["detail"] for error in errors]), errors=errors)


def response(problem: ApiProblem) -> Response:
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


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses=` of a route: these statuses, each a problem document."""
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": SCHEMA_REF}}}
        for status in statuses
    }


def install(app: FastAPI) -> None:
    """Registers the handlers on `app`; nothing it answers with an error status has another shape afterwards."""
    app.add_exception_handler(ApiProblem, _on_problem)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(DataError, _on_unstorable)
    app.add_exception_handler(StoreUnavailable, _on_unavailable)
    app.add_exception_handler(Exception, _on_crash)


async def _on_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, ApiProblem)  # noqa: S101 - registered for this class only
    return response(error)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    detail = error.detail
    if error.status_code == 404 and detail == "Not Found":
        detail = f"no resource {request.url.path}"
    if error.status_code < 400:
        return Response(status_code=error.status_code, headers=error.headers)
    return response(ApiProblem(error.status_code, str(detail), headers=error.headers))


async def _on_validation_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    errors = [_field_error(each) for each in error.errors()]
    if any(each["type"] == "json_invalid" for each in error.errors()):
        return response(ApiProblem(400, f"the body is not JSON: {errors[0]['detail']}", errors=errors))
    return response(invalid(errors))


async def _on_unstorable(request: Request, error: Exception) -> Response:
    """A value that no column can hold (a NUL byte, a number out of range): the request's mistake, and asking again
    would not help, so it must not look like a failure of the server."""
    assert isinstance(error, DataError)  # noqa: S101
    why = str(error.orig).splitlines()[0] if str(error.orig) else type(error.orig).__name__
    log.warning("request_unstorable", path=request.url.path, method=request.method, error=why)
    return response(ApiProblem(422, f"the request holds a value that cannot be stored: {why}"))


async def _on_unavailable(request: Request, error: Exception) -> Response:
    log.error("store_unavailable", path=request.url.path, method=request.method, error=str(error))
    return response(ApiProblem(503, f"{error}; ask again", headers={"Retry-After": "5"}))


async def _on_crash(request: Request, error: Exception) -> Response:
    # As plain text: a renderer that shows local variables would take seconds and write tokens into the log.
    text = "".join(traceback.format_exception(error))
    log.error("request_crashed", path=request.url.path, method=request.method, traceback=text)
    return response(ApiProblem(500, "the server failed to answer this request; its log says why"))


def _field_error(error: Mapping[str, Any]) -> dict[str, str]:
    place, *path = error["loc"] or ("body",)
    detail = _words(error)
    if place == "body":
        return {"pointer": json_pointer(path), "detail": detail}
    return {"parameter": str(path[0]) if path else str(place), "in": str(place), "detail": detail}


def _words(error: Mapping[str, Any]) -> str:
    if error["type"] == "extra_forbidden":
        return f"unknown field {error['loc'][-1]!r}; remove it"
    if error["type"] == "missing":
        return f"{error['loc'][-1]!r} is required"
    message = str(error["msg"]).removeprefix("Value error, ")
    shown = repr(error.get("input"))
    return f"{message} (got {shown})" if len(shown) <= 80 else message


def json_pointer(path: Iterable[object]) -> str:
    """RFC 6901: `/targets/0/plan`; the empty string is the whole body."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _summary(details: Sequence[str]) -> str:
    if len(details) == 1:
        return details[0]
    return f"{len(details)} mistakes: " + "; ".join(details[:3]) + ("; ..." if len(details) > 3 else "")
