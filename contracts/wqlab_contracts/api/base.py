"""Base of the REST resources: pages, problem details, and resources with computed fields."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic.config import JsonDict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from ..messages import Message

T = TypeVar("T")

DEPRECATED: JsonDict = {"deprecated": True}
"""`json_schema_extra` of a computed field that repeats a renamed field under its old name for one release."""


class ComputedResource(Message):
    """A resource with computed fields: they are sent, and ignored when the resource is read back.

    A renamed field is the common case: `@computed_field(json_schema_extra=DEPRECATED)` on a property of the old name.
    """

    @model_validator(mode="before")
    @classmethod
    def _ignore_computed_fields(cls, content: Any) -> Any:
        if not isinstance(content, dict):
            return content
        return {name: value for name, value in content.items() if name not in cls.model_computed_fields}

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe deprecated fields as optional, so that no client comes to depend on them."""
        schema = handler(core_schema)
        described = handler.resolve_ref_schema(schema)
        properties = described.get("properties", {})
        if "required" in described:
            described["required"] = [
                name for name in described["required"] if not properties.get(name, {}).get("deprecated")
            ]
        return schema


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
