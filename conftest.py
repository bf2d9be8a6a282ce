"""Distribute tests to parallel processes (`pytest -n 2`, as `make test` does), and configure logging."""

from __future__ import annotations

import os
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

OUTAGE_TESTS = {
    f"tests/scenarios/{name}.py"
    for name in ("test_bad_days", "test_chaos", "test_lava", "test_outages", "test_pages_run", "test_restored_lab")
}
"""Tests that make devices and services fail, and mostly wait."""

OWN_LAB_TESTS = {f"tests/scenarios/{name}.py" for name in ("test_listening", "test_rehearsal")}
"""Tests that start a lab of their own."""


class SharedLabScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Keep the tests of a file in one process for its fixtures; most end-to-end tests share two labs."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        pages = file.startswith("tests/scenarios/pages/")  # they need no lab
        if file.startswith("tests/scenarios/") and not pages and file not in OWN_LAB_TESTS:
            return "lab with outages" if file in OUTAGE_TESTS else "undisturbed lab"
        return file


@pytest.fixture(scope="session")
def outages_lab() -> bool | None:
    """Return True for the lab with outages, False for the other one, None if this process runs both."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return None
    return os.environ["PYTEST_CURRENT_TEST"].partition("::")[0] in OUTAGE_TESTS


def pytest_configure() -> None:
    """Configure logging as the lab's programs do: structlog's default takes a second to format an exception."""
    logs.configure()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests that share a lab first, then the other tests of a browser: they take longest."""
    items.sort(key=lambda item: (not item.nodeid.startswith("tests/scenarios/"), "/pages/" in item.nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharedLabScheduling:
    return SharedLabScheduling(config, log)
