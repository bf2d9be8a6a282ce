"""Calls on the history of watched trees."""

from __future__ import annotations

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.history import HistoryLine, HistoryLineData, HistoryShift, ShiftChange
from wqlab_contracts.enums import Role, ShiftState

from ..transport import Params, decode
from .connection import API, Connection


class HistoryCalls(Connection):
    """Calls on lines and shifts."""

    def history_lines(
        self,
        *,
        tree: str | None = None,
        plan: str | None = None,
        device_type: str | None = None,
        metric: str | None = None,
        role: Role | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[HistoryLine]:
        """Return one page of the metrics that are followed over the heads of watched trees, newest line first."""
        params: Params = {
            "tree": tree, "plan": plan, "device_type": device_type, "metric": metric, "role": role,
            "cursor": cursor, "limit": limit,
        }  # fmt: skip
        return self._get(Page[HistoryLine], f"{API}/history/lines", "list history lines", params)

    def history_line(self, line_id: int) -> HistoryLineData:
        """Return a line with its points, levels and shifts."""
        return self._get(HistoryLineData, f"{API}/history/lines/{line_id}", f"history line {line_id}")

    def history_shifts(
        self,
        *,
        state: ShiftState | None = None,
        tree: str | None = None,
        plan: str | None = None,
        device_type: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[HistoryShift]:
        """Return one page of the changes of a metric's level, newest first."""
        params: Params = {
            "state": state, "tree": tree, "plan": plan, "device_type": device_type, "cursor": cursor, "limit": limit,
        }  # fmt: skip
        return self._get(Page[HistoryShift], f"{API}/history/shifts", "list shifts", params)

    def change_history_shift(self, shift_id: int, change: ShiftChange) -> HistoryShift:
        """Change the state, owner or notes of a shift (maintainers)."""
        path, what = f"{API}/history/shifts/{shift_id}", f"change shift {shift_id}"
        body = change.model_dump_json(exclude_unset=True).encode()
        return decode(HistoryShift, self._transport.call("PATCH", path, what=what, body=body), what)
