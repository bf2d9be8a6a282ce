"""One check of a replay: what the report says against what the bundle's records give."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import BaseModel

RELATIVE_TOLERANCE = 1e-9
"""Figures may differ by this much: libraries and processors round differently."""
_SHOWN_LENGTH = 160


class Result(StrEnum):
    AGREES = "agrees"
    DIFFERS = "differs"
    UNCHECKED = "unchecked"


@dataclass(frozen=True)
class Check:
    """One comparison of the report with what the bundle's records give."""

    target: str
    """Plan and device type, or empty for the whole submission."""
    subject: str
    result: Result
    text: str
    """The agreed verdict, or how the two differ."""


def check(target: str, subject: str, reported: tuple[object, ...], derived: tuple[object, ...]) -> Check:
    """Compare each part of the report with the value computed from the records."""
    if reported == derived:
        return Check(target, subject, Result.AGREES, ": ".join(map(shown, derived)))
    pairs = [(one, other) for one, other in zip(reported, derived, strict=True) if one != other]
    text = "; ".join(f"report says {shown(one)}, samples give {shown(other)}" for one, other in pairs)
    return Check(target, subject, Result.DIFFERS, text)


def from_problems(target: str, subject: str, problems: Sequence[str], text: str) -> Check:
    """Return a check that differs with the first problems as its text, or agrees with `text` if there is none."""
    if not problems:
        return Check(target, subject, Result.AGREES, text)
    more = f"; {len(problems) - 3} more" if len(problems) > 3 else ""
    return Check(target, subject, Result.DIFFERS, "; ".join(problems[:3]) + more)


def shown(value: object) -> str:
    """Format a value for a message, shortened."""
    text = "none" if value is None else f"{value:.9g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _SHOWN_LENGTH else text[:_SHOWN_LENGTH] + "..."


def differences(name: str, reported: object, derived: object) -> Iterator[str]:
    """Yield `NAME: report says X, samples give Y` for each field that differs; floats may differ by rounding."""
    if isinstance(reported, BaseModel) and isinstance(derived, BaseModel):
        for field_name in type(derived).model_fields:
            inner = f"{name} {field_name}".strip()
            yield from differences(inner, getattr(reported, field_name, None), getattr(derived, field_name))
        return
    if isinstance(reported, list) and isinstance(derived, list) and len(reported) == len(derived):
        for number, pair in enumerate(zip(reported, derived, strict=True), start=1):
            yield from differences(f"{name} {number}", *pair)
        return
    if not equal(reported, derived):
        yield f"{name}: report says {shown(reported)}, samples give {shown(derived)}"


def equal(reported: object, derived: object) -> bool:
    """Return True for equal values; numbers may differ by RELATIVE_TOLERANCE."""
    if isinstance(reported, int | float) and isinstance(derived, int | float):
        return math.isclose(reported, derived, rel_tol=RELATIVE_TOLERANCE, abs_tol=1e-12)
    if isinstance(reported, tuple) and isinstance(derived, tuple):
        return len(reported) == len(derived) and all(map(equal, reported, derived))
    return reported == derived
