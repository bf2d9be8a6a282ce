"""Calls on watches, on previews and decisions of those of lists, and on heads of those of trees."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.watches import PREVIEW_DAYS, WatchDecision, WatchedHead, WatchPreview, WatchView
from wqlab_contracts.enums import DecisionReason, DecisionState, JobState, WatchedHeadState

from ..errors import LabUnavailable
from ..transport import Params, decode
from .connection import API, Connection

if TYPE_CHECKING:
    from wqlab_contracts.specs import ListWatch, TreeWatch

PREVIEW_WAIT_S = 1_800.0
"""Time for a preview: the first read of a list transfers all its mails of some days."""
_POLL_S = 20.0


class WatchCalls(Connection):
    """Calls on watches."""

    def watches(self) -> list[WatchView]:
        """Return all watches, by name."""
        return self._get(list[WatchView], f"{API}/watches", "list watches")

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

    def switch_watch(self, name: str, *, enabled: bool) -> WatchView:
        """Enable or disable a watch."""
        word = "enable" if enabled else "disable"
        return self._post(WatchView, f"{API}/watches/{name}/{word}", f"{word} watch {name}")

    def remove_watch(self, name: str) -> None:
        """Remove a watch; its decisions or heads are kept."""
        self._transport.call("DELETE", f"{API}/watches/{name}", what=f"remove watch {name}")

    def watch_decisions(
        self,
        name: str,
        *,
        state: DecisionState | None = None,
        reason: DecisionReason | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[WatchDecision]:
        """Return one page of what a watch of a list decided, newest first."""
        params: Params = {"state": state, "reason": reason, "cursor": cursor, "limit": limit}
        return self._get(Page[WatchDecision], f"{API}/watches/{name}/decisions", f"decisions of {name}", params)

    def preview_watch(self, name: str, days: int = PREVIEW_DAYS, wait_s: float = PREVIEW_WAIT_S) -> WatchPreview:
        """Return what a watch of a list would have taken in the last days, once a worker has read the list.

        Raises LabUnavailable if that takes longer than `wait_s`.
        """
        deadline = time.monotonic() + wait_s
        while True:
            params: Params = {"days": days, "wait_s": int(max(0.0, min(_POLL_S, deadline - time.monotonic())))}
            found = self._get(WatchPreview, f"{API}/watches/{name}/preview", f"preview of watch {name}", params)
            if found.state is JobState.FINISHED:
                return found
            if time.monotonic() >= deadline:
                state = found.progress or f"the read is {found.state}"
                raise LabUnavailable(
                    f"preview of watch {name}: not finished after {wait_s:.0f} s: {state}",
                    "check that the lab's worker of the queue `lists` runs, and try again",
                )

    def check_watch(self, name: str) -> WatchView:
        """Look for new heads of a watched tree now."""
        return self._post(WatchView, f"{API}/watches/{name}/check", f"look at the tree of watch {name}")

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
        return self._get(Page[WatchedHead], f"{API}/watches/{name}/heads", f"heads of {name}", params)
