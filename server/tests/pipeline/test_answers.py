"""Answers by mail, from an uploaded mbox to the SMTP server: review, one reply for a revision, corrections."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from sqlalchemy import select

from wqlab_contracts.enums import Arm, DeliveryState, ErrorKind, Outcome, Verdict
from wqlab_contracts.mail import ReplyTo
from wqlab_contracts.messages import MboxSeries, Series
from wqlab_contracts.messages.source_mail import SourceMail
from wqlab_server.http.problems import ApiProblem
from wqlab_server.models import Delivery
from wqlab_server.outbox import deliveries, mails
from wqlab_server.outbox.send import deliver
from wqlab_server.storage import source_mails
from wqlab_server.storage.db import clock

from ..support.lab import SERIES as BRANCH
from ..support.lab import LabUnderTest, infrastructure_result, results
from ..support.smtp import MailServer, mail_server
from .test_advance_failures import candidate_panics

pytestmark = pytest.mark.integration
MBOX = """\
From 0123 Mon Sep 17 00:00:00 2001
From: Ada Lovelace <ada@example.org>
To: lkml@example.org
Cc: Tejun <tj@example.org>
Subject: [PATCH v2] wq: take fewer locks
Message-ID: <patch@example.org>
In-Reply-To: <v1@example.org>

Tested-by: Ada Lovelace <ada@example.org>

diff --git a/kernel/workqueue.c b/kernel/workqueue.c
--- a/kernel/workqueue.c
+++ b/kernel/workqueue.c
"""
SERIES = Series(mbox=MboxSeries(text=MBOX))


@pytest.fixture(autouse=True)
def configured(lab: LabUnderTest) -> None:
    lab.mark_all_good()
    configure(lab, smtp_host="127.0.0.1", smtp_tls="none", mail_from="wqlab <wqlab@lab.example>")


def configure(lab: LabUnderTest, **changes: Any) -> None:
    lab.settings = lab.settings.model_copy(update=changes)


def stored(lab: LabUnderTest) -> list[Delivery]:
    with lab.transaction() as session:
        return list(session.scalars(select(Delivery).where(Delivery.kind == "mail").order_by(Delivery.id)))


def measured(lab: LabUnderTest, locks: float = 5.0, *, series: Series = SERIES) -> int:
    """Submit the series and finish it; the candidate takes this number of locks and the baseline 33."""
    lab.worker.value = lambda arm, *_: 33.0 if arm is Arm.BASELINE else locks
    number = lab.submit("locks@single", series=series, force=True)
    lab.finished(number)
    return number


def approve(lab: LabUnderTest, number: int) -> None:
    with lab.transaction() as session:
        mails.approve(session, number, "dev", clock(session))


def send(lab: LabUnderTest, server: MailServer, number: int) -> None:
    configure(lab, smtp_port=server.port)
    assert deliver(lab.sessions, lab.settings, number) is not None


def test_a_reply_waits_for_a_maintainer_and_then_threads(lab: LabUnderTest) -> None:
    measured(lab)
    (waiting,) = stored(lab)
    assert (waiting.state, waiting.event) == (DeliveryState.WAITING_FOR_REVIEW, "reply")
    with mail_server() as server:
        assert deliver(lab.sessions, lab.settings, waiting.id) is None
        approve(lab, waiting.id)
        send(lab, server, waiting.id)
        assert deliver(lab.sessions, lab.settings, waiting.id) is None
    (mail,) = server.accepted
    assert server.recipients == [["ada@example.org"]], "a count goes to the author alone"
    assert mail["Subject"] == "Re: [PATCH v2] wq: take fewer locks"
    assert mail["In-Reply-To"] == "<patch@example.org>"
    assert mail["References"] == "<v1@example.org> <patch@example.org>"
    assert mail["Message-ID"] == f"<{waiting.message_id}>"
    lines = mail.get_content().splitlines()
    assert lines[0] == "33 to 5 lock acquisitions per flush, on an emulated 4-CPU guest"
    assert len(lines) <= 60
    assert lines[-1] == "wqlab measures kernels automatically; it does not review patches."
    assert "Report:    http://lab.test/r/1" in lines
    assert not [line for line in lines if line.lower().startswith("tested-by")]
    assert stored(lab)[0].state is DeliveryState.DELIVERED


def test_a_retry_with_the_same_verdicts_says_nothing_and_with_others_corrects(lab: LabUnderTest) -> None:
    measured(lab)
    with mail_server() as server:
        approve(lab, stored(lab)[0].id)
        send(lab, server, stored(lab)[0].id)
        measured(lab)
        assert len(stored(lab)) == 1
        measured(lab, 60.0)
        _, correction = stored(lab)
        assert (correction.event, correction.state) == ("correction", DeliveryState.WAITING_FOR_REVIEW)
        approve(lab, correction.id)
        send(lab, server, correction.id)
    first, second = server.accepted
    assert second["In-Reply-To"] == first["Message-ID"]
    assert second["References"] == f"{first['References']} {first['Message-ID']}"
    assert server.recipients[0] == server.recipients[1]
    lines = second.get_content().splitlines()
    assert lines[:2] == [
        "CORRECTION of the lab's earlier mail; the verdict has changed:",
        "  locks on single (emulated): improvement -> REGRESSION",
    ]
    assert "33 to 60 lock acquisitions per flush, on an emulated 4-CPU guest" in lines
    assert len(lines) <= 60
    measured(lab, 60.0)
    assert len(stored(lab)) == 2


def test_a_newer_result_replaces_a_mail_that_nobody_has_approved(lab: LabUnderTest) -> None:
    measured(lab)
    measured(lab, 60.0)
    old, new = stored(lab)
    assert (old.state, old.reason) == (
        DeliveryState.DROPPED,
        "dropped by the lab: the result of submission 2 replaces it",
    )
    assert (new.state, new.event) == (DeliveryState.WAITING_FOR_REVIEW, "reply")
    assert new.mail is not None
    assert "CORRECTION" not in new.mail.body
    assert new.says == {"locks on single (emulated)": Verdict.REGRESSION}


def test_a_dropped_mail_is_not_sent(lab: LabUnderTest) -> None:
    measured(lab)
    (waiting,) = stored(lab)
    with lab.transaction() as session:
        deliveries.drop(session, waiting.id, "dev", clock(session), "the device was noisy")
    assert deliver(lab.sessions, lab.settings, waiting.id) is None
    assert stored(lab)[0].reason == "dropped by dev: the device was noisy"


@pytest.mark.parametrize(
    ("verified", "reply_to", "review", "panics", "state"),
    [
        (True, "author", "lists", True, DeliveryState.WAITING),
        (True, "all", "lists", True, DeliveryState.WAITING_FOR_REVIEW),
        # A count goes to the author alone, whoever would get a reply.
        (True, "all", "lists", False, DeliveryState.WAITING),
        # Whoever uploads an mbox chooses its author.
        (False, "author", "lists", True, DeliveryState.WAITING_FOR_REVIEW),
        (True, "author", "all", True, DeliveryState.WAITING_FOR_REVIEW),
        # Whoever mails to a list that does not check senders chooses its author, too.
        (None, "author", "lists", True, DeliveryState.WAITING_FOR_REVIEW),
        (False, "all", "none", True, DeliveryState.WAITING),
    ],
)
def test_which_mails_wait_for_review(
    lab: LabUnderTest, verified: bool | None, reply_to: str, review: str, panics: bool, state: DeliveryState
) -> None:
    """`verified` None: read from an archive that does not check senders."""
    configure(lab, mail_reply_to=ReplyTo(reply_to), mail_review=review)
    lab.worker.value = lambda arm, *_: 33.0 if arm is Arm.BASELINE else 5.0
    if panics:
        lab.worker.on_run = candidate_panics
    number = lab.submit("locks@single", series=SERIES)
    with lab.transaction() as session:
        source = source_mails.find(session, number)
        assert isinstance(source, SourceMail)
        changes = {"verified": verified is not False, "sender_checked": verified is not None}
        source_mails.remember(session, number, source.model_copy(update=changes))
    lab.finished(number)
    (mail,) = stored(lab)
    assert mail.state is state
    assert (mail.destination == "ada@example.org") is (reply_to == "author" or not panics)


def vary(lab: LabUnderTest) -> None:
    """Let the counts differ from boot to boot, so that two blocks decide nothing."""
    numbers = itertools.count(20)
    lab.worker.value = lambda *_: float(next(numbers))


def test_a_result_that_is_not_decided_is_mailed_to_nobody(lab: LabUnderTest) -> None:
    vary(lab)
    number = lab.submit("locks@single", series=SERIES)
    lab.finished(number)
    assert [each.verdict for each in lab.report(number).targets] == [Verdict.INCONCLUSIVE]
    assert stored(lab) == []


def test_a_mailed_verdict_that_is_not_decided_any_more_is_corrected(lab: LabUnderTest) -> None:
    configure(lab, mail_review="none")
    measured(lab)
    with mail_server() as server:
        send(lab, server, stored(lab)[0].id)
    vary(lab)
    lab.finished(lab.submit("locks@single", series=SERIES, force=True))
    _, correction = stored(lab)
    assert correction.mail is not None
    assert correction.mail.body.splitlines()[1] == "  locks on single (emulated): improvement -> inconclusive"
    assert correction.says == {"locks on single (emulated)": Verdict.INCONCLUSIVE}


def test_a_mail_that_waits_is_dropped_if_nothing_is_decided_any_more(lab: LabUnderTest) -> None:
    measured(lab)
    vary(lab)
    lab.finished(lab.submit("locks@single", series=SERIES, force=True))
    (first,) = stored(lab)
    assert first.state is DeliveryState.DROPPED


@pytest.mark.parametrize("review", ["lists", "none"])
def test_no_mail_leaves_a_lab_without_a_public_url(lab: LabUnderTest, review: str) -> None:
    configure(lab, public_url="http://127.0.0.1:8750", mail_review=review)
    measured(lab)
    (mail,) = stored(lab)
    if review == "lists":
        with pytest.raises(ApiProblem, match="set WQLAB_PUBLIC_URL"):
            approve(lab, mail.id)
        return
    result = deliver(lab.sessions, lab.settings, mail.id)
    assert result is not None
    assert "http://127.0.0.1 is an address of the lab's own machine" in result.problem
    assert stored(lab)[0].state is DeliveryState.GIVEN_UP


def test_what_says_nothing_about_the_series_is_not_mailed(lab: LabUnderTest) -> None:
    lab.worker.on_run = results(infrastructure_result())
    configure(lab, run_attempts=1)
    number = lab.submit("locks@single", series=SERIES)
    done = lab.finished(number)
    assert done.failure is not None
    assert (done.outcome, done.failure.kind) == (Outcome.FAILED, ErrorKind.INFRASTRUCTURE)
    canceled = lab.submit("locks@device", series=SERIES)
    lab.post(f"submissions/{canceled}/cancel")
    lab.finished(canceled)
    configure(lab, smtp_host="")
    measured(lab)
    assert stored(lab) == []


def test_a_branch_is_answered_only_if_the_operator_wants_that(lab: LabUnderTest) -> None:
    measured(lab, series=BRANCH)
    assert stored(lab) == []


def test_a_retry_keeps_the_source_mail(lab: LabUnderTest) -> None:
    number = measured(lab)
    lab.post(f"submissions/{number}/retry")
    with lab.transaction() as session:
        assert source_mails.find(session, number + 1) == source_mails.find(session, number)


def test_an_upload_by_somebody_else_takes_over_no_thread(lab: LabUnderTest) -> None:
    """Whoever uploads an mbox writes its Message-ID: it corrects, drops and stops nothing of another series."""
    measured(lab)
    (first,) = stored(lab)
    hostile = Series(mbox=MboxSeries(text=MBOX.replace("ada@example.org", "mallory@example.org")))
    lab.worker.value = lambda arm, *_: 33.0 if arm is Arm.BASELINE else 60.0
    lab.finished(lab.submit("locks@single", series=hostile, force=True, owner="mallory"))
    first, second = stored(lab)
    assert (first.state, second.state) == (DeliveryState.WAITING_FOR_REVIEW, DeliveryState.WAITING_FOR_REVIEW)
    assert (second.event, first.thread == second.thread) == ("reply", False)
    with lab.transaction() as session:
        assert [source_mails.newest_of_revision(session, number) for number in (1, 2)] == [1, 2]
        source = source_mails.find(session, 1)
        assert source is not None
        source_mails.remember(session, 1, source.model_copy(update={"verified": True}))
        source_mails.remember(session, 2, source)
        assert [source_mails.newest_of_revision(session, number) for number in (1, 2)] == [1, 2]
