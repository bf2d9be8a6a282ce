"""What users ask for, and the stream of what becomes of it."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from pydantic import Field, field_validator

from ..enums import EventKind
from ..specs import Name
from .base import Message


class GitSeries(Message):
    url: str
    ref: str
    base: str | None = None


class MboxSeries(Message):
    text: str = Field(max_length=20_000_000)

    @field_validator("text", mode="before")
    @classmethod
    def _is_text(cls, value: object) -> object:
        """Raises ValueError: a patch is never altered, not even where it could not be kept."""
        if isinstance(value, str) and "\0" in value:
            raise ValueError(f"a NUL byte at character {value.index(chr(0))}: patches are text; use git format-patch")
        return value


class Series(Message):
    """Exactly one of the two."""

    git: GitSeries | None = None
    mbox: MboxSeries | None = None


class Target(Message):
    plan: Name
    device_type: Name
    scenarios: list[Name] | None = None
    """Scenarios to measure instead of all of the plan's."""
    settings: list[str] | None = None
    """Canonical settings to measure instead of the plan's default."""
    parameters: dict[str, str | int | float] = Field(default_factory=dict)
    """Over the profile's parameters."""


class Event(Message):
    """One entry of a submission's event stream; `seq` counts per submission from 1."""

    seq: int
    at: datetime
    kind: EventKind
    build_id: int | None = None
    run_id: int | None = None
    boot_id: int | None = None
    data: dict[str, Any] = Field(default_factory=dict)


_SUBJECT_PREFIX = re.compile(r"^\s*(?:\[[^\]]*\]\s*|(?:re|fwd?):\s*)+", re.IGNORECASE)


def normalised_subject(subject: str) -> str:
    """A patch subject without `[PATCH v2 0/3]` and `Re:`, folded: the same for every version of a series."""
    return " ".join(_SUBJECT_PREFIX.sub("", subject).split()).casefold()
