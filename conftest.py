"""How the tests are shared out when several run at once (`pytest -n 3`, as `make test` does), and what they log."""

from __future__ import annotations

import os
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from wqlab_contracts import logs

PARTS_DIE = {"tests/scenarios/test_outages.py", "tests/scenarios/test_pages_run.py", "tests/scenarios/test_lava.py"}
"""Here devices and services are made to fail: much of it is waiting."""


class BySharedParts(LoadScopeScheduling):  # type: ignore[misc]
    """A file's tests stay together, for what its fixtures start; the end-to-end tests share two labs."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file.startswith("tests/scenarios/"):
            return "a lab whose parts die" if file in PARTS_DIE else "a lab that is left alone"
        return file


@pytest.fixture(scope="session")
def parts_die() -> bool | None:
    """Which of the two labs this process shares; None when it runs the tests of both."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return None
    return os.environ["PYTEST_CURRENT_TEST"].partition("::")[0] in PARTS_DIE


def pytest_configure() -> None:
    """As in the lab's programs: structlog's own way draws an exception for a second."""
    logs.configure()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> BySharedParts:
    return BySharedParts(config, log)
