"""Units of effects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wqlab_contracts.enums import Scale
from wqlab_contracts.units import effect_unit

TABLE = json.loads((Path(__file__).parent / "golden/numbers.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", TABLE["effect_unit"], ids=str)
def test_effect_unit(row: dict[str, str]) -> None:
    assert effect_unit(Scale(row["scale"]), row["unit"]) == row["text"]
