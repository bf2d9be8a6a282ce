"""Calls on watched lists: rules, their previews and decisions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from wqlab_contracts.api.base import Page
from wqlab_contracts.api.rules import PREVIEW_DAYS, RuleDecision, RulePreview, RuleView
from wqlab_contracts.enums import DecisionReason, DecisionState, JobState

from ..errors import LabUnavailable
from ..transport import Params, decode
from .connection import API, Connection

if TYPE_CHECKING:
    from wqlab_contracts.specs.rules import ListRule

PREVIEW_WAIT_S = 1_800.0
"""Time for a preview: the first read of a list transfers all its mails of some days."""
_POLL_S = 20.0


class RuleCalls(Connection):
    """Calls on rules of watched lists."""

    def rules(self) -> list[RuleView]:
        """Return all rules, by name, with the state of their lists."""
        return self._get(list[RuleView], f"{API}/rules", "list rules")

    def rule(self, name: str) -> RuleView:
        """Return one rule."""
        return self._get(RuleView, f"{API}/rules/{name}", f"rule {name}")

    def add_rule(self, rule: ListRule) -> RuleView:
        """Create a rule, switched off."""
        body = rule.model_dump_json().encode()
        return self._post(RuleView, f"{API}/rules", f"add rule {rule.name}", body=body, repeatable=False)

    def change_rule(self, rule: ListRule) -> RuleView:
        """Replace the rule of this name. `enabled` must be what it is now."""
        what = f"change rule {rule.name}"
        body = rule.model_dump_json().encode()
        return decode(RuleView, self._transport.call("PUT", f"{API}/rules/{rule.name}", what=what, body=body), what)

    def switch_rule(self, name: str, *, on: bool) -> RuleView:
        """Switch a rule on or off."""
        word = "on" if on else "off"
        return self._post(RuleView, f"{API}/rules/{name}/{word}", f"switch rule {name} {word}")

    def remove_rule(self, name: str) -> None:
        """Remove a rule; what it decided is kept."""
        self._transport.call("DELETE", f"{API}/rules/{name}", what=f"remove rule {name}")

    def rule_decisions(
        self,
        name: str,
        *,
        state: DecisionState | None = None,
        reason: DecisionReason | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[RuleDecision]:
        """Return one page of what a rule decided, newest first."""
        params: Params = {"state": state, "reason": reason, "cursor": cursor, "limit": limit}
        return self._get(Page[RuleDecision], f"{API}/rules/{name}/decisions", f"decisions of rule {name}", params)

    def preview_rule(self, name: str, days: int = PREVIEW_DAYS, wait_s: float = PREVIEW_WAIT_S) -> RulePreview:
        """Return what a rule would have taken in the last days, once a worker has read the list.

        Raises LabUnavailable if that takes longer than `wait_s`.
        """
        deadline = time.monotonic() + wait_s
        while True:
            params: Params = {"days": days, "wait_s": int(max(0.0, min(_POLL_S, deadline - time.monotonic())))}
            found = self._get(RulePreview, f"{API}/rules/{name}/preview", f"preview of rule {name}", params)
            if found.state is JobState.FINISHED:
                return found
            if time.monotonic() >= deadline:
                state = found.progress or f"the read is {found.state}"
                raise LabUnavailable(
                    f"preview of rule {name}: not finished after {wait_s:.0f} s: {state}",
                    "check that the lab's worker of the queue `lists` runs, and try again",
                )
