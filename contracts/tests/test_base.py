"""Computed fields of REST resources: serialised, described in the schema, ignored when parsed."""

from __future__ import annotations

import pytest
from pydantic import ValidationError, computed_field

from wqlab_contracts.api.base import ComputedResource


class Shelf(ComputedResource):
    devices: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def full(self) -> bool:
        return self.devices == 3


def test_response_carries_computed_fields() -> None:
    assert Shelf(devices=2).model_dump() == {"devices": 2, "full": False}


def test_response_is_read_back_with_and_without_computed_fields() -> None:
    shelf = Shelf(devices=2)
    assert Shelf.model_validate_json(shelf.model_dump_json()) == shelf
    assert Shelf.model_validate({"devices": 2}) == shelf


def test_unknown_field_is_rejected() -> None:
    with pytest.raises(ValidationError, match="surprise"):
        Shelf.model_validate({"devices": 2, "surprise": 1})


def test_schema_requires_computed_fields() -> None:
    assert Shelf.model_json_schema(mode="serialization")["required"] == ["devices", "full"]
