"""Base of the REST resources: pages, problem details, and resources with computed fields."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from pydantic import Field, model_validator

from ..messages import Message

T = TypeVar("T")


class ComputedResource(Message):
    """A resource with computed fields: they are sent, and ignored when the resource is read back."""

    @model_validator(mode="before")
    @classmethod
    def _ignore_computed_fields(cls, content: Any) -> Any:
        if not isinstance(content, dict):
            return content
        return {name: value for name, value in content.items() if name not in cls.model_computed_fields}


class Page(Message, Generic[T]):
    """One page of a list."""

    items: list[T]
    total: int
    """Number of items on all pages."""
    at_least: bool = False
    """True if there are more items than `total`; they were not counted."""
    next: str | None = None
    """Opaque cursor for the next page; pass it as `cursor`."""


class Problem(Message):
    """Problem details (RFC 9457); `errors` locates each invalid field by a JSON pointer."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] = Field(default_factory=list)
