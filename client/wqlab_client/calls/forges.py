"""Calls on forges."""

from __future__ import annotations

from wqlab_contracts.api.forges import ForgeDetail, ForgeView

from .connection import API, Connection


class ForgeCalls(Connection):
    """Calls on forges, for maintainers."""

    def forges(self) -> list[ForgeView]:
        """Return the forges, in the order of the operator's file."""
        return self._get(list[ForgeView], f"{API}/forges", "list forges")

    def forge(self, name: str) -> ForgeDetail:
        """Return one forge with its heads that wait or are not measured."""
        return self._get(ForgeDetail, f"{API}/forges/{name}", f"forge {name}")

    def poll_forge(self, name: str) -> ForgeDetail:
        """Let the lab ask a forge now for heads of which no event has told."""
        return self._post(ForgeDetail, f"{API}/forges/{name}/poll", f"poll forge {name}")
