"""Calls on watches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wqlab_contracts.api.watches import WatchView

from ..transport import decode
from .connection import API, Connection

if TYPE_CHECKING:
    from wqlab_contracts.specs import ListWatch, TreeWatch


class WatchCalls(Connection):
    """Calls on watches."""

    def watch(self, name: str) -> WatchView:
        """Return one watch."""
        return self._get(WatchView, f"{API}/watches/{name}", f"watch {name}")

    def add_watch(self, spec: ListWatch | TreeWatch) -> WatchView:
        """Create a watch, disabled."""
        body = spec.model_dump_json().encode()
        return self._post(WatchView, f"{API}/watches", f"add watch {spec.name}", body=body, repeatable=False)

    def change_watch(self, spec: ListWatch | TreeWatch) -> WatchView:
        """Replace the watch of this name. `enabled` must be what it is now."""
        what, body = f"change watch {spec.name}", spec.model_dump_json().encode()
        return decode(WatchView, self._transport.call("PUT", f"{API}/watches/{spec.name}", what=what, body=body), what)

    def remove_watch(self, name: str) -> None:
        """Remove a watch; its decisions or heads are kept."""
        self._transport.call("DELETE", f"{API}/watches/{name}", what=f"remove watch {name}")
