"""Distribute tests to parallel processes (`pytest -n 3`, as `make test` does); configure logging."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from wqlab_contracts import logs

# The same examples in each run, however slow the machine is: a failure then comes from a change of the code.
settings.register_profile(
    "wqlab", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("wqlab")

LAB_TESTS = "tests/scenarios/test_"
"""Beginning of the names of files whose tests share a lab. Those of the pages are in a folder of their own."""


class SharedLabScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Keep the tests of a file in one process, and those of the lab in one, so that a fixture is set up once.

    `--dist loadgroup` would do, but pytest-xdist 3.8 ignores its marks with pytest 9.2 (its issue 1386).
    """

    def _split_scope(self, nodeid: str) -> str:
        return LAB_TESTS if nodeid.startswith(LAB_TESTS) else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharedLabScheduling:
    return SharedLabScheduling(config, log)


def pytest_configure() -> None:
    """Configure logging as the lab's programs do: structlog's default takes a second to format an exception."""
    logs.configure()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of the lab first, since they take longest."""
    items.sort(key=lambda item: not item.nodeid.startswith(LAB_TESTS))
