"""Cursor pagination: newest first by id, so that new rows never shift a page that someone is reading."""

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
Limit = Annotated[int, Query(ge=1, le=PAGE_MAX, description="Maximum number of items on the page")]


def encode_cursor(last_id: int) -> str:
    """Encode the id of a page's last row as a cursor, which is opaque to clients."""
    return base64.urlsafe_b64encode(f"before:{last_id}".encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> int:
    """Return the id in a cursor of `encode_cursor`. Raises ApiProblem 422 if the cursor is invalid."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        word, _, number = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii").partition(":")
        last_id = int(number) if number.isascii() and number.isdigit() and len(number) < 11 else 0
    except (binascii.Error, UnicodeError, ValueError):
        word, last_id = "", 0
    if word != "before" or not 1 <= last_id <= MAX_ID:
        raise _invalid_cursor()
    return last_id


Key = tuple[datetime, int, int]
"""Position in an order by time: (time, id, number)."""


def encode_key(key: Key) -> str:
    """Encode a position in an order by time as a cursor."""
    at, id_, number = key
    return base64.urlsafe_b64encode(f"{at.isoformat()}|{id_}|{number}".encode()).decode().rstrip("=")


def decode_key(cursor: str) -> Key:
    """Return the position in a cursor of `encode_key`. Raises ApiProblem 422 if the cursor is invalid."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        at, id_, number = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii").split("|")
        key = (datetime.fromisoformat(at), int(id_), int(number))
        if key[0].tzinfo is not None and 0 < key[1] <= MAX_ID and 0 <= key[2] <= MAX_ID:
            return key
    except (binascii.Error, UnicodeError, ValueError):
        pass
    raise _invalid_cursor()


def _invalid_cursor() -> ApiProblem:
    detail = "invalid cursor; pass the `next` of a page unchanged, or leave it out for the first page"
    return ApiProblem(422, detail, errors=[{"parameter": "cursor", "in": "query", "detail": detail}])


def _after(
    cursor: Annotated[str | None, Query(max_length=100, description="`next` of the previous page")] = None,
) -> Key | None:
    return None if cursor is None else decode_key(cursor)


After = Annotated[Key | None, Depends(_after)]
"""The key after which the page starts; None for the first page."""


def _before(
    cursor: Annotated[str | None, Query(max_length=100, description="`next` of the previous page")] = None,
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


def plain_text(parameter: str, text: str, where: str = "query") -> str:
    """Return `text`. Raises ApiProblem 422 if it contains a NUL byte, which PostgreSQL cannot store."""
    if "\0" in text:
        detail = f"{parameter} contains a NUL byte"
        key = {"pointer": f"/{parameter}"} if where == "body" else {"parameter": parameter, "in": where}
        raise ApiProblem(422, detail, errors=[{**key, "detail": detail}])
    return text
