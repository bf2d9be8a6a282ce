"""`wqlab audit`."""

from __future__ import annotations

import json

from commandline import Wqlab
from example_views import at
from fakelab import FakeLab

from wqlab_contracts.api.audit import AuditEntry
from wqlab_contracts.api.base import Page
from wqlab_contracts.enums import AuditAction, AuditOutcome


def entry(number: int, **changes: object) -> AuditEntry:
    fields: dict[str, object] = {
        "id": number,
        "at": at(number),
        "actor": "ada",
        "token_id": None,
        "token_name": None,
        "address": "192.0.2.7",
        "action": AuditAction.CHANGE_USER,
        "resource": "user/bob",
        "outcome": AuditOutcome.DONE,
        "detail": {"role": "admin"},
    }
    return AuditEntry(**{**fields, **changes})  # type: ignore[arg-type]


def test_entries_are_listed_with_filters(wqlab: Wqlab, lab: FakeLab) -> None:
    failed = {"actor": "", "action": AuditAction.SIGN_IN, "outcome": AuditOutcome.REFUSED, "detail": {}}
    robot = {"token_id": 3, "token_name": "ci\x1b[2J", "address": None}
    page = Page[AuditEntry](items=[entry(3, **robot), entry(2), entry(1, **failed)], total=9, next="1")
    lab.serve("/audit", page)
    ended = wqlab("audit", "--actor", "ada", "--action", "user.change", "--since", "2026-01-02", "--limit", "3")
    assert ended.out == (
        "TIME (UTC)           ACTOR          ADDRESS    ACTION           RESOURCE  OUTCOME  DETAIL\n"
        "2026-01-02 10:00:03  ada (ci^[[2J)  -          user.change      user/bob  done     role=admin\n"
        "2026-01-02 10:00:02  ada            192.0.2.7  user.change      user/bob  done     role=admin\n"
        "2026-01-02 10:00:01  -              192.0.2.7  session.sign_in  user/bob  refused\n"
    )
    assert ended.err == "3 of 9; next page: --cursor 1\n"
    assert lab.requests[0].query == {
        "actor": "ada", "action": "user.change", "since": "2026-01-02T00:00:00", "limit": "3",
    }  # fmt: skip
    assert json.loads(wqlab("audit", "--json").out)["items"][2]["outcome"] == "refused"
    assert wqlab("audit", "--action", "user.eat").code == 2
    lab.serve("/audit", Page[AuditEntry](items=[], total=0))
    assert wqlab("audit", "--outcome", "refused").err == "no entry matches\n"
