"""The letter about a bisected regression: once for each commit, reviewed, and only with an operator who answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from letter_examples import COMMIT, bisection, measured
from sqlalchemy import select

from wqlab_contracts.enums import DeliveryState, OutboxEvent
from wqlab_server.models import Delivery, PendingEvent
from wqlab_server.pipeline.culprit_letters import write, write_culprit_letter

from ..support.lab import LabUnderTest

pytestmark = pytest.mark.integration
NOW = datetime(2026, 3, 2, tzinfo=UTC)


@pytest.fixture(autouse=True)
def configured(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    configure(
        lab, smtp_host="127.0.0.1", smtp_tls="none", mail_from="wqlab <wqlab@lab.example>", mail_review="none",
        mail_operator="Ada <ada@lab.example>", mail_regressions_to="lkml@example.org, regressions@example.org",
    )  # fmt: skip


def configure(lab: LabUnderTest, **changes: Any) -> None:
    lab.settings = lab.settings.model_copy(update=changes)


def told(lab: LabUnderTest, factor: float = 0.88) -> Delivery | None:
    """Write the letter about a commit with `factor` times the bandwidth of its parent; return its delivery."""
    number = lab.submit("locks@single")
    report = measured(factor)
    report = report.model_copy(update={"submission": report.submission.model_copy(update={"id": number})})
    with lab.transaction() as session:
        written = write(session, lab.settings, bisection(), report, NOW)
        return session.get(Delivery, written) if written is not None else None


def test_letter_goes_to_author_and_lists_after_review(lab: LabUnderTest) -> None:
    delivery = told(lab)
    assert delivery is not None
    assert (delivery.state, delivery.event) == (DeliveryState.WAITING_FOR_REVIEW, "culprit")
    assert delivery.destination == "eve@example.org, lkml@example.org, regressions@example.org"
    assert delivery.mail is not None
    assert f"commit {COMMIT}" in delivery.mail.body
    assert "Ada <ada@lab.example>" in delivery.mail.body
    assert told(lab) is None, "once for each commit"


def test_there_is_no_letter_about_an_improvement(lab: LabUnderTest) -> None:
    assert told(lab, 1.12) is None


def test_without_an_operator_nobody_is_told(lab: LabUnderTest) -> None:
    configure(lab, mail_operator="")
    event = PendingEvent(event=OutboxEvent.CULPRIT_FOUND, detail={"bisection": 1, "confirmed_by": 1})
    with lab.transaction() as session:
        assert write_culprit_letter(session, lab.settings, event, NOW) is None
        assert session.scalars(select(Delivery)).all() == []
