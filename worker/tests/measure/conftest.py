from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from wqlab_worker.measure import collect, parsers


@pytest.fixture(autouse=True, scope="module")
def scripted_parser() -> Iterator[None]:
    """Use a parser of the scripted plan's two metrics."""
    module = ModuleType(f"{parsers.__name__}.scripted")

    def parse(records: collect.Records, topology: object, traced: bool) -> collect.Measurement:
        name = "share" if traced else "speed"
        return collect.compute_measurement(records, [name], lambda: {name: records.value(name)})

    module.parse = parse  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, module.__name__, module)
        patch.setattr(collect, "parser", lambda name: parse)
        yield
