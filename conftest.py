"""How the tests are shared out when several run at once (`pytest -n 2`, as `make test` does)."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling


class BySharedParts(LoadScopeScheduling):  # type: ignore[misc]
    """A file's tests stay together, for what its fixtures start; the end-to-end tests all share one lab."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "tests/e2e" if file.startswith("tests/e2e/") else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> BySharedParts:
    return BySharedParts(config, log)
