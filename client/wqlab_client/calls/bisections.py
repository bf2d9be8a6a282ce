"""Calls on bisections."""

from __future__ import annotations

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.bisections import Bisection, BisectionData, BisectionRequest
from wqlab_contracts.enums import BisectionState

from ..transport import Params
from .connection import API, Connection


class BisectionCalls(Connection):
    """Calls that begin, read and cancel bisections."""

    def bisect(self, request: BisectionRequest) -> Bisection:
        """Search for the commit that changed a metric. Not repeated when the answer is lost."""
        body = request.model_dump_json().encode()
        return self._post(Bisection, f"{API}/bisections", "bisect", body=body, repeatable=False)

    def bisections(
        self,
        *,
        state: BisectionState | None = None,
        active: bool | None = None,
        owner: str | None = None,
        watch: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[Bisection]:
        """Return one page of bisections, newest first."""
        params: Params = {
            "state": state, "active": active, "owner": owner, "watch": watch, "cursor": cursor,
            "limit": limit,
        }  # fmt: skip
        return self._get(Page[Bisection], f"{API}/bisections", "list bisections", params)

    def bisection(self, bisection_id: int) -> BisectionData:
        """Return a bisection with its commits and steps."""
        return self._get(BisectionData, f"{API}/bisections/{bisection_id}", f"bisection {bisection_id}")

    def cancel_bisection(self, bisection_id: int) -> Bisection:
        """Cancel a bisection, and the submission that it waits for."""
        return self._post(Bisection, f"{API}/bisections/{bisection_id}/cancel", f"cancel bisection {bisection_id}")
