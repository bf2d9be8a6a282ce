"""Distribute tests to parallel processes (`pytest -n 3 --dist loadgroup`, as `make test` does); configure logging."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from wqlab_contracts import logs

# The same examples in each run, however slow the machine is: a failure then comes from a change of the code.
settings.register_profile(
    "wqlab", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("wqlab")


def pytest_configure() -> None:
    """Configure logging as the lab's programs do: structlog's default takes a second to format an exception."""
    logs.configure()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of the lab first, since they take longest, and into one process; so too the tests of each file."""
    items.sort(key=lambda item: not _needs_lab(item))
    for item in items:
        item.add_marker(pytest.mark.xdist_group("lab" if _needs_lab(item) else item.nodeid.partition("::")[0]))


def _needs_lab(item: pytest.Item) -> bool:
    return item.nodeid.startswith("tests/scenarios/") and "lab" in getattr(item, "fixturenames", ())
