"""Distribute tests to parallel processes (`pytest -n 3`, as `make test` does), and configure logging."""

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


COMPUTING_PROCESS = "gw2"
"""Name that pytest-xdist gives the third process. It uses the CPU time in which end-to-end tests wait."""
COMPUTING_TESTS = tuple(
    f"{folder}/" for folder in (
        "comparison/tests", "contracts/tests", "report/tests", "server/tests/any_comparison", "server/tests/history",
        "server/tests/pipeline", "server/tests/reports", "server/tests/views",
    )
)  # fmt: skip
"""Folders of tests that do not fail if their process gets little CPU time."""


class SharedLabScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Keep the tests of a file in one process for its fixtures; most end-to-end tests share two labs.

    The third process, with the priority of emulated devices, runs tests that only compute until no end-to-end test is
    left to begin.
    """

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        super().mark_test_complete(node, item_index, duration)
        for other in self.nodes:
            if other.gateway.id == COMPUTING_PROCESS:
                self._reschedule(other)  # it may have been left without work

    def _assign_work_unit(self, node: Any) -> None:
        if node.gateway.id == COMPUTING_PROCESS and any(map(_is_end_to_end, self.workqueue)):
            scope = next((scope for scope in self.workqueue if scope.startswith(COMPUTING_TESTS)), None)
            if scope is None:
                return
            self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        pages = file.startswith("tests/scenarios/pages/")  # they need no lab
        if file.startswith("tests/scenarios/") and not pages and file not in OWN_LAB_TESTS:
            return "lab with outages" if file in OUTAGE_TESTS else "undisturbed lab"
        return file


def _is_end_to_end(scope: str) -> bool:
    return "lab" in scope.split() or scope.startswith("tests/scenarios/")


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
    """Put the tests that share a lab first, then the other tests of a browser: they take longest.

    Set the priority of the third process only now, because all processes wait for its collection.
    """
    if os.environ.get("PYTEST_XDIST_WORKER") == COMPUTING_PROCESS:
        os.nice(5)
    items.sort(key=lambda item: (not item.nodeid.startswith("tests/scenarios/"), "/pages/" in item.nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharedLabScheduling:
    return SharedLabScheduling(config, log)
