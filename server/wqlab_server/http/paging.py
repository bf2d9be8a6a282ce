"""Cursor pagination: newest first by id, so that new rows never shift a page that someone is reading."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Depends, Path, Query, Request
from pydantic import WithJsonSchema

from .problems import ApiProblem, invalid

MAX_ID = 2**31 - 1
PAGE_DEFAULT = 50
PAGE_MAX = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ID_CURSOR = re.compile(r"[1-9][0-9]{0,9}")
_KEY_CURSOR = re.compile(r"[0-9]{1,16}-[0-9]{1,10}-[0-9]{1,10}")
_IdCursor = Annotated[str, WithJsonSchema({"type": "string", "pattern": f"^{_ID_CURSOR.pattern}$"})]
_KeyCursor = Annotated[str, WithJsonSchema({"type": "string", "pattern": f"^{_KEY_CURSOR.pattern}$"})]
"""The OpenAPI document has the patterns; every match is a valid cursor."""

Id = Annotated[int, Path(ge=1, le=MAX_ID)]
Limit = Annotated[int, Query(ge=1, le=PAGE_MAX, description="Maximum number of items on the page")]


def encode_cursor(last_id: int) -> str:
    """Return the cursor of the page after the row `last_id`. It is opaque to clients."""
    return str(last_id)


def decode_cursor(cursor: str) -> int:
    """Return the id in a cursor of `encode_cursor`. Raises ApiProblem 422 if the cursor is invalid."""
    if not _ID_CURSOR.fullmatch(cursor):
        raise _invalid_cursor()
    return min(int(cursor), MAX_ID)


Key = tuple[datetime, int, int]
"""Position in an order by time: (time, id, number)."""


def encode_key(key: Key) -> str:
    """Encode a position in an order by time as a cursor: microseconds since 1970, id, number."""
    at, id_, number = key
    return f"{(at - _EPOCH) // timedelta(microseconds=1)}-{id_}-{number}"


def decode_key(cursor: str) -> Key:
    """Return the position in a cursor of `encode_key`. Raises ApiProblem 422 if the cursor is invalid."""
    if not _KEY_CURSOR.fullmatch(cursor):
        raise _invalid_cursor()
    at, id_, number = map(int, cursor.split("-"))
    return _EPOCH + timedelta(microseconds=at), min(id_, MAX_ID), min(number, MAX_ID)


def _invalid_cursor() -> ApiProblem:
    detail = "invalid cursor; pass the `next` of a page unchanged, or leave it out for the first page"
    return ApiProblem(422, detail, errors=[{"parameter": "cursor", "in": "query", "detail": detail}])


def _after(
    cursor: Annotated[_KeyCursor | None, Query(description="`next` of the previous page")] = None,
) -> Key | None:
    return None if cursor is None else decode_key(cursor)


After = Annotated[Key | None, Depends(_after)]
"""The key after which the page starts; None for the first page."""


def _before(
    cursor: Annotated[_IdCursor | None, Query(description="`next` of the previous page")] = None,
) -> int | None:
    return None if cursor is None else decode_cursor(cursor)


Before = Annotated[int | None, Depends(_before)]
"""The id before which the page starts; None for the first page."""


def reject_duplicate_params(request: Request) -> None:
    """FastAPI dependency that raises ApiProblem 422 if a query parameter is given more than once.

    Otherwise one of the values would be ignored without notice.
    """
    names = [name for name, _ in request.query_params.multi_items()]
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise invalid(
            [{"parameter": name, "in": "query", "detail": f"{name!r} is given more than once"} for name in duplicates]
        )


NO_NUL = r"^[^\x00]*$"
"""Pattern of a text without NUL, which PostgreSQL cannot store."""


def plain_text(parameter: str, text: str, where: str = "query") -> str:
    """Return `text`. Raises ApiProblem 422 if it contains a NUL byte, which PostgreSQL cannot store."""
    if "\0" in text:
        detail = f"{parameter} contains a NUL byte"
        key = {"pointer": f"/{parameter}"} if where == "body" else {"parameter": parameter, "in": where}
        raise ApiProblem(422, detail, errors=[{**key, "detail": detail}])
    return text
