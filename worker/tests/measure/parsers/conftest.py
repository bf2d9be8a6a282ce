from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def scripted_parser() -> None:
    """Keep the plans' own parsers: overrides the fixture of the parent package."""
