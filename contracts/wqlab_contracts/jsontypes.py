"""Types of request fields that accept exactly what their JSON schema describes.

Pydantic also converts other types: `false` and `"5"` to a number, `0` to a boolean, `0.5` to a time in 1970. Such a
value in a request is a mistake, which these types refuse.
"""

from __future__ import annotations

import re
from datetime import datetime, time
from typing import Annotated, Any

from pydantic import AwareDatetime, BeforeValidator, StrictBool, WithJsonSchema

JsonBool = StrictBool
"""Boolean that is refused if the JSON value is a number or a string."""


def _refuse_other_than_number(value: Any) -> Any:
    if isinstance(value, bool | str | bytes):
        raise ValueError("must be a number, without quotes")  # noqa: TRY004 - Pydantic collects only ValueError
    return value


JSON_NUMBER = BeforeValidator(_refuse_other_than_number)
"""For `Annotated[int, Field(ge=1), JSON_NUMBER] | None`: a constraint must come first, or the schema loses it."""
JsonInt = Annotated[int, JSON_NUMBER]
"""Integer that is refused if the JSON value is a string or a boolean."""
JsonFloat = Annotated[float, JSON_NUMBER]
"""Number that is refused if the JSON value is a string or a boolean."""

_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:?\d\d)?", re.ASCII)


def _refuse_other_than_time(value: Any) -> Any:
    if isinstance(value, datetime) or (isinstance(value, str) and _TIME.fullmatch(value)):
        return value
    raise ValueError("must be a date and time, such as 2026-01-31T12:00:00Z")


JsonTime = Annotated[datetime, BeforeValidator(_refuse_other_than_time)]
"""A date and time; in RFC 3339 with an offset, without one in UTC."""
JsonAwareTime = Annotated[AwareDatetime, BeforeValidator(_refuse_other_than_time)]
"""A date and time with an offset (RFC 3339)."""

_CLOCK_PATTERN = r"^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?(Z|\+00:00)?$"
_CLOCK = re.compile(_CLOCK_PATTERN)


def _refuse_other_than_clock(value: Any) -> Any:
    if isinstance(value, time) and not value.utcoffset():
        return value.replace(tzinfo=None)
    if isinstance(value, str) and _CLOCK.fullmatch(value):
        return value.removesuffix("Z").removesuffix("+00:00")
    raise ValueError("must be a time of day in UTC, such as 22:00")


JsonUtcClock = Annotated[
    time,
    BeforeValidator(_refuse_other_than_clock),
    WithJsonSchema({"type": "string", "pattern": _CLOCK_PATTERN, "examples": ["22:00"]}),
]
"""A time of day in UTC, without a zone: JSON schema's `time` has an offset."""
