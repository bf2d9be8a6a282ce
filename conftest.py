"""How the tests are shared out when several run at once (`pytest -n 2 --dist loadgroup`, as `make test` does)."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file's tests stay together, for what its fixtures start; the end-to-end tests all share one lab."""
    for item in items:
        group = "the lab" if item.get_closest_marker("e2e") else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))
