"""What every message has in common, and the parts that several are made of."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from ..enums import ArtifactKind, ErrorKind

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
GitObject = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
EXCERPT_LIMIT = 16_384
"""Longest excerpt (characters) of a log that travels inside a message; the whole log is an artifact."""


class Message(BaseModel):
    """Texts may come from a device, which can print any byte; the NUL, which PostgreSQL cannot hold, becomes U+FFFD."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*")
    @classmethod
    def _holds_no_nul(cls, value: Any) -> Any:
        return _without_nul(value)


def _without_nul(value: Any) -> Any:
    """Nested messages have seen to themselves."""
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if "\0" in value else value
    if isinstance(value, list):
        return [_without_nul(each) for each in value]
    if isinstance(value, dict):
        return {_without_nul(name): _without_nul(each) for name, each in value.items()}
    return value


class Artifact(Message):
    sha256: Sha256
    size: int = Field(ge=0)
    kind: ArtifactKind
    name: str = Field(max_length=200)


class Failure(Message):
    """Why something ended badly, in words a person can act on."""

    kind: ErrorKind
    summary: str
    excerpt: str = ""
    advice: str = ""
