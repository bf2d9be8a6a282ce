"""Cursor paging: newest first by id, so that new rows never shift a page that someone is reading."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Path, Query, Request

from .problems import ApiProblem, invalid

MAX_ID = 2**31 - 1
PAGE_DEFAULT = 50
PAGE_MAX = 200

Id = Annotated[int, Path(ge=1, le=MAX_ID)]
Limit = Annotated[int, Query(ge=1, le=PAGE_MAX, description="Longest page")]


def encode_cursor(last_id: int) -> str:
    """Opaque to clients; `last_id` is the id of the last row of the page."""
    return base64.urlsafe_b64encode(f"before:{last_id}".encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> int:
    """Raises ApiProblem 422 for anything `encode_cursor` did not make."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        word, _, number = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii").partition(":")
        last_id = int(number) if number.isascii() and number.isdigit() and len(number) < 11 else 0
    except (binascii.Error, UnicodeError, ValueError):
        word, last_id = "", 0
    if word != "before" or not 1 <= last_id <= MAX_ID:
        raise _not_a_cursor()
    return last_id


Key = tuple[datetime, int, int]
"""Place in an order by time: (when, id, number)."""


def encode_key(key: Key) -> str:
    """A cursor for what is ordered by time."""
    at, id_, number = key
    return base64.urlsafe_b64encode(f"{at.isoformat()}|{id_}|{number}".encode()).decode().rstrip("=")


def decode_key(cursor: str) -> Key:
    """Raises ApiProblem 422 for anything `encode_key` did not make."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        at, id_, number = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii").split("|")
        key = (datetime.fromisoformat(at), int(id_), int(number))
        if key[0].tzinfo is not None and 0 < key[1] <= MAX_ID and 0 <= key[2] <= MAX_ID:
            return key
    except (binascii.Error, UnicodeError, ValueError):
        pass
    raise _not_a_cursor()


def _not_a_cursor() -> ApiProblem:
    detail = "not a cursor of this server; pass a page's `next` unchanged, or leave it out for the first page"
    return ApiProblem(422, detail, errors=[{"parameter": "cursor", "in": "query", "detail": detail}])


def _after(
    cursor: Annotated[str | None, Query(max_length=100, description="`next` of the page before")] = None,
) -> Key | None:
    return None if cursor is None else decode_key(cursor)


After = Annotated[Key | None, Depends(_after)]
"""The key after which the page starts; None for the first page."""


def _before(
    cursor: Annotated[str | None, Query(max_length=100, description="`next` of the page before")] = None,
) -> int | None:
    return None if cursor is None else decode_cursor(cursor)


Before = Annotated[int | None, Depends(_before)]
"""The id before which the page starts; None for the first page."""


def each_once(request: Request) -> None:
    """A dependency: ApiProblem 422 for a query parameter that is given twice, of which one would silently count."""
    names = [name for name, _ in request.query_params.multi_items()]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise invalid(
            [{"parameter": name, "in": "query", "detail": f"{name!r} is given more than once"} for name in twice]
        )


def plain_text(parameter: str, text: str, where: str = "query") -> str:
    """`text` when a database can hold it; ApiProblem 422 when it has NUL bytes."""
    if "\0" in text:
        detail = f"{parameter} holds a NUL byte"
        key = {"pointer": f"/{parameter}"} if where == "body" else {"parameter": parameter, "in": where}
        raise ApiProblem(422, detail, errors=[{**key, "detail": detail}])
    return text
