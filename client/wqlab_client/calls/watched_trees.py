"""Calls on watched trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.watched_trees import WatchedHead, WatchedTreeView
from wqlab_contracts.enums import WatchedHeadState

from ..transport import Params, decode
from .connection import API, Connection

if TYPE_CHECKING:
    from wqlab_contracts.specs import WatchedTree


class WatchedTreeCalls(Connection):
    """Calls on watched trees. All but the reading ones are for maintainers."""

    def watched_trees(self) -> list[WatchedTreeView]:
        """Return the watched trees by name."""
        return self._get(list[WatchedTreeView], f"{API}/watched-trees", "list watched trees")

    def watched_tree(self, name: str) -> WatchedTreeView:
        """Return one watched tree."""
        return self._get(WatchedTreeView, f"{API}/watched-trees/{name}", f"watched tree {name}")

    def watched_heads(
        self,
        name: str,
        *,
        state: WatchedHeadState | None = None,
        ref: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[WatchedHead]:
        """Return one page of the heads that were seen, newest first; `ref` is a branch or pattern that is watched."""
        params: Params = {"state": state, "ref": ref, "cursor": cursor, "limit": limit}
        return self._get(Page[WatchedHead], f"{API}/watched-trees/{name}/heads", f"heads of {name}", params)

    def add_watched_tree(self, spec: WatchedTree) -> WatchedTreeView:
        """Watch a tree."""
        body, what = spec.model_dump_json().encode(), f"watch tree {spec.name}"
        return self._post(WatchedTreeView, f"{API}/watched-trees", what, body=body, repeatable=False)

    def change_watched_tree(self, spec: WatchedTree) -> WatchedTreeView:
        """Replace what is watched and measured of the watched tree with the spec's name."""
        path, what = f"{API}/watched-trees/{spec.name}", f"change watched tree {spec.name}"
        body = spec.model_dump_json().encode()
        return decode(WatchedTreeView, self._transport.call("PUT", path, what=what, body=body), what)

    def switch_watched_tree(self, name: str, *, enabled: bool) -> WatchedTreeView:
        """Enable or disable a watched tree."""
        what = "enable" if enabled else "disable"
        return self._post(WatchedTreeView, f"{API}/watched-trees/{name}/{what}", f"{what} watched tree {name}")

    def check_watched_tree(self, name: str) -> WatchedTreeView:
        """Look for new heads now."""
        return self._post(WatchedTreeView, f"{API}/watched-trees/{name}/check", f"look at watched tree {name}")

    def remove_watched_tree(self, name: str) -> WatchedTreeView:
        """Stop watching a tree; its heads are kept."""
        path, what = f"{API}/watched-trees/{name}", f"remove watched tree {name}"
        return decode(WatchedTreeView, self._transport.call("DELETE", path, what=what), what)
