"""Mails with results that an account has subscribed to: their length, their order, and what they are a reply to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from wqlab_contracts.mail import OutgoingMail
from wqlab_server.reports.personal_mail import COLLECTED_LIMIT, Recipient, Result, compose, compose_collected

from .all_examples import EXAMPLES

NOW = datetime(2026, 1, 2, tzinfo=UTC)
MANY = Recipient("ada@example.org", [f"results on type-{index}" for index in range(50)], "https://lab.test/account")
FIRST = OutgoingMail(
    message_id="first@lab.example", in_reply_to="patch@example.org", references=["patch@example.org"],
    sender="wqlab@lab.example", to=["ada@example.org"], cc=[], subject="Re: x", date=NOW, body="x\n",
)  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("changes", [{}, {f"target {index}": ("improvement", "regression") for index in range(9)}])
def test_a_result_has_at_most_60_lines_and_begins_with_the_verdict(
    name: str, changes: dict[str, tuple[str, str]]
) -> None:
    made = compose(
        EXAMPLES[name](), None, MANY, sender="wqlab@lab.example", message_id="m@lab.example", date=NOW, first=FIRST,
        changes=changes,
    )  # fmt: skip
    lines = made.body.splitlines()
    assert len(lines) <= 60
    assert ("CORRECTION" in lines[0]) is bool(changes)
    assert lines[-1] == MANY.account_url
    assert lines[-2].endswith(" ...")
    assert (made.in_reply_to, made.references) == ("first@lab.example", ["patch@example.org", "first@lab.example"])
    assert (made.to, made.cc) == (["ada@example.org"], [])


@pytest.mark.parametrize("count", [1, 2, 45, 60, COLLECTED_LIMIT])
@pytest.mark.parametrize("number", [1, 2_000_000_000])
def test_collected_results_fit_and_each_is_named(count: int, number: int) -> None:
    results = [
        Result(number + index, "Tested-by: x <a@b>\n" * 9, {} if index % 2 else {"t": "regression", "u": "improvement"})
        for index in range(count)
    ]
    made = compose_collected(
        results, MANY, sender="wqlab@lab.example", message_id="m@lab.example", date=NOW, when="of 2026-01-01 (UTC)",
        lab_url="https://lab.test",
    )  # fmt: skip
    lines = made.body.splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 78
    assert made.subject == f"[wqlab] {count} more {'result' if count == 1 else 'results'} of 2026-01-01 (UTC)"
    named = set(made.body.replace(",", " ").split())
    assert {str(each.submission_id) for each in results} <= named
    assert lines[2].split()[1] == "REGRESSION"
    assert not [line for line in lines if line.lower().lstrip().startswith("tested-by")]
