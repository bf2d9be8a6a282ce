"""`wqlab user list`."""

from __future__ import annotations

import json

from commandline import Wqlab
from example_views import at
from fakelab import FakeLab

from wqlab_contracts.api.accounts import UserView
from wqlab_contracts.api.base import Page
from wqlab_contracts.enums import SignInMethod, UserRole

ADA = UserView(name="ada", role=UserRole.ADMIN, created_at=at(0), last_sign_in_at=at(5), disabled_at=None)
GRACE = UserView(
    name="grace", role=UserRole.SUBMITTER, sign_in=SignInMethod.OIDC, issuer="https://idp.example.org",
    subject="7\x1b[2J", created_at=at(0), last_sign_in_at=at(6), without_role_since=at(7), disabled_at=None,
)  # fmt: skip
BOB = UserView(name="bob", role=UserRole.VIEWER, created_at=at(0), last_sign_in_at=None, disabled_at=at(9))


def test_users_are_listed_with_how_they_sign_in(wqlab: Wqlab, lab: FakeLab) -> None:
    lab.serve("/users", Page[UserView](items=[GRACE, BOB, ADA], total=9, next="1"))
    ended = wqlab("user", "list", "a", "--limit", "3")
    assert ended.out.splitlines() == [
        "NAME   ROLE       SIGN-IN                            LAST SIGN-IN (UTC)   STATE",
        "grace  submitter  https://idp.example.org as 7^[[2J  2026-01-02 10:00:06  no group has a role",
        "bob    viewer     password                           never                disabled",
        "ada    admin      password                           2026-01-02 10:00:05",
    ]
    assert ended.err == "3 of 9; next page: --cursor 1\n"
    assert lab.requests[0].query == {"q": "a", "limit": "3"}
    assert json.loads(wqlab("user", "list", "--json").out)["items"][0]["subject"] == "7\x1b[2J"
    lab.serve("/users", Page[UserView](items=[], total=0))
    assert wqlab("user", "list", "nobody").err == "no user matches\n"
