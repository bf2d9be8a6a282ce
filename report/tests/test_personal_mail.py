"""The mail with a result to an account: its length, and what it is a reply to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from all_examples import EXAMPLES

from wqlab_contracts.messages.source_mail import SourceMail
from wqlab_report.personal_mail import compose

SOURCE = SourceMail(
    message_id="patch@example.org", references=["cover@example.org"], sender="eve@example.org", to=["l@example.org"],
    cc=[], subject="[PATCH] x",
)  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_result_has_at_most_60_lines_and_goes_to_the_account_only(name: str) -> None:
    made = compose(
        EXAMPLES[name](), SOURCE, to="ada@example.org", account_url="https://lab.test/account#mail",
        sender="wqlab@lab.example", message_id="m@lab.example", date=datetime(2026, 1, 2, tzinfo=UTC),
    )  # fmt: skip
    lines = made.body.splitlines()
    assert len(lines) <= 60
    assert lines[-1] == "https://lab.test/account#mail"
    assert (made.in_reply_to, made.references) == ("patch@example.org", ["cover@example.org", "patch@example.org"])
    assert (made.subject, made.to, made.cc) == ("Re: [PATCH] x", ["ada@example.org"], [])
